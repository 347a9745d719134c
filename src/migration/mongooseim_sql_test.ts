import assert from "node:assert/strict";
import { join } from "node:path";
import { DEFAULT_PRIVACY_BOUNDS } from "../services/privacy/mod.ts";
import { InternalStore } from "../storage/mod.ts";
import { TestServer as Server } from "../storage/sql/testing/servers.ts";
import { derivePasswordLike, deriveScramCredentials } from "../xmpp/mod.ts";
import { importAccounts } from "./import_accounts.ts";
import { StateFile } from "./import_state.ts";
import { MongooseimSql } from "./mongooseim_sql.ts";
import { ACCOUNT_TABLES } from "./testing/account_tables.ts";
import { foreign, FOREIGN_KINDS } from "./testing/foreign.ts";

const TABLES: Readonly<Record<string, string>> = {
  ...ACCOUNT_TABLES,
  pubsub_node: "service_domain varchar(125), service_user varchar(125), node_id varchar(125)",
};

/** Keys of the passwords `padthai` and `misio`, from MongooseIM's documentation of their forms. */
const KEYS =
  "==MULTI_SCRAM==,4096,===SHA1===QClQsw/sfPEnwj4AEp6E1w==|ys1104hRhqMoRputBY5sLHKXoSw=|" +
  "EJvxXWM42tO7BgW21lNZyBc1dD0=,==SHA224==dk0ImXFVPoUfqD5FveV7YA==|" +
  "G0ibQ/YYuCtoun4I+1IF2zJ7Q8x2T23ETnq5Gg==|EvE2EkZcUb3k4CooeOcVFy95P32t+NDX0xbQUA==," +
  "==SHA256==M7BYKSo04XbzBr4C7b056g==|A779MC05nSGQln5no0hKTGHFSaQ7oguKBZgORW3s+es=|" +
  "XhtGFf6NDWsnVSCO4xkzPD3qc046fPL0pATZi7RmaWo=";
const KEYS_WITH_ONE_SALT =
  "==MULTI_SCRAM==,glF/hUXiCWD6TaJLpgVaaw==,4096,===SHA1===Hxfegcj54A6p/ZzWkw7BjJsLZpM=|" +
  "ztvci4eBktO3NLviLhwN3ktF15Q=,==SHA256==S4XiSkYI81m688nMuCgFGUBIGbW6oG1a9rlTKktzS/A=|" +
  "0Tm46vWQyO/XWpAtcDCUH++7ImWVDe0VDx274zMzMXQ=,==SHA512==abc|def";
const OLD_KEYS = "==SCRAM==,tmi5IE+9pceRV/jkPLFHEaVY33c=,MiWNa8T3dniVDwmh77ufJ41fpAQ=," +
  "inKXODlSY5y5SCsLxibi0w==,4096";

const NOW = 1_700_000_000_000;

const OF_ALICE = "'example.com', 'alice'";

const STATEMENTS: readonly string[] = [
  ...Object.entries(TABLES).map(([name, columns]) => `CREATE TABLE ${name} (${columns})`),
  `INSERT INTO users VALUES (${OF_ALICE}, '', '${KEYS}')`,
  `INSERT INTO users VALUES ('example.com', 'bob', '', '${OLD_KEYS}')`,
  "INSERT INTO users VALUES ('example.com', 'carol', 'plain', NULL)",
  "INSERT INTO users VALUES ('example.com', 'dave', '', 'other')",
  "INSERT INTO users VALUES ('elsewhere.example', 'erin', 'plain', NULL)",
  `INSERT INTO users VALUES ('example.com', 'frank', '', '${KEYS_WITH_ONE_SALT}')`,
  ...[
    "'bob@example.com', 'Bob ü', 'B', 'N', ''",
    "'to@example.net', '', 'T', 'O', ''",
    "'asks@example.net', '', 'N', 'I', 'let me in'",
    "'both@example.net', '', 'N', 'B', ''",
    "'not a jid@@', '', 'N', 'N', ''",
    "'odd@example.net', '', 'X', 'N', ''",
  ].map((values) => `INSERT INTO rosterusers VALUES (${OF_ALICE}, ${values})`),
  `INSERT INTO rostergroups VALUES (${OF_ALICE}, 'bob@example.com', 'Friends')`,
  `INSERT INTO rostergroups VALUES (${OF_ALICE}, 'bob@example.com', 'Tea')`,
  `INSERT INTO vcard VALUES (${OF_ALICE}, '<vCard xmlns="vcard-temp"><FN>Alice</FN></vCard>')`,
  "INSERT INTO vcard VALUES ('example.com', 'bob', '<html/>')",
  `INSERT INTO private_storage VALUES (${OF_ALICE}, 'urn:a', '<a xmlns="urn:a"><b/></a>')`,
  `INSERT INTO private_storage VALUES (${OF_ALICE}, 'urn:b', '<a')`,
  `INSERT INTO last VALUES (${OF_ALICE}, 1600000000, 'gone')`,
  `INSERT INTO privacy_list VALUES (${OF_ALICE}, 'blocked', 7)`,
  `INSERT INTO privacy_list VALUES (${OF_ALICE}, 'friends', 8)`,
  `INSERT INTO privacy_default_list VALUES (${OF_ALICE}, 'blocked')`,
  "INSERT INTO privacy_default_list VALUES ('example.com', 'bob', 'gone')",
  ...[
    "7, 'j', 'mallory@example.net', 'b', 2, false, true, true, true, true",
    "7, 'j', 'spam.example.net', 'd', 1, true, false, false, false, false",
    "7, 'j', 'not a jid@@', 'd', 3, true, false, false, false, false",
    "8, 'g', 'Friends', 'a', 1, true, false, false, false, false",
    "8, 's', 'both', 'a', 2, false, false, true, true, false",
    "8, 'n', '', 'd', 3, false, false, false, false, true",
    "8, 'x', '', 'd', 4, true, false, false, false, false",
    "8, 'j', 'mallory@example.net', 'a', 0, false, false, false, false, false",
    "9, 'n', '', 'd', 1, true, false, false, false, false",
  ].map((values) => `INSERT INTO privacy_list_data VALUES (${values})`),
  "INSERT INTO mam_server_user VALUES (1, 'example.com', 'bob')",
  `INSERT INTO pubsub_node VALUES (${OF_ALICE}, 'urn:xmpp:avatar:data')`,
  "INSERT INTO pubsub_node VALUES ('pubsub.example.com', '', 'news')",
  `INSERT INTO offline_message VALUES (2, ${1000 * NOW}, NULL, ${OF_ALICE}, 'bob@example.com/x', ` +
  `'<message to="alice@example.com" type="chat"><body>two ä</body></message>')`,
  `INSERT INTO offline_message VALUES (1, ${1000 * NOW}, ${1000 * NOW + 900_000}, ${OF_ALICE}, ` +
  `'carol@example.com', '<message from="bob@example.com/x"><body>one</body></message>')`,
  `INSERT INTO offline_message VALUES (3, ${1000 * NOW}, ${1000 * NOW}, ${OF_ALICE}, ` +
  `'bob@example.com', '<message><body>expired</body></message>')`,
  `INSERT INTO offline_message VALUES (4, 1, NULL, ${OF_ALICE}, 'bob@example.com', '<message')`,
  ...[99_999_999_999_999n, 2n ** 63n - 1n].map((time, i) =>
    `INSERT INTO offline_message VALUES (${6 + i}, ${time}, ${time}, 'example.com', 'bob', ` +
    `'alice@example.com', '<message><body>at no date</body></message>')`
  ),
  `INSERT INTO offline_message VALUES (5, 1, NULL, 'example.com', 'erin', 'x', '<message/>')`,
];

for (const kind of FOREIGN_KINDS) {
  Deno.test(`MongooseimSql reads accounts from ${kind.name}`, async () => {
    await using server = await Server.start(kind);
    await using database = await foreign(server, STATEMENTS);
    const directory = await Deno.makeTempDir({ prefix: "causeway-import-" });
    await using store = await InternalStore.open({ path: join(directory, "store") });
    const take = async () => {
      using state = await StateFile.open(join(directory, "state"));
      return await importAccounts({
        source: await MongooseimSql.open(database),
        taking: {
          stores: store,
          hosts: ["example.com"],
          privateBoundsOf: () => ({ maxElements: 10, maxBytes: 10_000 }),
          privacyOptionsOf: () => ({ bounds: DEFAULT_PRIVACY_BOUNDS, hasLists: true }),
          pepLimitsOf: () => undefined,
          offlineOptionsOf: () => ({ maxMessages: 10, maxBytes: 10_000, lifetimeMs: 1_000 }),
          nowMs: () => NOW,
          derive: (password) => deriveScramCredentials(password, 16),
          verify: () => Promise.resolve(true),
          waitForOther: () => Promise.resolve(),
        },
        state,
        reportPath: join(directory, "report"),
      });
    };
    const { findings, ...counts } = await take();
    assert.deepEqual(counts, { added: 4, there: 0, refused: 3, onlySha1: 1, onlySha256: 0 });
    const report = (await Deno.readTextFile(join(directory, "report"))).trimEnd().split("\n")
      .map((line) => line.replaceAll("\t", " | "));
    assert.equal(report.length, findings);
    assert.deepEqual(
      report.toSorted(),
      [
        'alice@example.com | private | "urn:b" is not an element',
        'alice@example.com | roster | contact "not a jid@@": the address is malformed',
        'alice@example.com | roster | contact "odd@example.net": unknown subscription "X"',
        "alice@example.com | offline | 1 messages that wait are malformed, of another type than " +
        "chat and normal, or more than 10000",
        "alice@example.com | offline | 1 messages: they have expired, or there is no room",
        'alice@example.com | privacy | list "blocked": rule "3" about "not a jid@@" is malformed',
        'alice@example.com | privacy | list "friends": 1 of its rules match no stanza',
        'alice@example.com | privacy | list "friends": rule "4" about "" is malformed',
        'bob@example.com | privacy | the default list "gone" is missing',
        "bob@example.com | vcard | it is not a vCard",
        "bob@example.com | other | message archives are not taken",
        "dave@example.com | account | nobody could log in to it",
        "dave@example.com | password | the form of its keys is not known",
        "dave@example.com | password | there is no password or key that can be used",
        "erin@example.com | account | nobody could log in to it",
        "erin@elsewhere.example | account | elsewhere.example is not one of hosts",
        "- | other | table pubsub_node: 2 rows are not taken (nodes of personal eventing, in a form that " +
        "Causeway does not know)",
      ].toSorted(),
    );

    const users = store.users("example.com");
    for (const name of ["alice", "frank"]) {
      const { sha1, sha256 } = (await users.credentials(name))!;
      for (const [hash, key] of [["SHA-1", sha1!], ["SHA-256", sha256!]] as const) {
        assert.deepEqual(await derivePasswordLike(key, "padthai", hash), key, `${name} ${hash}`);
      }
    }
    const bob = (await users.credentials("bob"))!;
    assert.deepEqual(await derivePasswordLike(bob.sha1!, "misio", "SHA-1"), bob.sha1);
    assert.ok((await users.credentials("carol"))?.sha256, "keys of a plain password are derived");

    const { items } = await store.rosters().read("alice@example.com");
    assert.deepEqual(
      items.map((item) => [
        ...[item.jid, item.name, item.groups.toSorted(), item.subscription],
        ...[item.isAsking, item.isListed, item.request !== undefined],
      ]),
      [
        ["asks@example.net", "", [], "none", false, false, true],
        ["bob@example.com", "Bob ü", ["Friends", "Tea"], "both", false, true, false],
        ["both@example.net", "", [], "none", true, true, true],
        ["to@example.net", "", [], "to", false, true, false],
      ],
    );
    assert.match(new TextDecoder().decode(items[0]!.request), /<status>let me in<\/status>/);
    assert.equal(
      await store.vcards("example.com").read("alice"),
      "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>",
    );
    const element = { namespace: "urn:a", name: "a" };
    const own = await store.privateStorage("example.com").read("alice", element);
    assert.equal(own, "<a xmlns='urn:a'><b/></a>");
    const privacy = await store.privacyLists("example.com").read("alice");
    assert.equal(privacy.defaultName, "blocked");
    assert.deepEqual(privacy.lists.toSorted((a, b) => a.name < b.name ? -1 : 1), [
      {
        name: "blocked",
        xml: "<list xmlns='jabber:iq:privacy' name='blocked'>" +
          "<item type='jid' value='spam.example.net' action='deny' order='1'/>" +
          "<item type='jid' value='mallory@example.net' action='deny' order='2'/></list>",
      },
      {
        name: "friends",
        xml: "<list xmlns='jabber:iq:privacy' name='friends'>" +
          "<item type='group' value='Friends' action='allow' order='1'/>" +
          "<item type='subscription' value='both' action='allow' order='2'><message/>" +
          "<presence-in/></item><item action='deny' order='3'><presence-out/></item></list>",
      },
    ]);
    assert.deepEqual(await store.lastLogouts("example.com").read("alice"), {
      atMs: 1_600_000_000_000,
      status: "gone",
    });
    const waiting = await store.offlineMessages("example.com").all("alice");
    const delay = "<delay xmlns='urn:xmpp:delay' from='example.com' " +
      "stamp='2023-11-14T22:13:20.000Z'>Offline storage</delay>";
    assert.deepEqual(waiting.map(({ stanza }) => new TextDecoder().decode(stanza)), [
      "<message from='bob@example.com/x' to='alice@example.com'><body>one</body>" +
      `${delay}</message>`,
      "<message to='alice@example.com' type='chat' from='bob@example.com/x'>" +
      `<body>two ä</body>${delay}</message>`,
    ]);
    assert.deepEqual(waiting.map(({ sentAtMs }) => sentAtMs), [NOW, NOW]);
    const late = await store.offlineMessages("example.com").all("bob");
    assert.equal(late.length, 2, "with times that are none");
    await Deno.remove(join(directory, "report"));
    const again = await take();
    assert.deepEqual([again.added, again.there, again.refused], [0, 4, 3]);

    const many = Array.from({ length: 250 }, (_, i) => `('many.example', 'user${i}', 'x', NULL)`);
    await using paged = await foreign(server, [
      `CREATE TABLE users (${TABLES["users"]})`,
      `INSERT INTO users VALUES ${many.join(", ")}`,
    ]);
    const source = await MongooseimSql.open(paged);
    const positions = (await Array.fromAsync(source.items(undefined))).map((each) => each.position);
    assert.equal(new Set(positions).size, 250);
    const rest = (await Array.fromAsync(source.items(positions[119]))).map((each) => each.position);
    assert.deepEqual(rest, positions.slice(120), "continues behind a position");

    // As large as a text of MySQL may be.
    const [long, large] = ["repeat('x', 60000)", "concat('<a>', repeat('y', 60000), '</a>')"];
    const elements = Array.from({ length: 300 }, (_, i) => `(${OF_ALICE}, 'urn:${i}', ${large})`);
    await using bulky = await foreign(server, [
      ...Object.entries(TABLES).map(([name, columns]) => `CREATE TABLE ${name} (${columns})`),
      `INSERT INTO users VALUES (${OF_ALICE}, 'x', NULL)`,
      `INSERT INTO rosterusers VALUES (${OF_ALICE}, 'bob@example.com', ${long}, 'B', 'I', ${long})`,
      `INSERT INTO rostergroups VALUES (${OF_ALICE}, 'bob@example.com', ${long})`,
      `INSERT INTO last VALUES (${OF_ALICE}, 1600000000, ${long})`,
      `INSERT INTO private_storage VALUES ${elements.join(", ")}`,
    ]);
    let [bytes, longest] = [0, 0];
    const measured = {
      driver: bulky.driver,
      place: bulky.place,
      async query(sql: string, values?: readonly (string | number)[]) {
        const rows = await bulky.query(sql, values);
        bytes += JSON.stringify(rows).length;
        if (!sql.includes("private_storage")) {
          longest = Math.max(longest, ...rows.map((row) => JSON.stringify(row).length));
        }
        return rows;
      },
    };
    const [bulk] = await Array.fromAsync((await MongooseimSql.open(measured)).items(undefined));
    assert.ok(bytes < 17_000_000, `${bytes} bytes were read of one account`);
    assert.ok(longest < 3_000, `a row of ${longest} bytes was read`);
    assert.ok(bulk?.item.kind === "account");
    assert.deepEqual(bulk.item.account.roster.map(({ jid, name }) => [jid, name]), [
      ["bob@example.com", ""],
    ]);
    const reasons = bulk.item.findings.map(({ kind, reason }) => `${kind} | ${reason}`);
    assert.ok(
      reasons.includes("private | elements after the first 16777216 bytes are not read"),
      reasons.join(),
    );

    // The last contacts come first, as a database without an order gives them.
    const contacts = (account: string, count: number) =>
      Array.from({ length: count }, (_, i) => `${count - i}`.padStart(5, "0"))
        .map((number) => `(${account}, 'c${number}@example.net', '', 'B', 'N', '')`).join(", ");
    await using popular = await foreign(server, [
      ...["users", "rosterusers"].map((name) => `CREATE TABLE ${name} (${TABLES[name]})`),
      `INSERT INTO users VALUES (${OF_ALICE}, 'x', NULL), ('example.com', 'bob', 'x', NULL)`,
      `INSERT INTO rosterusers VALUES ${contacts(OF_ALICE, 11_001)}`,
      `INSERT INTO rosterusers VALUES ${contacts("'example.com', 'bob'", 11_000)}`,
    ]);
    const read = await Array.fromAsync((await MongooseimSql.open(popular)).items(undefined));
    const found = read.map(({ item }) => {
      assert.ok(item.kind === "account");
      const jids = item.account.roster.map(({ jid }) => jid).toSorted();
      return [jids.length, jids.at(-1), item.findings.map(({ reason }) => reason).join()];
    });
    assert.deepEqual(found, [
      [11_000, "c11000@example.net", "contacts after the first 11000 are not read"],
      [11_000, "c11000@example.net", ""],
    ]);

    const unreadable = ["users", "privacy_list", "privacy_default_list"];
    await using partial = await foreign(
      server,
      unreadable.map((name) => `CREATE TABLE ${name} (${TABLES[name]})`),
    );
    await assert.rejects(MongooseimSql.open(partial), {
      code: "migration/no-tables",
      message: /: privacy_list_data is missing, or this role may not read it: grant it SELECT/,
    });

    await using old = await foreign(server, ["CREATE TABLE users (username text, password text)"]);
    await assert.rejects(MongooseimSql.open(old), {
      code: "migration/no-tables",
      message:
        /its table users has no column server, pass_details, as MongooseIM has it since 5\.0$/,
    });
    await Deno.remove(directory, { recursive: true });
  });
}
