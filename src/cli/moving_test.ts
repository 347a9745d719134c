import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { Ejabberd, Prosody } from "../../harness/other_servers/mod.ts";
import { PieFiles, StateFile } from "../migration/mod.ts";
import { SOUND } from "../config/testing/config.ts";
import { CommandFixture } from "./testing/command.ts";

const FIXTURES = fileURLToPath(new URL("../../fixtures/migration/", import.meta.url));

/** Copies a file that another server has written into the fixture's folder. */
async function given(fixture: CommandFixture, name: string): Promise<string> {
  const path = join(fixture.directory, name);
  await Deno.mkdir(path);
  for await (const { name: file } of Deno.readDir(join(FIXTURES, name))) {
    await Deno.copyFile(join(FIXTURES, name, file), join(path, file));
  }
  return path;
}

/** Copies a folder to where a command of the fixture may read it. */
async function copyOf(folder: string, { directory }: CommandFixture): Promise<string> {
  const copied = join(directory, "back");
  await Deno.mkdir(copied);
  for await (const { name } of Deno.readDir(folder)) {
    await Deno.copyFile(join(folder, name), join(copied, name));
  }
  return copied;
}

/**
 * Returns what a document says besides personal eventing, in an order of its own: other servers order
 * it as they like.
 */
function factsIn(xml: string): readonly string[] {
  const facts = [
    ...xml.replaceAll(/<pubsub .*?<\/pubsub>/g, "").matchAll(
      /<(?:item|presence|default|list)[ /][^>]*>|<(group|salt|FN|stored-key)>[^<]*|<conference[^>]*>/g,
    ),
  ];
  return facts.map(([tag]) => tag.replace(/\/?>$/, "").split(" ").sort().join(" "))
    .map((tag) => tag.replace(/ (to|xmlns)='[^']*'/g, "")).sort();
}

const PRIVACY = "<query xmlns='jabber:iq:privacy'><default name='main'/><list name='main'>" +
  "<item type='jid' value='spam@example.net' action='deny' order='1'/>" +
  "<item type='group' value='Friends' action='allow' order='2'><message/><presence-in/></item>" +
  "<item action='deny' order='3'><presence-out/></item></list>" +
  "<list name='invisible'><item action='deny' order='1'><presence-out/></item></list></query>";

/** Bookmarks and a vCard, as clients publish them at Prosody. */
const PUBLISHED = "<pubsub xmlns='http://jabber.org/protocol/pubsub'>" +
  "<items node='urn:xmpp:bookmarks:1'><item id='tea@rooms.example.com'>" +
  "<conference xmlns='urn:xmpp:bookmarks:1' name='Tea' autojoin='true'/></item>" +
  "<item id='news@rooms.example.com'><conference xmlns='urn:xmpp:bookmarks:1'/></item></items>" +
  "<items node='urn:xmpp:vcard4'><item id='current'><vcard xmlns='urn:ietf:params:xml:ns:vcard-4.0'>" +
  "<fn><text>Alice</text></fn></vcard></item></items></pubsub>" +
  "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'>" +
  "<configure node='urn:xmpp:bookmarks:1'><x xmlns='jabber:x:data' type='submit'>" +
  "<field var='pubsub#max_items'><value>200</value></field>" +
  "<field var='pubsub#access_model'><value>whitelist</value></field></x></configure>" +
  "<configure node='urn:xmpp:vcard4'><x xmlns='jabber:x:data' type='submit'>" +
  "<field var='pubsub#access_model'><value>open</value></field></x></configure>" +
  "<affiliations node='urn:xmpp:vcard4'><affiliation jid='eve@example.net' affiliation='outcast'/>" +
  "</affiliations></pubsub>";

Deno.test("accounts go to ejabberd and come back, with their passwords", async () => {
  await using fixture = await CommandFixture.make();
  await using ejabberd = await Ejabberd.make();
  const config = ["--config", fixture.config];
  const source = await given(fixture, "prosody");
  const alice = join(source, "alice@example.com.xml");
  const whole = await Deno.readTextFile(alice);
  await Deno.writeTextFile(alice, whole.replace("</user>", `${PUBLISHED}${PRIVACY}</user>`));
  const first = await fixture.run(["import", source, ...config]);
  assert.deepEqual([first.code, first.error], [0, ""]);
  const path = join(fixture.directory, "out.xml");
  const written = await fixture.run(
    ["export", "--output", path, "--for", "ejabberd", ...config],
  );
  assert.deepEqual([written.code, written.error, written.out], [0, "", "accounts written: 2\n"]);
  await ejabberd.import(await Deno.readTextFile(path));
  assert.ok(await ejabberd.accepts("alice", "wonder land"));
  const folder = await ejabberd.export();

  await using other = await CommandFixture.make();
  const copied = await copyOf(folder, other);
  const back = await other.run(["import", copied, "--config", other.config, "--json"]);
  assert.deepEqual([back.code, back.error], [0, ""]);
  assert.equal(JSON.parse(back.out).added, 2);
  const facts = async (of: CommandFixture) => {
    const file = join(of.directory, "all.xml");
    await of.run(["export", "--output", file, "--config", of.config]);
    return factsIn(await Deno.readTextFile(file));
  };
  const before = await facts(fixture);
  assert.equal(before.length, 18);
  assert.deepEqual(await facts(other), before);
  const text = await Deno.readTextFile(join(other.directory, "all.xml"));
  assert.deepEqual(publishedIn(text), [], "ejabberd leaves personal eventing out");
});

/** A configuration in which messages wait for accounts of example.com. */
const WITH_OFFLINE = SOUND.replaceAll("example.com", "example.org")
  .replace('["example.org"', '["example.com", "example.org"') +
  '[host_config."example.com".modules.mod_offline]\n';

Deno.test("messages that wait go to ejabberd and come back, and Prosody leaves them out", async () => {
  const waiting = async (of: CommandFixture) => {
    const file = join(of.directory, "all.xml");
    const { error } = await of.run(["export", "--output", file, "--config", of.config]);
    assert.equal(error, "");
    const text = await Deno.readTextFile(file);
    return [...text.matchAll(/<message .*?<\/message>/g)].map(([message]) => ({
      attributes: ["from", "to", "type", "id"].map((name) =>
        new RegExp(` ${name}='([^']*)'`).exec(message)?.[1]
      ),
      body: /<body>(.*)<\/body>/.exec(message)?.[1],
      stamp: /stamp='([^']*)'/.exec(message)?.[1]?.slice(0, 19),
    }));
  };
  await using fixture = await CommandFixture.make(WITH_OFFLINE);
  await using ejabberd = await Ejabberd.make();
  const config = ["--config", fixture.config];
  const first = await fixture.run(["import", await given(fixture, "ejabberd"), ...config]);
  assert.deepEqual([first.code, first.error], [0, ""]);
  const before = await waiting(fixture);
  assert.deepEqual(before, [{
    attributes: ["bob@example.com/x", "alice@example.com", "chat", "m1"],
    body: "hello",
    stamp: "2020-01-01T00:00:00",
  }]);
  const path = join(fixture.directory, "out.xml");
  await fixture.run(["export", "--output", path, "--for", "ejabberd", ...config]);
  await ejabberd.import(await Deno.readTextFile(path));
  await using other = await CommandFixture.make(WITH_OFFLINE);
  const copied = await copyOf(await ejabberd.export(), other);
  const back = await other.run(["import", copied, "--config", other.config]);
  assert.deepEqual([back.code, back.error], [0, ""]);
  assert.deepEqual(await waiting(other), before);

  await using prosody = await Prosody.make();
  const split = join(fixture.directory, "split");
  await fixture.run(["export", "--split", split, ...config]);
  for await (const { name } of Deno.readDir(split)) {
    await Deno.copyFile(join(split, name), join(prosody.folder, name));
  }
  await prosody.read();
  await prosody.write();
  const written = await Deno.readTextFile(join(prosody.folder, "alice@example.com.xml"));
  assert.match(written, /stored-key/);
  assert.ok(!written.includes("hello"), "its store for XEP-0227 has no such messages");
});

Deno.test("accounts go to Prosody and come back, with their passwords", async () => {
  await using fixture = await CommandFixture.make();
  await using prosody = await Prosody.make();
  const config = ["--config", fixture.config];
  await fixture.run(["import", await given(fixture, "ejabberd"), ...config]);
  const split = join(fixture.directory, "split");
  const written = await fixture.run(["export", "--split", split, ...config]);
  assert.deepEqual([written.code, written.error, written.out], [0, "", "accounts written: 2\n"]);
  const names: string[] = [];
  for await (const { name } of Deno.readDir(split)) {
    names.push(name);
    await Deno.copyFile(join(split, name), join(prosody.folder, name));
  }
  assert.deepEqual(names.sort(), ["alice@example.com.xml", "bob@example.com.xml"]);
  const facts = async (folder: string) => {
    const texts = names.map((name) => Deno.readTextFile(join(folder, name)));
    return factsIn((await Promise.all(texts)).join(""));
  };
  const before = await facts(prosody.folder);
  assert.equal(before.length, 15);
  await prosody.read();
  await prosody.write();
  // Prosody has no privacy lists.
  const isPrivacy = (fact: string) => /^(?:<default|<list|<item action)|action=/.test(fact);
  assert.deepEqual(await facts(prosody.folder), before.filter((fact) => !isPrivacy(fact)));
});

/** Returns what a document says of personal eventing, in an order of its own. */
function publishedIn(xml: string): readonly string[] {
  const published = [...xml.matchAll(/<pubsub .*?<\/pubsub>/g)].join("");
  const facts = published.matchAll(
    /<(?:items|configure|affiliations?|item|conference) [^>]*|<field [^>]*(?:access_model|max_items).*?<\/value>/g,
  );
  return [...facts].map(([fact]) =>
    fact.replace(/\/$/, "").replace(/ (?:type|xmlns)='[^']*'/g, "").split(" ").sort().join(" ")
  ).sort();
}

Deno.test("bookmarks and vCards in personal eventing come from Prosody, and go back", async () => {
  await using fixture = await CommandFixture.make();
  await using prosody = await Prosody.make();
  const config = ["--config", fixture.config];
  const folder = await given(fixture, "prosody");
  const file = "alice@example.com.xml";
  const alice = await Deno.readTextFile(join(folder, file));
  await Deno.writeTextFile(
    join(prosody.folder, file),
    alice.replace("</user>", `${PUBLISHED}</user>`),
  );
  await prosody.read();
  await prosody.write();
  // From now on it is what Prosody has written.
  await Deno.copyFile(join(prosody.folder, file), join(folder, file));
  const taken = await fixture.run(["import", folder, ...config, "--json"]);
  assert.deepEqual([taken.code, taken.error], [0, ""]);
  const { added, findings } = JSON.parse(taken.out);
  assert.deepEqual({ added, findings }, { added: 2, findings: 0 });

  const split = join(fixture.directory, "split");
  await fixture.run(["export", "--split", split, ...config]);
  const before = publishedIn(await Deno.readTextFile(join(split, file)));
  assert.equal(before.length, 15);
  await Deno.remove(join(prosody.folder, file));
  await Deno.copyFile(join(split, file), join(prosody.folder, file));
  await prosody.read();
  await prosody.write();
  assert.deepEqual(publishedIn(await Deno.readTextFile(join(prosody.folder, file))), before);
});

Deno.test("causeway export --split writes accounts of any name, and import reads them", async () => {
  await using fixture = await CommandFixture.make();
  const names = ["..", "a?b", "straße", "strasse", "x".repeat(250), "alice"];
  const users = names.map((name) => `<user name='${name}' password='x'/>`).join("");
  const path = join(fixture.directory, "in.xml");
  await Deno.writeTextFile(
    path,
    `<server-data xmlns='urn:xmpp:pie:0'><host jid='example.com'>${users}</host></server-data>`,
  );
  const config = ["--config", fixture.config];
  await fixture.run(["import", path, ...config]);
  const split = join(fixture.directory, "split");
  const written = await fixture.run(["export", "--split", split, ...config]);
  assert.deepEqual([written.code, written.error], [0, ""]);
  assert.equal(
    written.out,
    "accounts written: 6\naccounts in files with another name, which Prosody does not find: 4; " +
      'see "Move out" in docs/operations.md\n',
  );
  const files = (await Array.fromAsync(Deno.readDir(split))).map(({ name }) => name).sort();
  assert.deepEqual(files.filter((name) => name.includes("@")), [
    "alice@example.com.xml",
    "strasse@example.com.xml",
  ]);
  assert.equal(files.length, names.length);
  await using other = await CommandFixture.make();
  const copied = await copyOf(split, other);
  const back = await other.run(["import", copied, "--config", other.config, "--json"]);
  assert.deepEqual([back.code, back.error], [0, ""]);
  assert.equal(JSON.parse(back.out).added, names.length);
});

Deno.test("causeway export that fails leaves no file of its name, and no part of one", async () => {
  await using fixture = await CommandFixture.make();
  const config = ["--config", fixture.config];
  await fixture.run(["import", await given(fixture, "prosody"), ...config]);
  const database = new DatabaseSync(join(fixture.directory, "causeway.sqlite"));
  // The vCard of an account is damaged.
  assert.equal(database.prepare("UPDATE vcards SET content = X'3C'").run().changes, 1);
  database.close();
  const folder = join(fixture.directory, "out");
  await Deno.mkdir(folder);
  const { code, error } = await fixture.run(
    ["export", "--output", join(folder, "all.xml"), ...config],
  );
  assert.deepEqual([code, error === ""], [1, false]);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
});

Deno.test("causeway import asks for one source", async () => {
  await using fixture = await CommandFixture.make();
  const config = ["--config", fixture.config];
  const neither = await fixture.run(["import", ...config]);
  assert.equal(neither.code, 1);
  assert.match(neither.error, /^causeway: Cannot import: name either files of XEP-0227 or/);
  const badUrl = await fixture.run(["import", "--mongooseim-sql", "pg://a:secret@b/c", ...config]);
  assert.equal(badUrl.code, 1);
  assert.match(badUrl.error, /--mongooseim-sql expects postgresql:/);
  assert.ok(!badUrl.error.includes("secret"));
  const url = "postgresql://a:secret@127.0.0.1:1/b";
  const twoPasswords = await fixture.run(
    ["import", "--mongooseim-sql", url, "--password-file", "none", ...config],
  );
  assert.deepEqual([twoPasswords.code, twoPasswords.error], [
    1,
    "causeway: Cannot use --password-file: the URL of --mongooseim-sql has a password\n",
  ]);
  for (const option of ["--cafile", "--password-file"]) {
    const { code, error } = await fixture.run(["import", "in.xml", option, "none", ...config]);
    assert.equal(code, 1);
    assert.ok(error.startsWith(`causeway: Cannot use ${option} with files of XEP-0227: `), error);
  }
  const missing = await fixture.run(["import", join(fixture.directory, "no.xml"), ...config]);
  assert.match(
    missing.error,
    /^causeway: Cannot read .*no\.xml: there is no such file or folder\n$/,
  );
  const folder = join(fixture.directory, "accounts");
  await Deno.mkdir(folder);
  await Deno.writeTextFile(join(folder, "alice.dat"), "");
  const misplaced = await fixture.run(["import", folder, ...config]);
  assert.deepEqual([misplaced.code, misplaced.out], [1, ""], "a folder of something else");
  assert.match(misplaced.error, /^causeway: Cannot read .*accounts: it has no files .*\.xml\n$/);
  const out = await fixture.run(["export", "--output", fixture.config, ...config]);
  assert.match(out.error, /^causeway: Cannot write /, "it replaces no file");
  const split = await fixture.run(["export", "--split", fixture.config, ...config]);
  assert.match(split.error, /^causeway: Cannot write .*causeway\.toml: /, "a file is no folder");
});

Deno.test("causeway import --json that fails tells what it has done, and the problem", async () => {
  await using fixture = await CommandFixture.make();
  const path = join(fixture.directory, "in.xml");
  await Deno.writeTextFile(
    path,
    "<server-data xmlns='urn:xmpp:pie:0'><host jid='example.com'>" +
      "<user name='alice' password='x'/></server-data>",
  );
  const { code, out, error } = await fixture.run([
    "import",
    path,
    "--config",
    fixture.config,
    "--json",
  ]);
  assert.deepEqual([code, error], [1, ""]);
  const { added, report, problem } = JSON.parse(out);
  assert.deepEqual([added, report], [1, "causeway-import.report"]);
  assert.match(problem, /^Cannot import all of .*in\.xml: .* mend the file and repeat the import$/);
  const missing = ["import", "nowhere.xml", "--config", fixture.config, "--json"];
  const early = await fixture.run(missing);
  assert.deepEqual([early.code, early.error], [1, ""]);
  assert.match(JSON.parse(early.out).problem, /^Cannot read nowhere\.xml: /);
});

Deno.test("causeway import does not continue an import into another database", async () => {
  await using fixture = await CommandFixture.make();
  const folder = await given(fixture, "prosody");
  const path = join(fixture.directory, "moving.state");
  const interrupted = JSON.stringify({
    source: (await PieFiles.open([folder])).id,
    destination: '[["dc1.example.com","example.com"],["the built-in store /elsewhere"]]',
    counts: { added: 0, there: 0, refused: 0, onlySha1: 0, onlySha256: 0, findings: 0 },
    reportBytes: 0,
  });
  await Deno.writeTextFile(path, interrupted);
  const args = ["import", folder, "--config", fixture.config, "--state", path];
  const { code, out, error } = await fixture.run(args);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(
    error,
    /^causeway: Cannot use .*moving\.state: it belongs to an import with another/,
  );
  const own = join(fixture.directory, "causeway.sqlite");
  await Deno.writeTextFile(path, interrupted.replace("/elsewhere", own));
  assert.deepEqual((await fixture.run(args)).error, "");
});

Deno.test("causeway import refuses to run beside another import of the same state", async () => {
  await using fixture = await CommandFixture.make();
  const path = join(fixture.directory, "moving.state");
  const args = ["import", await given(fixture, "prosody"), "--config", fixture.config];
  {
    using _other = await StateFile.open(path);
    const { code, error } = await fixture.run([...args, "--state", path]);
    assert.equal(code, 1);
    assert.match(error, /^causeway: Cannot use .*moving\.state: another import uses it; wait/);
  }
  const { code, error } = await fixture.run([...args, "--state", path]);
  assert.deepEqual([code, error], [0, ""]);
});
