import assert from "node:assert/strict";
import { join } from "node:path";
import { CausewayError } from "../base/mod.ts";
import { importAccounts } from "./import_accounts.ts";
import { StateFile } from "./import_state.ts";
import { PieFiles } from "./pie_files.ts";
import type { TakingDeps } from "./taking_deps.ts";
import {
  Destination,
  document,
  HOST,
  methodOf,
  NOTHING,
  Numbered,
  storesWith,
  user,
} from "./testing/destination.ts";

Deno.test("importAccounts() refuses to continue with another source", async () => {
  await using destination = await Destination.open();
  const source = new Numbered();
  source.breaksAt = 20;
  await assert.rejects(destination.import(source));
  const path = await destination.write(document("<user name='alice' password='x'/>"));
  await assert.rejects(destination.importFiles(path), { code: "migration/state" });
});

Deno.test("importAccounts() continues with the hosts and databases alone that it began with", async () => {
  await using destination = await Destination.open();
  const source = new Numbered();
  const run = async (destinationId: string) => {
    using state = await StateFile.open(destination.path("state"));
    return await importAccounts({
      source,
      taking: destination.taking,
      state,
      destination: destinationId,
      reportPath: destination.path("report"),
    });
  };
  source.breaksAt = 20;
  await assert.rejects(run("one"), { message: "the machine is off" });
  source.breaksAt = Infinity;
  await assert.rejects(run("other"), {
    code: "migration/state",
    message:
      /state: it belongs to an import with another configuration, .* remove it to begin anew/,
  });
  assert.equal((await run("one")).added, 40);
  assert.equal(destination.report().length, 40, "with the lines of the first part");
});

Deno.test("importAccounts() leaves a vCard out that a directory keeps, and takes the rest", async () => {
  await using destination = await Destination.open();
  const vcards = {
    isReadOnly: true,
    read: () => Promise.resolve(undefined),
    write: () => Promise.reject(new Error("the directory is not written to")),
    remove: () => Promise.reject(new Error("the directory is not written to")),
  };
  const taking: TakingDeps = {
    ...destination.taking,
    stores: storesWith(destination.store, { vcards }),
  };
  const path = await destination.write(
    document(user("alice", "<vCard xmlns='vcard-temp'><FN>A</FN></vCard>"), user("bob", "")),
  );
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, added: 2, findings: 1 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | vcard | the host's vCards are kept in a directory",
  ]);
});

Deno.test("importAccounts() takes all but the credentials of accounts in a directory", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  const refuse = () =>
    Promise.reject(
      new CausewayError("storage/managed-elsewhere", "The directory has the accounts"),
    );
  const existing = (names: readonly string[]) =>
    Promise.resolve(new Map(names.filter((name) => name !== "zoe").map((name) => [name, "1"])));
  const users = {
    checkPassword: () => Promise.resolve(undefined),
    credentials: refuse,
    add: refuse,
    setPassword: refuse,
    complete: refuse,
    remove: refuse,
    existing,
    exists: async (name: string) => (await existing([name])).size > 0,
  };
  const taking = { ...destination.taking, stores: storesWith(store, { users }) };
  const content = (text: string) =>
    `<query xmlns='jabber:iq:roster'><item jid='friend@example.net' name='${text}'/></query>` +
    `<vCard xmlns='vcard-temp'><FN>${text}</FN></vCard>` +
    "<offline-messages><message xmlns='jabber:client' from='bob@example.com' type='chat'>" +
    `<body>${text}</body></message></offline-messages>`;
  const path = await destination.write(
    document(
      user("alice", content("A")),
      user("zoe", content("Z")),
      "<user name='bob'><query xmlns='jabber:iq:private'><a xmlns='urn:a'/></query></user>",
    ),
  );
  const import_ = async () => await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(await import_(), { ...NOTHING, there: 2, refused: 1, findings: 3 });
  const password = "the host's accounts are kept in a directory, which checks the password itself";
  const others = [
    "zoe@example.com | account | the directory that keeps the host's accounts has none of this name",
    "bob@example.com | password | there is no password or key that can be used",
  ];
  assert.deepEqual(destination.report(), [`alice@example.com | password | ${password}`, ...others]);
  const { items } = await store.rosters().read("alice@example.com");
  assert.deepEqual(items.map(({ jid, name }) => [jid, name]), [["friend@example.net", "A"]]);
  assert.match((await store.vcards(HOST).read("alice"))!, /<FN>A</);
  assert.equal((await store.privateStorage(HOST).all("bob")).length, 1);
  assert.match((await destination.waiting("alice")).join(), /<body>A</);
  assert.deepEqual((await store.rosters().read("zoe@example.com")).items, []);
  assert.deepEqual(await destination.waiting("zoe"), []);

  await store.offlineMessages(HOST).removeAll("alice"); // she has got them
  assert.deepEqual(await import_(), { ...NOTHING, there: 2, refused: 1, findings: 4 });
  assert.deepEqual(destination.report(), [
    `alice@example.com | password | ${password}`,
    "alice@example.com | offline | 1 messages: the account is here, and may have got them already",
    ...others,
  ]);
  assert.deepEqual(await destination.waiting("alice"), []);
});

Deno.test("importAccounts() leaves out what is too large for the database, and takes the rest", async () => {
  await using destination = await Destination.open();
  const { store } = destination;
  /** Refuses calls in which a value has the word. */
  const narrow = <T extends object>(part: T): T =>
    new Proxy(part, {
      get: (target, key) => {
        const method = methodOf(target, key);
        return method && (async (...values: unknown[]) => {
          const text = JSON.stringify(
            values,
            (_, each) => each instanceof Uint8Array ? new TextDecoder().decode(each) : each,
          );
          if (!text.includes("LARGE")) return await method(...values);
          throw new CausewayError("storage/value-too-large", "Cannot store so much");
        });
      },
    });
  const taking: TakingDeps = {
    ...destination.taking,
    stores: storesWith(store, {
      rosters: narrow(store.rosters()),
      vcards: narrow(store.vcards(HOST)),
      privateStorage: narrow(store.privateStorage(HOST)),
      offlineMessages: narrow(store.offlineMessages(HOST)),
    }),
    privateBoundsOf: () => ({ maxElements: 2, maxBytes: 1_048_576 }),
  };
  const item = (jid: string, name: string) => `<item jid='${jid}' name='${name}'/>`;
  const message = (text: string) =>
    `<message xmlns='jabber:client' from='bob@example.com/x' type='chat'><body>${text}</body>` +
    "</message>";
  const path = await destination.write(
    document(
      user(
        "alice",
        `<query xmlns='jabber:iq:roster'>${item("a@example.net", "A")}` +
          `${item("b@example.net", "LARGE")}${item("c@example.net", "C")}</query>` +
          "<vCard xmlns='vcard-temp'><FN>LARGE</FN></vCard><query xmlns='jabber:iq:private'>" +
          "<a xmlns='urn:a'/><b xmlns='urn:b'>LARGE</b><c xmlns='urn:c'/><d xmlns='urn:d'/></query>" +
          `<offline-messages>${["1", "LARGE", "2", "LARGE"].map(message).join("")}` +
          "</offline-messages>",
      ),
      user("bob"),
    ),
  );
  const counts = await destination.import(await PieFiles.open([path]), taking);
  assert.deepEqual(counts, { ...NOTHING, added: 2, findings: 5 });
  assert.deepEqual(destination.report(), [
    "alice@example.com | offline | 2 messages: they are too large for the database",
    "alice@example.com | roster | contact b@example.net: it is too large for the database",
    "alice@example.com | vcard | it is too large for the database",
    "alice@example.com | private | element b of urn:b: it is too large for the database",
    "alice@example.com | private | element d of urn:d: the account has no room for it",
  ]);
  const { items } = await store.rosters().read("alice@example.com");
  assert.deepEqual(items.map(({ jid }) => jid), ["a@example.net", "c@example.net"]);
  const texts = (await destination.waiting("alice")).map((text) => /<body>(.*?)</.exec(text)![1]);
  assert.deepEqual(texts, ["1", "2"]);
  assert.equal((await store.privateStorage(HOST).all("alice")).length, 2);
});

for (const name of ["report", "state.new"]) {
  Deno.test(`importAccounts() names its file when it cannot write the ${name}`, async () => {
    await using destination = await Destination.open();
    await Deno.mkdir(destination.path(name));
    const path = await destination.write(document(user("alice")));
    const file = destination.path(name.replace(".new", ""));
    await assert.rejects(destination.importFiles(path), (thrown: CausewayError) => {
      assert.equal(thrown.code, "migration/unwritable");
      return thrown.message.startsWith(`Cannot write ${file}: `);
    });
    await Deno.remove(destination.path(name));
    assert.equal((await destination.importFiles(path)).added, 1);
  });
}

Deno.test("importAccounts() writes over no file but a report, and takes nothing then", async () => {
  await using destination = await Destination.open();
  const path = await destination.write(document(user("alice"), user("bob")));
  const report = destination.path("report");
  const refused = {
    code: "migration/unwritable",
    message:
      `Cannot write ${report}: it is there, and is no report of an import; name another file with ` +
      "--report",
  };
  const line = "alice@example.com\tvcard\tit has more than 1048576 bytes\n";
  const others = ["notes of somebody\n", "notes", `${line}notes\n`, "a\tb\tc\n"];
  for (const text of others) {
    await Deno.writeTextFile(report, text);
    await assert.rejects(destination.importFiles(path), refused);
    assert.deepEqual(await destination.store.users(HOST).list(), []);
    assert.equal(await Deno.readTextFile(report), text);
  }

  // An import that continues has its own report alone.
  await Deno.writeTextFile(report, line.repeat(2_000)); // of an earlier import
  const numbered = new Numbered();
  numbered.breaksAt = 20;
  await assert.rejects(destination.import(numbered), { message: "the machine is off" });
  const written = await Deno.readTextFile(report);
  assert.ok(!written.includes(line));
  await Deno.rename(report, destination.path("first.report"));
  const other = destination.path("other.report");
  await Deno.writeTextFile(other, "notes of somebody\n".repeat(1000));
  const running = async (reportPath: string) => {
    using state = await StateFile.open(destination.path("state"));
    const { taking } = destination;
    return await importAccounts({ source: numbered, taking, state, reportPath });
  };
  numbered.breaksAt = Infinity;
  await assert.rejects(running(other), { code: "migration/unwritable" });
  assert.equal((await Deno.stat(other)).size, 18_000);
  await Deno.rename(destination.path("first.report"), report);
  assert.equal((await running(report)).findings, 40);
  assert.ok((await Deno.readTextFile(report)).startsWith(written));
});

Deno.test("importAccounts() refuses one file for its state and its report", async () => {
  await using destination = await Destination.open();
  const source = await PieFiles.open([await destination.write(document(user("alice")))]);
  using state = await StateFile.open(destination.path("state"));
  const reportPath = join(destination.path("none"), "..", "state");
  const { taking } = destination;
  await assert.rejects(importAccounts({ source, taking, state, reportPath }), {
    code: "migration/unwritable",
    message: /it cannot be both the state of the import and its report$/,
  });
  assert.deepEqual(await destination.store.users(HOST).list(), []);
});

/** Parts of accounts that cannot be taken, with the line of the report for each. */
const NOT_TAKEN: readonly [what: string, users: string, lines: readonly string[]][] = [
  ["no name", "<user password='x'/>", ["@example.com | account | the address is malformed"]],
  ["a malformed name", "<user name='a@b'/>", [
    "a@b@example.com | account | the address is malformed",
  ]],
  ["no login", "<user name='alice'/>", [
    "alice@example.com | password | there is no password or key that can be used",
    "alice@example.com | account | nobody could log in to it",
  ]],
  [
    "an unknown part and an unknown key",
    "<user name='alice'><new xmlns='urn:new'/><scram-credentials xmlns='urn:xmpp:pie:0#scram' " +
    "mechanism='SCRAM-SHA-512'/><scram-credentials xmlns='urn:xmpp:pie:0#scram' " +
    "mechanism='SCRAM-SHA-1'><iter-count>1e9</iter-count></scram-credentials></user>",
    [
      'alice@example.com | other | "new" of "urn:new" is not known',
      'alice@example.com | password | a key for "SCRAM-SHA-512" cannot be used',
      "alice@example.com | password | the key for SHA-1 is malformed",
      "alice@example.com | password | there is no password or key that can be used",
      "alice@example.com | account | nobody could log in to it",
    ],
  ],
  [
    "a file that lies elsewhere",
    "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='../../etc/passwd'/>",
    [],
  ],
];

for (const [what, users, lines] of NOT_TAKEN) {
  Deno.test(`importAccounts() reports ${what}`, async () => {
    await using destination = await Destination.open();
    await destination.importFiles(await destination.write(document(users)));
    const report = destination.report();
    if (lines.length > 0) assert.deepEqual(report, lines);
    else assert.match(report.join(), /^- \| other \| the file "..\/..\/etc\/passwd" is not read/);
    assert.deepEqual(await destination.store.users(HOST).list(), []);
  });
}

Deno.test("importAccounts() leaves a part out that is too large, and takes the rest", async () => {
  await using destination = await Destination.open();
  const large = `<query xmlns='jabber:iq:private'><a xmlns='urn:a'>${
    "<b/>".repeat(200_000)
  }</a></query>`;
  const deep = `<vCard xmlns='vcard-temp'>${"<a>".repeat(200)}${"</a>".repeat(200)}</vCard>`;
  const attributes = Array.from({ length: 1001 }, (_, i) => `a${i}=''`).join(" ");
  const wide =
    `<offline-messages><message xmlns='jabber:client' ${attributes}/></offline-messages>`;
  const photo = `<vCard xmlns='vcard-temp'><PHOTO>${"A".repeat(9_000_000)}</PHOTO></vCard>`;
  const path = await destination.write(
    document(
      `<user name='alice' password='x'>${large}${deep}${wide}</user>`,
      `<user name='carol' password='x'>${photo}${"x".repeat(5_000_000)}</user>`,
      "<user name='bob' password='x'><vCard xmlns='vcard-temp'><FN>Bob</FN></vCard></user>",
    ),
  );
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, added: 3, findings: 4 });
  assert.deepEqual(destination.report(), [
    'alice@example.com | private | "query" of "jabber:iq:private": it is too large, or the account is',
    'alice@example.com | vcard | "vCard" of "vcard-temp": it is too large, or the account is',
    'alice@example.com | offline | "message" of "jabber:client": it is too large, or the account is',
    "carol@example.com | vcard | it has more than 1048576 bytes",
  ]);
  assert.ok(await destination.store.vcards(HOST).read("bob"));
});

/** Documents that are refused, with the reason. The account before the mistake is taken. */
const REFUSED: readonly [what: string, text: string | Uint8Array, reason: RegExp][] = [
  ["entities", `<!DOCTYPE a [<!ENTITY b "c">]>${document()}`, /document type declaration/],
  ["an unknown entity", document("<user name='&b;'/>"), /undefined entity/],
  ["nesting", document("<user name='bob'>" + "<a>".repeat(10_001)), /nested deeper than 10000/],
  ["an endless tag", `<server-data ${"x".repeat(5_000_000)}`, /more than 4194304/],
  [
    "many attributes",
    document(`<user name='bob' ${Array.from({ length: 1001 }, (_, i) => `a${i}=''`).join(" ")}/>`),
    /more than 1000 attributes/,
  ],
  ["an early end", document().slice(0, -3), /unclosed tag|unexpected end/],
  ["bytes that are not UTF-8", Uint8Array.of(0x3c, 0xff), /not UTF-8/],
  ["another encoding", "<?xml version='1.0' encoding='latin1'?><a/>", /encoding latin1/],
  ["nothing", "", /no element|document must contain a root element/],
];

for (const [what, text, reason] of REFUSED) {
  Deno.test(`importAccounts() refuses a document with ${what}`, async () => {
    await using destination = await Destination.open();
    const path = await destination.write(text);
    await assert.rejects(destination.importFiles(path), {
      code: "migration/malformed",
      message: reason,
    });
  });
}

Deno.test("importAccounts() bounds the findings of one account", async () => {
  await using destination = await Destination.open();
  const path = await destination.write(
    document(user("alice", "<new xmlns='urn:new'/>".repeat(1100))),
  );
  const counts = await destination.importFiles(path);
  assert.deepEqual(counts, { ...NOTHING, added: 1, findings: 1001 });
  assert.equal(
    destination.report().at(-1),
    "alice@example.com | other | 100 more parts were not taken",
  );
});
