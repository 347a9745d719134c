import assert from "node:assert/strict";
import { join } from "node:path";
import { deriveScramCredentials } from "../xmpp/mod.ts";
import { PieFiles } from "./pie_files.ts";
import type { TakingDeps } from "./taking_deps.ts";
import {
  Destination,
  document,
  FIXTURES,
  HOST,
  methodOf,
  NOTHING,
  NOW,
  storesWith,
  user,
  verify,
} from "./testing/destination.ts";

for (const server of ["ejabberd", "prosody"]) {
  Deno.test(`importAccounts() takes what ${server} has exported`, async () => {
    await using destination = await Destination.open();
    const { store } = destination;
    const counts = await destination.importFiles(join(FIXTURES, server));
    const isEjabberd = server === "ejabberd";
    assert.deepEqual(counts, { ...NOTHING, added: 2, onlySha1: 2 });
    if (isEjabberd) {
      const privacy = await store.privacyLists(HOST).read("alice");
      assert.equal(privacy.defaultName, "public");
      assert.deepEqual(privacy.lists, [{
        name: "public",
        xml: "<list xmlns='jabber:iq:privacy' name='public'>" +
          "<item type='jid' value='spam@example.net' action='deny' order='1'/>" +
          "<item action='allow' order='2'/></list>",
      }]);
      assert.deepEqual(await destination.waiting("alice"), [
        "<message to='alice@example.com' from='bob@example.com/x' type='chat' id='m1'>" +
        "<delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z' from='example.com'/>" +
        "<body>hello</body></message>",
      ]);
    }
    for (const [name, password] of [["alice", "wonder land"], ["bob", "sesame"]] as const) {
      const credentials = (await store.users(HOST).credentials(name))!;
      assert.equal(credentials.sha256, undefined);
      assert.ok(await verify(credentials, password), name);
      assert.ok(!await verify(credentials, "wrong"), name);
    }
    const { items } = await store.rosters().read("alice@example.com");
    const facts = items.map(({ jid, name, groups, subscription, isListed, request }) => [
      ...[jid, name, groups.toSorted(), subscription, isListed],
      request === undefined ? "" : new TextDecoder().decode(request),
    ]);
    assert.deepEqual(facts, [
      ["bob@example.com", "Bob & co", ["Friends", "Tea party"], "both", true, ""],
      ["carol@example.net", "", [], "none", true, ""],
      [
        ...["dave@example.net", "", [], "none", false],
        "<presence from='dave@example.net' to='alice@example.com' type='subscribe'/>",
      ],
    ]);
    const card = await store.vcards(HOST).read("alice");
    assert.match(card!, /^<vCard xmlns='vcard-temp'><FN>Alice Liddell<\/FN>/);
    const bookmarks = { namespace: "storage:bookmarks", name: "storage" };
    assert.match((await store.privateStorage(HOST).read("alice", bookmarks))!, /tea@rooms/);

    const again = await destination.importFiles(join(FIXTURES, server));
    assert.deepEqual(again, { ...NOTHING, there: 2 });
    assert.equal((await destination.waiting("alice")).length, Number(isEjabberd), "not twice");
  });
}

for (const reader of [undefined, "ejabberd"] as const) {
  Deno.test(`importAccounts() takes what was exported for ${reader ?? "everybody"}`, async () => {
    await using first = await Destination.open();
    await first.importFiles(join(FIXTURES, "ejabberd"));
    const more = ["one", "two"].map((text) => ({
      sender: "bob@example.com",
      stanza: new TextEncoder().encode(
        `<message from='bob@example.com/x' xml:lang='en' to='alice@example.com/y' type='chat'>` +
          `<body>${text} &lt;ä</body><x xmlns='urn:x'><y/></x></message>`,
      ),
      sentAtMs: NOW,
      expiresAtMs: 2 * NOW,
    }));
    await first.store.offlineMessages(HOST).keep("alice", more, { maxMessages: 9, maxBytes: 9999 });
    await first.store.users(HOST).add("carol", await deriveScramCredentials("tea", 16));
    await using second = await Destination.open();
    const path = await second.write(await first.export(reader));
    const counts = await second.importFiles(path);
    const onlySha1 = reader === "ejabberd" ? 3 : 2;
    assert.deepEqual(counts, { ...NOTHING, added: 3, onlySha1 });
    assert.equal((await second.waiting("alice")).length, 3);
    assert.deepEqual(await second.waiting("alice"), await first.waiting("alice"));
    assert.equal(
      await second.export(),
      (await first.export()).replaceAll(
        reader === "ejabberd" ? /<scram-credentials [^>]*SHA-256.*?<\/scram-credentials>/g : /^$/g,
        "",
      ),
    );
  });
}

Deno.test("importAccounts() leaves what is here as it is, and says so", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const roster = "<query xmlns='jabber:iq:roster'><item jid='bob@example.com' name='B'/></query>";
  const card = "<vCard xmlns='vcard-temp'><FN>Old</FN></vCard>";
  const own = "<query xmlns='jabber:iq:private'><a xmlns='urn:a'>1</a></query>";
  await destination.importFiles(
    await destination.write(
      document(`<user name='alice' password='one'>${roster}${card}${own}</user>`),
    ),
  );
  const changed = [
    roster.replace("'B'", "'Bob'"),
    card.replace("Old", "New"),
    own.replace("1", "2"),
  ];
  const path = await destination.write(
    document(
      `<user name='alice' password='two'>${changed.join("")}` +
        "<presence xmlns='jabber:client' type='subscribe' from='carol@example.com'/></user>",
    ),
  );
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, there: 1, findings: 4 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | roster | contact bob@example.com: it is in the roster already, and differs",
    "alice@example.com | vcard | there is another one already",
    "alice@example.com | private | element a of urn:a: there is another one already",
    "alice@example.com | password | the account exists with another password, which it keeps",
  ]);
  assert.ok(await verify((await store.users(HOST).credentials("alice"))!, "one"));
  const { items } = await store.rosters().read("alice@example.com");
  assert.deepEqual(items.map(({ name, isListed }) => [name, isListed]), [["B", true], ["", false]]);
});

Deno.test("importAccounts() takes messages for accounts that are new alone, and says what it left", async () => {
  await using destination = await Destination.open();
  const message = (text: string, type = "chat") =>
    `<message xmlns='jabber:client' from='bob@example.com/x' type='${type}'><body>${text}</body>` +
    "</message>";
  const messages = (...texts: readonly string[]) =>
    `<offline-messages>${texts.map((text) => message(text)).join("")}` +
    `${message("x", "groupchat")}<message xmlns='jabber:client'/><a xmlns='b'/></offline-messages>`;
  const texts = Array.from({ length: 3 }, (_, i) => `${i}`);
  const path = await destination.write(document(user("alice", messages(...texts))));
  const few: TakingDeps = {
    ...destination.taking,
    offlineOptionsOf: () => ({ maxMessages: 4, maxBytes: 100_000, lifetimeMs: 1 }),
  };
  const counts = await destination.import(await PieFiles.open([path]), few);
  assert.deepEqual(counts, { ...NOTHING, added: 1, findings: 2 });
  const malformed =
    "alice@example.com | offline | 3 messages that wait are malformed, of another " +
    "type than chat and normal, or more than 10000";
  assert.deepEqual(destination.report(), [
    malformed,
    "alice@example.com | offline | 1 messages: they have expired, or there is no room",
  ]);
  assert.equal((await destination.waiting("alice")).length, 2, "the share of one sender");
  await destination.importFiles(path);
  assert.deepEqual(destination.report(), [
    malformed,
    "alice@example.com | offline | 1 messages: the account is here, and may have got them already",
  ]);
  const off: TakingDeps = { ...destination.taking, offlineOptionsOf: () => undefined };
  const other = await destination.write(document(user("zoe", messages("1"))));
  await destination.import(await PieFiles.open([other]), off);
  assert.equal(
    destination.report()[1],
    "zoe@example.com | offline | 1 messages: the host keeps none (mod_offline)",
  );
  assert.deepEqual(await destination.waiting("zoe"), []);
});

Deno.test("importAccounts() takes documents to which a folder has links", async () => {
  await using destination = await Destination.open();
  const path = await destination.write(document(user("alice", "")), "elsewhere");
  const folder = destination.path("folder");
  await Deno.mkdir(folder);
  const link = new Deno.Command("ln", { args: ["-s", path, join(folder, "link.xml")] });
  assert.equal((await link.output()).success, true);
  await Deno.mkdir(join(folder, "no-document.xml"));
  const counts = await destination.importFiles(folder);
  assert.deepEqual(counts, { ...NOTHING, added: 1 });
});

Deno.test("importAccounts() adds the key that an account lacks, of the same password", async () => {
  await using destination = await Destination.open();
  const users = destination.store.users(HOST);
  const whole = await deriveScramCredentials("x", 16);
  await users.add("alice", whole);
  const path = await destination.write(await destination.export());
  await users.setPassword("alice", { sha1: whole.sha1, sha256: undefined });
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, there: 1 });
  const { creation: _, ...keys } = (await users.credentials("alice"))!;
  assert.deepEqual(keys, whole);
});

Deno.test("importAccounts() takes keys that older versions of ejabberd write as passwords", async () => {
  await using destination = await Destination.open();
  const { salt, iterations, storedKey, serverKey } =
    (await deriveScramCredentials("wonder land", 4096)).sha1;
  const fields = [storedKey, serverKey, salt].map((each) => each.toBase64());
  const path = await destination.write(
    document(
      `<user name='alice' password='scram:${[...fields, iterations].join(",")}'/>`,
      "<user name='bob' password='scram:sesame'/>",
      "<user name='carol' password='scram:YQ==,YQ==,YQ==,4096'/>",
    ),
  );
  assert.deepEqual(await destination.importFiles(path), {
    ...NOTHING,
    added: 2,
    refused: 1,
    onlySha1: 1,
    findings: 3,
  });
  assert.equal(
    destination.report()[0],
    "carol@example.com | password | the key for SHA-1 is malformed",
  );
  const users = destination.store.users(HOST);
  assert.ok(await verify((await users.credentials("alice"))!, "wonder land"));
  assert.ok(await verify((await users.credentials("bob"))!, "scram:sesame"));
});

Deno.test("importAccounts() takes messages that have no namespace of their own", async () => {
  await using destination = await Destination.open();
  const text = document(
    "<user name='alice' password='x'><offline-messages><message from='bob@example.com/x' " +
      "type='chat'><body>hello</body><x xmlns='urn:x'/></message></offline-messages></user>",
  );
  const old = text.replace("urn:xmpp:pie:0", "http://www.xmpp.org/extensions/xep-0227.html#ns")
    .replace("alice", "carol");
  const paths = [await destination.write(text), await destination.write(old, "old.xml")];
  assert.deepEqual(await destination.importFiles(...paths), { ...NOTHING, added: 2 });
  for (const name of ["alice", "carol"]) {
    assert.deepEqual(await destination.waiting(name), [
      `<message from='bob@example.com/x' type='chat' to='${name}@example.com'>` +
      "<body>hello</body><x xmlns='urn:x'/></message>",
    ]);
  }
});

const INCLUDE = (href: string) =>
  `<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='${href}'/>`;

Deno.test("importAccounts() takes an account whose own file comes before the file that includes it", async () => {
  await using destination = await Destination.open();
  await Deno.mkdir(destination.path("in"));
  await destination.write(user("alice"), "in/alice.xml");
  await destination.write(document(INCLUDE("alice.xml"), INCLUDE("zoe.xml")), "in/hosts.xml");
  await destination.write(user("zoe"), "in/zoe.xml");
  const counts = await destination.importFiles(destination.path("in"));
  assert.deepEqual(await destination.store.users(HOST).list(), ["alice", "zoe"]);
  assert.equal(counts.added, 2);
});

Deno.test("importAccounts() does not continue behind accounts that an included file no longer has", async () => {
  await using destination = await Destination.open();
  const users = Array.from({ length: 20 }, (_, i) => user(`user${i}`));
  const included = (names: readonly string[]) =>
    `<host xmlns='urn:xmpp:pie:0' jid='${HOST}'>${names.join("")}</host>`;
  await destination.write(included(users), "host.part");
  const whole = `<server-data xmlns='urn:xmpp:pie:0'>${INCLUDE("host.part")}</server-data>`;
  const path = await destination.write(whole);
  const failing = new Proxy(destination.store.users(HOST), {
    get: (users, key) => {
      const method = methodOf(users, key);
      if (key !== "add") return method;
      return (localpart: string, ...rest: unknown[]) => {
        if (localpart === "user19") throw new Error("the machine is off");
        return method!(localpart, ...rest);
      };
    },
  });
  const stores = storesWith(destination.store, { users: failing });
  const interrupted = destination.import(await PieFiles.open([path]), {
    ...destination.taking,
    stores,
  });
  await assert.rejects(interrupted, { message: "the machine is off" });
  await destination.write(included(["new", "other"].map((each) => user(each))), "host.part");
  await assert.rejects(destination.importFiles(path), { code: "migration/state" });
  await destination.write(included([user("new"), ...users]), "host.part");
  await assert.rejects(destination.importFiles(path), { code: "migration/state" });
  await destination.write(included([...users, user("new")]), "host.part");
  assert.equal((await destination.importFiles(path)).added, 21, "the same accounts come first");
});
