import assert from "node:assert/strict";
import { AWKWARD_TEXTS } from "../testing/awkward_texts.ts";
import { conformanceItem } from "../testing/roster_store_conformance.ts";
import { conformanceCredentials } from "../testing/user_store_conformance.ts";
import { RIAK_SCHEMAS, RiakBackend } from "./riak_backend.ts";
import { beginsWith, isText } from "./solr_text.ts";
import { RiakFixture, riakPool } from "./testing/riak.ts";
import { AdminProgram, RiakDouble } from "../../../harness/databases/riak/mod.ts";

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];

Deno.test("a server that is killed is left out, and the last one gives a named error", async () => {
  await using fixture = await RiakFixture.open({ nodes: 2 });
  const [one, other] = fixture.double.nodes;
  const stores = fixture.stores([one!.port, other!.port]);
  const users = stores.users("example.com");
  await users.add("alice", conformanceCredentials(1));
  await one!.stop();
  assert.equal(await users.exists("alice"), true);
  await users.add("bob", conformanceCredentials(2));
  assert.equal(stores.checkFailure(), undefined);
  await other!.stop();
  await assert.rejects(users.exists("alice"), {
    code: "storage/unreachable",
    retryable: true,
    message: /^Cannot read an account from the database riak\.default \(Riak at 127\.0\.0\.1:\d+, /,
  });
  assert.ok(stores.checkFailure());
  await other!.start();
  assert.deepEqual(await users.list(), ["alice", "bob"]);
  assert.equal(stores.checkFailure(), undefined);
});

Deno.test("a change whose answers are lost is made once, when it is tried again", async () => {
  await using fixture = await RiakFixture.open({ nodes: 2 });
  const [deaf, sound] = fixture.double.nodes;
  deaf!.losesAnswers = true;
  const rosters = fixture.stores([deaf!.port, sound!.port]).rosters();
  const item = conformanceItem(BOB);
  assert.equal(await rosters.write(ALICE, { expected: 0, contact: BOB, item }), 1);
  assert.deepEqual((await rosters.read(ALICE)).items, [{ ...item, version: 1 }]);
  assert.equal(await rosters.write(ALICE, { expected: 0, contact: CAROL, item }), undefined);
});

Deno.test("a server that does not answer costs its time limit, and no more", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const stores = fixture.stores([node.port], {
    statementTimeoutMs: 100,
    workers: 1,
    maxWaiting: 1,
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  node.onRequest = () => promise;
  const read = () => stores.privateStorage("example.com").all("alice");
  const first = read();
  await assert.rejects(Promise.all([first, read(), read()]), { code: "storage/pool-full" });
  await assert.rejects(first, { code: "storage/timeout", retryable: true });
  node.onRequest = () => {};
  resolve();
});

Deno.test("answers that mean failures have names", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().lastLogouts("example.com");
  for (
    const [status, code] of [
      [502, "storage/unreachable"],
      [503, "storage/overloaded"],
      [504, "storage/timeout"],
      [401, "storage/denied"],
      [413, "storage/value-too-large"],
      [500, "storage/failed"],
      [302, "storage/failed"],
    ] as const
  ) {
    node.refusal = { status, body: "Error:\n{what}" };
    await assert.rejects(store.read("alice"), { code });
  }
  node.refusal = undefined;
  fixture.double.site.types.clear();
  await assert.rejects(store.read("alice"), {
    code: "storage/schema-missing",
    message: /Unknown bucket type: last; run `causeway backends prepare`$/,
  });
  await assert.rejects(fixture.stores().probe(), { code: "storage/schema-missing" });
});

Deno.test("a server wants the login", async () => {
  await using double = await RiakDouble.start({ login: { user: "u", password: "pä" } });
  const { options, name } = riakPool([double.port]);
  const check = (password: string) =>
    new RiakBackend({
      name,
      options: { ...options, username: "u", password: { reveal: () => password } },
    }).check();
  assert.match((await check("wrong")).problems[0]!, /it denies access \(status 401\)/);
  assert.match((await check("pä")).problems[0]!, /the search index vcard is missing/);
});

Deno.test("clusters that merge keep changes of different contacts, and one of two of the same", async () => {
  await using fixture = await RiakFixture.open({ sites: 2 });
  const [here, there] = fixture.double.nodes.map(({ port }) => fixture.stores([port]).rosters());
  const put = async (store: typeof here, jid: string, name: string) => {
    const { version: expected } = await store!.find(ALICE, jid);
    const item = conformanceItem(jid, { name, groups: [name] });
    await store!.write(ALICE, { expected, contact: jid, item });
  };
  await put(here, "common@example.com", "before");
  fixture.double.merge();
  await put(here, BOB, "here");
  await put(there, CAROL, "there");
  await put(here, "common@example.com", "here");
  await put(there, "common@example.com", "there");
  fixture.double.merge();
  const rosters = await Promise.all([here, there].map((store) => store!.read(ALICE)));
  assert.deepEqual(rosters[0], rosters[1]);
  const byJid = new Map(rosters[0]!.items.map((item) => [item.jid, item]));
  assert.deepEqual([byJid.get(BOB)?.name, byJid.get(CAROL)?.name], ["here", "there"]);
  const common = byJid.get("common@example.com")!;
  assert.deepEqual(common.groups, [common.name], "one change, and that whole");
  assert.notEqual(common.name, "before");
  // Changes go on from there.
  await put(here, BOB, "again");
  fixture.double.merge();
  assert.equal((await there!.find(ALICE, BOB)).item?.name, "again");
});

Deno.test("vCards are found once the index has committed them", async () => {
  await using fixture = await RiakFixture.open();
  fixture.double.site.commitsAtOnce = false;
  const store = fixture.stores().vcards("example.com");
  const card = "<vCard xmlns='vcard-temp'><CLASS><PUBLIC/></CLASS><FN>Alice</FN></vCard>";
  await store.write("alice", card);
  const find = () => store.search([{ field: "fn", text: "alice" }], { limit: 9, findsAll: false });
  assert.deepEqual(await find(), []);
  fixture.double.site.indexes.get("vcard")!.commit();
  assert.equal((await find()).length, 1);
  assert.deepEqual(fixture.double.site.indexes.get("vcard")!.failures, []);
});

Deno.test("no text means anything to Solr's parser", async () => {
  await using fixture = await RiakFixture.open();
  const store = fixture.stores().vcards("example.com");
  const texts = [
    ...AWKWARD_TEXTS.filter((text) => text !== "" && !text.includes("\0")),
    ...['a" OR "b', "*:*", "x AND NOT y", "[* TO *]", "a\\", "(", "{!lucene}x", "a/b~2^3"],
  ];
  for (const [i, text] of texts.entries()) {
    const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    await store.write(
      `user${i}`,
      `<vCard xmlns='vcard-temp'><CLASS><PUBLIC/></CLASS><FN>${escaped}</FN></vCard>`,
    );
  }
  for (const [i, text] of texts.entries()) {
    const find = async (wanted: string) =>
      (await store.search([{ field: "fn", text: wanted }], { limit: 100, findsAll: false }))
        .map(({ localpart }) => localpart);
    if (!text.endsWith("*")) assert.deepEqual(await find(text), [`user${i}`], text);
    assert.ok((await find(`${text}*`)).includes(`user${i}`), text);
  }
  assert.equal(isText("f", 'a"\\'), 'f:"a\\"\\\\"');
  assert.equal(beginsWith("f", "a b"), "f:a\\ b*");
});

Deno.test("messages of a write that was cut off go when they expire", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().offlineMessages("example.com");
  node.onRequest = ({ method, url }) => {
    if (method === "POST" && url.includes("/types/causeway/")) node.refusal = { status: 503 };
  };
  const message = {
    sender: BOB,
    stanza: new Uint8Array(3),
    sentAtMs: 1,
    expiresAtMs: 1_000,
  };
  const keep = () => store.keep("alice", [message], { maxMessages: 9, maxBytes: 99 });
  await assert.rejects(keep(), { code: "storage/overloaded" });
  node.onRequest = () => {};
  node.refusal = undefined;
  assert.deepEqual(await store.all("alice"), []);
  assert.equal(fixture.double.site.keysOf("offline").length, 1);
  assert.equal(await store.removeExpired(1_000), 1);
  assert.equal(fixture.double.site.keysOf("offline").length, 0);
});

Deno.test("messages that only the index names do not hide others that have expired", async () => {
  await using fixture = await RiakFixture.open();
  const { site, nodes: [node] } = fixture.double;
  const store = fixture.stores([node!.port], { workers: 1 }).offlineMessages("example.com");
  const message = { sender: BOB, stanza: new Uint8Array(3), sentAtMs: 1, expiresAtMs: 1_000 };
  const bounds = { maxMessages: 999, maxBytes: 9_999 };
  await store.keep("alice", Array.from({ length: 210 }, () => message), bounds);
  const lost = new Set(site.keysOf("offline").map((key) => key.split("/")[1]!));
  await store.keep("carol", [{ ...message, expiresAtMs: 2_000 }], bounds);
  node!.onRequest = ({ url }) => {
    const key = /\/types\/offline\/.*\/keys\/(\w+)/.exec(url)?.[1];
    node!.refusal = key !== undefined && lost.has(key) ? { status: 404 } : undefined;
  };
  assert.equal(await store.removeExpired(3_000), 1);
  assert.equal(await store.removeExpired(3_000), 0);
  assert.deepEqual(await store.all("carol"), []);
});

Deno.test("a vCard is replaced once, when the answers to its writes are lost", async () => {
  await using fixture = await RiakFixture.open({ nodes: 2 });
  const [deaf, sound] = fixture.double.nodes;
  const [before, after] = [
    "<vCard xmlns='vcard-temp'/>",
    "<vCard xmlns='vcard-temp'><FN>A</FN></vCard>",
  ];
  for (const xml of [after, undefined]) {
    const store = fixture.stores([deaf!.port, sound!.port]).vcards("example.com");
    await store.write("alice", before);
    deaf!.onRequest = ({ method }) => {
      deaf!.losesAnswers = method !== "GET";
    };
    assert.equal(await store.replace("alice", before, xml), true);
    assert.equal(await store.read("alice"), xml);
    deaf!.onRequest = () => {};
    deaf!.losesAnswers = false;
  }
});

Deno.test("a vCard that another node has replaced meanwhile is not removed", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const [store, other] = [0, 1].map(() => fixture.stores().vcards("example.com"));
  const [before, after] = [
    "<vCard xmlns='vcard-temp'/>",
    "<vCard xmlns='vcard-temp'><FN>A</FN></vCard>",
  ];
  await store!.write("alice", before);
  node.onRequest = async ({ method }) => {
    if (method !== "DELETE") return;
    node.onRequest = () => {};
    await other!.write("alice", after);
  };
  assert.equal(await store!.replace("alice", before, undefined), false);
  assert.equal(await store!.read("alice"), after);
});

Deno.test("of siblings the newest counts, and the next change resolves them", async () => {
  await using fixture = await RiakFixture.open();
  const { site, port } = fixture.double;
  // As bucket types were made before, and as somebody may make them by hand.
  for (const type of ["last", "vcard"]) {
    site.types.admin(["bucket-type", "update", type, '{"props":{"allow_mult":true}}']);
  }
  const stores = fixture.stores();
  const last = stores.lastLogouts("example.com");
  const logout = (atMs: number) => last.note([{ localpart: "alice", atMs, status: `${atMs}` }]);
  await logout(1);
  const url = `http://127.0.0.1:${port}/types/last/buckets/_example.com/keys/_alice`;
  const ask = async (method: string, value?: unknown) => {
    const response = await fetch(url, {
      method,
      headers: { "Content-Type": "application/json" },
      ...(value === undefined ? {} : { body: JSON.stringify(value) }),
    });
    await response.body?.cancel();
    return response.status;
  };
  site.advance(1_000);
  await ask("PUT", { atMs: 2, status: "2" });
  assert.equal(await ask("GET"), 300);
  assert.deepEqual(await last.read("alice"), { atMs: 2, status: "2" });
  await logout(3);
  assert.equal(await ask("GET"), 200);
  assert.deepEqual(await last.read("alice"), { atMs: 3, status: "3" });
  const vcards = stores.vcards("example.com");
  const card = (name: string) => `<vCard xmlns='vcard-temp'><FN>${name}</FN></vCard>`;
  for (const name of ["A", "B"]) {
    site.advance(1_000);
    await vcards.write("alice", card(name));
  }
  assert.equal(await vcards.read("alice"), card("B"));
  assert.equal(await vcards.replace("alice", card("A"), undefined), false);
  assert.equal(await vcards.replace("alice", card("B"), undefined), true);
  assert.equal(await vcards.read("alice"), undefined);
  assert.deepEqual(site.keysOf("vcard"), []);
});

Deno.test("a removal that is newer than its sibling counts, and what is written then is alone", async () => {
  await using fixture = await RiakFixture.open();
  const { site } = fixture.double;
  site.types.admin(["bucket-type", "update", "private", '{"props":{"allow_mult":true}}']);
  const place = { type: "private", bucket: "_example.com", key: "_alice" };
  const empty = { contentType: "application/json", indexes: [], meta: [] };
  const body = new TextEncoder().encode('{"elements":{"a urn:a":"<a xmlns=\'urn:a\'/>"}}');
  site.putPlain(place, { ...empty, body }, undefined);
  const clock = site.readPlain(place)!.clock;
  site.putPlain(place, { ...empty, body }, undefined);
  site.advance(1_000);
  site.delete(place, clock);
  const store = fixture.stores().privateStorage("example.com");
  assert.deepEqual(await store.all("alice"), []);
  const xml = "<b xmlns='urn:b'/>";
  const change = { namespace: "urn:b", name: "b", xml };
  const bounds = { maxElements: 9, maxBytes: 999 };
  assert.equal(await store.change("alice", [change], bounds), "done");
  assert.deepEqual(await store.all("alice"), [xml]);
});

Deno.test("secrets are made once, whoever asks first", async () => {
  await using fixture = await RiakFixture.open();
  const found = await Promise.all([0, 1, 2, 3].map(() => fixture.either().secret("pepper")));
  for (const secret of found) assert.deepEqual(secret, found[0]);
  assert.equal(found[0]!.length, 32);
  assert.notDeepEqual(await fixture.either().secret("salt"), found[0]);
});

Deno.test("prepare makes schemas, indexes and bucket types, and says what is left without the admin command", async () => {
  await using double = await RiakDouble.start();
  await using admin = await AdminProgram.start(double.site);
  const backend = new RiakBackend(riakPool([double.port]));
  const before = await backend.check();
  assert.equal(before.server?.product, "riak");
  assert.equal(before.problems.length, 14, before.problems.join("\n"));
  const plan = await backend.plan();
  assert.deepEqual(plan.slice(0, 5), [
    "PUT /search/schema/vcard (application/xml, schema/vcard.xml)",
    "PUT /search/schema/mam (application/xml, schema/mam.xml)",
    'PUT /search/index/vcard {"schema":"vcard"}',
    'PUT /search/index/mam {"schema":"mam"}',
    `riak-admin bucket-type create users '{"props":{"datatype":"map"}}'`,
  ]);
  assert.deepEqual(await backend.prepare(), plan.slice(0, 4));
  assert.deepEqual(await backend.leftover(), plan.slice(4));
  await assert.rejects(backend.prepare({ adminCommand: "/nonexistent/riak-admin" }), {
    code: "storage/failed",
  });
  await assert.rejects(backend.prepare({ adminCommand: "false" }), {
    message: /^Cannot run false bucket-type create users for the database .* exit code 1/,
  });
  // Killed in the middle: a bucket type is created and not active.
  assert.equal(
    double.site.types.admin(["bucket-type", "create", "users", '{"props":{"datatype":"map"}}'])
      .code,
    0,
  );
  await backend.prepare({ adminCommand: `env ${admin.path}` });
  assert.deepEqual(await backend.leftover(), []);
  assert.deepEqual(await backend.plan(), []);
  assert.deepEqual(await backend.check(), {
    server: { product: "riak", version: "2.2.3-0-g0000000" },
    schemaVersion: undefined,
    problems: [],
  });
});

Deno.test("check names each setting that is wrong, and prepare mends what can be mended", async () => {
  await using fixture = await RiakFixture.open();
  const { site } = fixture.double;
  const backend = new RiakBackend(riakPool([fixture.double.port]));
  site.hasSecondaryIndexes = false;
  assert.match(
    (await backend.check()).problems[0]!,
    /^secondary indexes do not work: set storage_backend = leveldb/,
  );
  site.types.admin(["bucket-type", "update", "last", '{"props":{"last_write_wins":false}}']);
  assert.deepEqual((await backend.check()).problems, [
    "the bucket type last has last_write_wins false: it must be true",
  ]);
  const mending = `riak-admin bucket-type update last '{"props":` +
    `{"last_write_wins":true,"allow_mult":false,"dvv_enabled":false}}'`;
  assert.deepEqual(await backend.leftover(), [mending]);
  site.types.admin(
    ["bucket-type", "update", "last", '{"props":{"last_write_wins":true,"allow_mult":true}}'],
  );
  assert.deepEqual((await backend.check()).problems, [
    "the bucket type last has allow_mult true: it must be false",
  ]);
  assert.deepEqual(await backend.leftover(), [mending]);
});

Deno.test("prepare refuses search schemas of others and of newer programs, and continues what was begun", async () => {
  await using double = await RiakDouble.start();
  const backend = new RiakBackend(riakPool([double.port]));
  const put = async (name: string, schema: string) => {
    const response = await fetch(`http://127.0.0.1:${double.port}/search/schema/${name}`, {
      method: "PUT",
      headers: { "Content-Type": "application/xml" },
      body: schema,
    });
    assert.equal(response.status, 204, await response.text());
  };
  const own = RIAK_SCHEMAS["mam"]!;
  const refused = async (schema: string, code: string, message: RegExp) => {
    await put("mam", schema);
    for (const attempt of [backend.plan(), backend.prepare(), backend.leftover()]) {
      await assert.rejects(attempt, { code, message });
    }
    assert.match((await backend.check()).problems.join("\n"), message);
  };
  await refused(
    own.replace("Causeway's schema 1.", ""),
    "storage/schema-foreign",
    /its search schema mam is not Causeway's$/m,
  );
  await refused(
    own.replace("Causeway's schema 1.", "Causeway's schema 2."),
    "storage/schema-too-new",
    /its search schema mam has version 2, and this program knows versions up to 1; use the newer program$/m,
  );
  await refused(
    own.replace("text_register", "words_register"),
    "storage/schema-foreign",
    /version 1 of its search schema mam is not that of this program$/m,
  );
  // One of an older program is replaced. Killed behind that, the next preparation goes on.
  await put("mam", own.replace("Causeway's schema 1.", "Causeway's schema 0."));
  const plan = await backend.plan();
  assert.match(plan[1]!, /^PUT \/search\/schema\/mam /);
  await put("vcard", RIAK_SCHEMAS["vcard"]!);
  const steps: string[] = [];
  const rest = await backend.prepare({
    progress: ({ done, total, statement }) => void steps.push(`${done} ${total} ${statement}`),
  });
  assert.deepEqual(rest, plan.slice(1, 4));
  assert.deepEqual(steps, rest.map((line, i) => `${i} 3 ${line}`));
});
