import assert from "node:assert/strict";
import {
  DIRECTORY_BASE,
  DIRECTORY_READER,
  DirectoryServer,
  groupLdif,
  personLdif,
} from "../../harness/databases/mod.ts";
import { SOUND } from "../config/testing/config.ts";
import { main } from "./main.ts";
import { CommandFixture } from "./testing/command.ts";

async function run(...args: readonly string[]) {
  const [out, error]: [string[], string[]] = [[], []];
  const code = await main(args, {
    out: (line) => out.push(line),
    error: (line) => error.push(line),
    readInput: () => Promise.resolve("secret\n"),
    readPassword: () => assert.fail("nobody types a password that cannot be used"),
  });
  return { code, out, error };
}

Deno.test("causeway backends knows directories: nothing to prepare, and a check that shows a user", async () => {
  await using directory = await DirectoryServer.start({
    ldif: personLdif({ uid: "alice", attributes: { cn: "Alice M.", mail: "a@example.com" } }) +
      personLdif({ uid: "bob" }) + groupLdif("dev", "Developers", ["alice", "bob"]),
  });
  await using fixture = await CommandFixture.make(
    `${SOUND}[auth]\nbackend = "ldap"\nldap.base = "ou=people,${DIRECTORY_BASE}"\n` +
      '[modules]\nmod_vcard = { backend = "ldap" }\n' +
      `mod_shared_roster_ldap = { base = "${DIRECTORY_BASE}", useruid = "uid", ` +
      'gfilter = "(&(objectClass=posixGroup)(cn=%g))", groupdesc = "description" }\n' +
      `[outgoing_pools.ldap.default.connection]\nservers = ["127.0.0.1"]\n` +
      `port = ${directory.port}\nrootdn = "${DIRECTORY_READER.dn}"\n` +
      `password = ${JSON.stringify(DIRECTORY_READER.password)}\nquery_timeout = 30000\n`,
  );
  const config = ["--config", fixture.config];
  const list = await run("backends", "list", ...config);
  assert.ok(list.out.includes("  holds: users of example.com in the pool default"));
  assert.ok(list.out.includes("  holds: shared_roster of example.com in the pool default"));
  const plan = await run("backends", "plan", ...config);
  assert.match(plan.out.join("\n"), /^-- ldap\.default: the directory at .*: nothing to do$/m);
  const prepared = await run("backends", "prepare", ...config);
  assert.ok(prepared.out.includes("ldap.default: ready, 0 statements run"));

  const check = await run("backends", "check", "--user", "alice@example.com", ...config);
  assert.deepEqual([check.code, check.error], [0, []]);
  const lines = check.out.filter((line) => line.startsWith("ldap.default: "));
  for (
    const line of [
      "ldap.default: users of alice@example.com: uid: alice",
      "ldap.default: vcard of alice@example.com: cn: Alice M.",
      "ldap.default: vcard of alice@example.com: mail: a@example.com",
      "ldap.default: vcard of alice@example.com: jpegPhoto: none",
      "ldap.default: shared_roster of alice@example.com: 1 contacts in 1 groups: Developers",
      "ldap.default: ok (ldap 3)",
    ]
  ) assert.ok(lines.includes(line), `${line}\n${lines.join("\n")}`);

  const stranger = await run("backends", "check", "--user", "carol@example.com", ...config);
  assert.equal(stranger.code, 1);
  assert.match(stranger.error[0]!, /carol@example\.com has no entry \(users\)$/);

  const mistyped = await run("backends", "check", "--user", "alice@exmaple.com", ...config);
  assert.deepEqual([mistyped.code, mistyped.out], [1, []]);
  assert.match(mistyped.error[0]!, /not one of hosts .*did you mean alice@example\.com\?$/);

  const users = await run("users", "list", ...config);
  for (const name of ["alice", "bob"]) {
    assert.ok(users.out.some((line) => line.includes(`${name}@example.com`)), users.out.join("\n"));
  }
  const added = await run("users", "add", "dave@example.com", ...config);
  assert.equal(added.code, 1);
  assert.match(
    added.error.join("\n"),
    /^causeway: Cannot add dave@.* in a directory, which is only/,
  );
  const changed = await run("users", "passwd", "alice@example.com", ...config);
  assert.match(
    changed.error.join("\n"),
    /^causeway: Cannot change the password of alice@.* in a dir/,
  );

  const path = `${fixture.config}.xml`; // for both hosts
  const exported = await run("export", "--output", path, ...config);
  assert.deepEqual([exported.code, exported.error], [0, []]);
  assert.ok(exported.out.includes("accounts written: 4"), exported.out.join("\n"));
  const xml = await Deno.readTextFile(path);
  assert.match(xml, /<user name='alice'>.*<item jid='bob@example\.com'.*<FN>Alice M\.<\/FN>/s);
  assert.doesNotMatch(xml, /scram-credentials|password/);

  for (const [from, to] of [["ldap.default", "internal"], ["internal", "ldap.default"]] as const) {
    const copied = await run("backends", "copy", "--from", from, "--to", to, ...config);
    assert.deepEqual([copied.code, copied.out, copied.error], [1, [], [
      "causeway: Cannot copy from or to ldap.default: Causeway only reads directories, and copies none",
    ]]);
  }

  await using misplaced = await CommandFixture.make(
    (await Deno.readTextFile(fixture.config)).replace("ou=people", "ou=peeple"),
  );
  const baseless = await run("backends", "check", "--config", misplaced.config);
  assert.deepEqual([baseless.code, baseless.error.length], [1, 1], baseless.error.join("\n"));
  assert.match(
    baseless.error[0]!,
    /Cannot search ou=peeple,dc=example,dc=com in the directory .*: it has no such base \(Code/,
  );

  await directory.kill();
  const down = await run("backends", "check", ...config);
  assert.equal(down.code, 1);
  assert.match(down.error.join("\n"), /it cannot be reached/);
  const unprepared = await run("backends", "prepare", ...config);
  assert.deepEqual([unprepared.code, unprepared.out], [1, ["internal: ready, 0 statements run"]]);
  assert.match(unprepared.error.join("\n"), /^causeway: ldap\.default: .*it cannot be reached/);
});

Deno.test("causeway import takes the data of accounts in a directory, and none of other names", async () => {
  await using directory = await DirectoryServer.start({ ldif: personLdif({ uid: "alice" }) });
  await using fixture = await CommandFixture.make(
    `${SOUND}[auth]\nbackend = "ldap"\nldap.base = "ou=people,${DIRECTORY_BASE}"\n` +
      `[outgoing_pools.ldap.default.connection]\nservers = ["127.0.0.1"]\n` +
      `port = ${directory.port}\nrootdn = "${DIRECTORY_READER.dn}"\n` +
      `password = ${JSON.stringify(DIRECTORY_READER.password)}\nquery_timeout = 30000\n`,
  );
  const users = ["alice", "zoe"].map((name) =>
    `<user name='${name}' password='x'><query xmlns='jabber:iq:roster'>` +
    `<item jid='bob@example.com'/></query><vCard xmlns='vcard-temp'><FN>${name}</FN></vCard></user>`
  );
  const path = `${fixture.config}.xml`;
  await Deno.writeTextFile(
    path,
    `<server-data xmlns='urn:xmpp:pie:0'><host jid='example.com'>${users.join("")}</host>` +
      "</server-data>",
  );
  const files = ["--state", `${path}.state`, "--report", `${path}.report`];
  const { code, out, error } = await run("import", path, ...files, "--config", fixture.config);
  assert.deepEqual([code, error], [0, []]);
  assert.deepEqual(out.slice(0, 3), [
    "accounts added: 0",
    "accounts that existed already: 1",
    "accounts not taken: 1",
  ]);
  await run("export", "--output", `${path}.out`, "--config", fixture.config);
  const xml = await Deno.readTextFile(`${path}.out`);
  assert.match(xml, /<user name='alice'>.*<item jid='bob@example\.com'.*<FN>alice<\/FN>/s);
  assert.doesNotMatch(xml, /zoe/);
});
