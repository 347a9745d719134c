import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { decodeSnapshot, FRAME_TYPE, meshFrame, positionFrame } from "../wire/mod.ts";
import type { LeaseFields, TableRecord } from "../wire/mod.ts";
import { MAX_EPOCH, MAX_TOLD_AHEAD_US } from "./claims/hybrid_clock.ts";
import type { DatacenterBounds } from "./options.ts";
import { claim, TestAuthor } from "./testing/author.ts";
import { advance, fullJid, TestTable } from "./testing/table.ts";

const DC1 = "dc1.example.com";
const DC9 = "dc9.example.com";
const LIMIT_HITS = "causeway_datacenter_limit_hits_total";

async function started(datacenter: DatacenterBounds = {}, meshChanged = (_: string) => {}) {
  const test = new TestTable(
    { replication: "builtin", datacenter, meshChanged },
    new ManualClock(),
  );
  await test.table.start();
  return test;
}

/** Makes a node of dc9 with a lease that has sent no entries yet. */
async function node(test: TestTable, number: number, fields: Partial<LeaseFields> = {}) {
  const peer = new TestAuthor(test, 0x9000 + number, DC9, `node${number}@${DC9}`);
  await peer.say(peer.lease(fields));
  return peer;
}

/** Makes such a node that has sent a snapshot of `records`. */
async function told(test: TestTable, ...records: TableRecord[]) {
  const peer = await node(test, 1);
  await peer.say(peer.snapshot(1, ...records));
  return peer;
}

function usersOf(test: TestTable): readonly string[] {
  return Object.keys(test.publicKeys()).filter((key) => /^[^/]*@example.com$/.test(key)).sort();
}

function keysWith(test: TestTable, text: string): readonly string[] {
  return Object.keys(test.redis.dump()).filter((key) => key.includes(text));
}

function claims(from: number, count: number): TableRecord[] {
  return Array.from(
    { length: count },
    (_, i) => claim(from + i, `user${from + i}@example.com`, "phone"),
  );
}

async function epochOf(test: TestTable, localpart: string): Promise<number> {
  const opened = test.table.sessionOpened(fullJid(localpart, "desk"));
  await advance(test.clock, 10, 1);
  await opened;
  const values = test.redis.dump()[`causeway:claims:${localpart}@example.com`] as string[];
  const own = values.map((value) => JSON.parse(value)).find(([, host]) => host === DC1);
  return own[0];
}

Deno.test("epochs stay on our clock when one datacenter claims the end of time under many names", async () => {
  const test = await started();
  const honest = new TestAuthor(test);
  await honest.say(honest.lease());
  for (let i = 1; i <= 5; i++) await node(test, i, { nowUs: Number.MAX_SAFE_INTEGER });
  const epoch = await epochOf(test, "alice");
  assert.ok(Math.abs(epoch - test.clock.wallUs()) < 1_000_000, `${epoch}`);
  assert.equal(test.logger.named("clock.off").length, 0);
  await test.table.close();
});

Deno.test("epochs stay on our clock when Redis loses its data and a liar is the first to come back", async () => {
  const test = await started();
  const honest = new TestAuthor(test);
  await honest.say(honest.lease());
  const dayUs = 86_400_000_000;
  const liar = await node(test, 1, { nowUs: test.clock.wallUs() - dayUs });
  test.redis.flush();
  for (let i = 0; i < 20; i++) {
    await advance(test.clock, 1_000, 100);
    await liar.say(liar.lease({ nowUs: test.clock.wallUs() - dayUs }));
  }
  assert.ok(
    test.logger.named("replication.author-lost").length > 0,
    "the honest one counts as lost",
  );
  assert.equal(test.logger.named("clock.off").length, 0);
  test.table.traffic!.ended(honest, false);
  await advance(test.clock, 200_000, 500);
  assert.equal(
    test.logger.named("clock.off").length,
    1,
    "two are left, and both follow the earlier",
  );
  await test.table.close();
});

Deno.test("an epoch from the end of time does not stay with an account", async () => {
  const test = await started();
  const record = { ...claim(1, "bob@example.com", "phone"), epoch: Number.MAX_SAFE_INTEGER };
  const peer = await told(test, record);
  assert.equal(test.publicKeys()["bob@example.com"], DC9, "the written claim can be read");
  const most = test.clock.wallUs() + MAX_TOLD_AHEAD_US;
  assert.ok(await epochOf(test, "bob") <= most + 1);
  assert.equal(test.publicKeys()["bob@example.com"], DC1, "and the next login is newer");
  assert.deepEqual(peer.refusals, []);
  await test.table.close();
});

Deno.test("a claim in Redis with an impossible epoch is dropped, counted and written anew by its owner", async () => {
  const test = await started();
  const key = "causeway:claims:alice@example.com";
  const bad = JSON.stringify([2 ** 53, DC1, `node1@${DC1}`, "old", 1]);
  test.redis.run(["HSET", key, "b2-7", bad]);
  const epoch = await epochOf(test, "alice");
  assert.ok(epoch < MAX_EPOCH && epoch <= test.clock.wallUs());
  assert.equal(test.metrics.value("causeway_table_garbage_total"), 1);
  assert.equal((test.redis.dump()[key] as string[]).length, 1);
  const own = `${test.incarnation.toString(16)}-1`;
  test.redis.run(["HSET", key, own, bad]);
  await advance(test.clock, 61_000, 500);
  assert.deepEqual((test.redis.dump()[key] as string[]).map((value) => JSON.parse(value)[0]), [
    epoch,
  ]);
  await test.table.close();
});

Deno.test("an author's stored position counts only if frames can carry its numbers", async () => {
  for (
    const value of ["[1.5,3]", "[-1,3]", `[${0x9001},-5]`, `[${0x9001},9007199254740993]`, "[]"]
  ) {
    const test = await started();
    test.redis.run(["SET", `causeway:applied:${DC9}#node1@${DC9}`, value]);
    const peer = await node(test, 1);
    const position = peer.frames.find((frame) => frame[4] === FRAME_TYPE.position);
    assert.equal(position?.at(-1), 3, `${value}: it asks for a snapshot`);
    assert.deepEqual(peer.refusals, []);
    await test.table.close();
  }
});

Deno.test("a host in causeway:peers that fits no frame is ignored", async () => {
  const test = await started();
  const wide = "é".repeat(1_000);
  test.redis.run(["HSET", "causeway:peers", wide, JSON.stringify(["192.0.2.9#5555"])]);
  await advance(test.clock, 20_000, 500);
  const peer = await node(test, 1); // the table sends it MESH
  assert.ok(peer.frames.some((frame) => frame[4] === FRAME_TYPE.mesh));
  assert.deepEqual(await test.table.hosts(), [DC1, DC9]);
  await test.table.close();
});

Deno.test("a lease lives no longer than maxLeaseMs, and only valid endpoints of it are written", async () => {
  const test = await started({ maxLeaseMs: 30_000 });
  const endpoints = ["192.0.2.9#5555", "no endpoint", "x#0"];
  await node(test, 1, { lifeMs: 0xffffffff, startedUs: Number.MAX_SAFE_INTEGER, endpoints });
  const life = test.redis.ttlMs(`causeway:node:${DC9}#node1@${DC9}`)!;
  assert.ok(life > 29_000 && life <= 30_000, `${life}`);
  assert.deepEqual(test.publicKeys()[`${DC9}#node1@${DC9}#{endpoints}`], ["192.0.2.9#5555"]);
  assert.deepEqual(await test.table.endpoints(DC9), [{ host: "192.0.2.9", port: 5555 }]);
  await test.table.close();
});

for (const nodeName of ["x@example.com/y", "a#b", "{nodes}", "with space"]) {
  Deno.test(`a node that calls itself ${nodeName} writes nothing`, async () => {
    const test = await started();
    const before = test.redis.dump();
    const peer = new TestAuthor(test, 0x9000, DC9, nodeName);
    await peer.say(peer.lease(), peer.snapshot(1, ...claims(1, 1)));
    assert.deepEqual(test.redis.dump(), before);
    assert.equal(test.logger.named("replication.refused").length, 1);
    await test.table.close();
  });
}

Deno.test("a datacenter has at most maxNodes nodes; a dead one makes room", async () => {
  const test = await started({ maxNodes: 3 });
  const peers = [];
  for (let i = 1; i <= 4; i++) peers.push(await node(test, i));
  assert.deepEqual(test.publicKeys()[`${DC9}#{nodes}`], [1, 2, 3].map((i) => `node${i}@${DC9}`));
  assert.equal(test.metrics.value(LIMIT_HITS), 1);
  assert.deepEqual(test.logger.named("datacenter.limit").map(({ fields }) => fields), [
    { host: DC9, limit: "nodes", bound: 3 },
  ]);
  const other = new TestAuthor(test);
  await other.say(other.lease());
  assert.ok((await test.table.hosts()).includes("dc2.example.com"), "others have their own bound");
  test.table.traffic!.ended(peers[0]!, false);
  for (let second = 0; second < 125; second += 5) {
    await peers[1]!.say(peers[1]!.lease());
    await peers[2]!.say(peers[2]!.lease());
    await advance(test.clock, 5_000, 500);
  }
  await peers[3]!.say(peers[3]!.lease());
  assert.ok(keysWith(test, "node4@").length > 0, "it has taken the dead node's place");
  await advance(test.clock, 100, 10);
  assert.deepEqual(keysWith(test, "node1@dc9"), []);
  await test.table.close();
});

Deno.test("metrics of a node end with its lease and its link", async () => {
  const test = await started();
  const peers = [];
  for (let i = 1; i <= 20; i++) peers.push(await node(test, i));
  const shown = test.metrics.shownNodes.get("causeway_replication_lag_changes")!;
  const names = () => [...shown].filter((name) => name !== "");
  assert.equal(names().length, 20);
  for (const peer of peers.slice(1)) test.table.traffic!.ended(peer, false);
  for (let second = 0; second < 150; second += 5) {
    await peers[0]!.say(peers[0]!.lease());
    await advance(test.clock, 5_000, 500);
  }
  assert.deepEqual(names(), [`node1@${DC9}`]);
  assert.deepEqual(test.table.snapshot().replication?.in.map((each) => each.node), names());
  await test.table.close();
});

Deno.test("a datacenter's endpoints are bounded for each node and in all", async () => {
  const test = await started({ maxEndpointsPerNode: 2, maxEndpoints: 5 });
  const endpoints = (at: number) => [1, 2, 3].map((i) => `192.0.2.${at}${i}#5555`);
  for (let i = 1; i <= 4; i++) await node(test, i, { endpoints: endpoints(i) });
  assert.equal((test.publicKeys()[`${DC9}#node1@${DC9}#{endpoints}`] as string[]).length, 2);
  assert.equal(test.table.snapshot().replication?.peers[0]?.endpoints.length, 5);
  await test.table.close();
});

Deno.test("a node has no more endpoints by telling of the mesh than by its lease", async () => {
  const test = await started({ maxEndpointsPerNode: 2 });
  const peer = new TestAuthor(test, 0x9001, DC9, `node1@${DC9}`);
  const endpoints = [1, 2, 3, 4].map((i) => `192.0.2.${i}#5555`);
  await peer.say(meshFrame([{ host: DC9, endpoints }]));
  const peers = test.table.snapshot().replication?.peers;
  assert.deepEqual(peers, [{ host: DC9, endpoints: endpoints.slice(0, 2) }]);
  await test.table.close();
});

Deno.test("a datacenter has as many claims as it may, over all its nodes, and gets them when there is room", async () => {
  const test = await started({ maxClaims: 8 });
  const peer = await told(test, ...claims(1, 4));
  const second = await node(test, 2);
  await second.say(second.snapshot(1, ...claims(11, 4)));
  await peer.say(peer.changes(2, ...claims(5, 2)));
  await second.say(second.changes(2, ...claims(15, 1)));
  assert.equal(usersOf(test).length, 8, "the ninth is refused from any node");
  assert.equal(test.metrics.value(LIMIT_HITS), 3);
  assert.equal(test.logger.named("datacenter.limit").length, 1);
  assert.deepEqual(peer.refusals, [], "its link stays open");
  const gone = claims(11, 4).map((each) => ({ ...each, kind: "withdraw" as const }));
  peer.frames.length = 0;
  await second.say(second.changes(3, ...gone));
  await advance(test.clock, 15_100, 100);
  const position = peer.frames.findLast((frame) => frame[4] === FRAME_TYPE.position);
  assert.equal(position?.at(-1), 3, "an author with refused claims is asked for a snapshot");
  await peer.say(peer.snapshot(3, ...claims(1, 6)));
  assert.deepEqual(usersOf(test), claims(1, 6).map(({ name }) => name));
  await test.table.close();
});

Deno.test("claims that were in Redis before this process count", async () => {
  const test = await started({ maxClaims: 4 });
  await told(test, ...claims(1, 4));
  const next = new TestTable(
    { replication: "builtin", datacenter: { maxClaims: 4 }, incarnation: 0xa2 },
    test.clock,
    test.redis,
  );
  await next.table.start();
  const peer = await node(next, 1);
  await peer.say(peer.changes(2, ...claims(5, 3)));
  assert.equal(usersOf(next).length, 4);
  await next.table.close();
  await test.table.close();
});

Deno.test("a datacenter has as many claims on one account as it may, the newest", async () => {
  const test = await started({ maxClaimsPerAccount: 3 });
  const other = new TestAuthor(test);
  await other.say(other.lease());
  await other.say(other.snapshot(1, claim(1, "bob@example.com", "tablet")));
  const peer = await told(test);
  for (let i = 1; i <= 9; i++) {
    await peer.say(peer.changes(1 + i, claim(i, "bob@example.com", `phone${i}`)));
  }
  const hash = test.redis.dump()["causeway:claims:bob@example.com"] as readonly string[];
  const resources = hash.map((value) => JSON.parse(value)[3]).sort();
  assert.deepEqual(resources, ["phone7", "phone8", "phone9", "tablet"]);
  assert.equal(test.publicKeys()["bob@example.com/phone1"], undefined);
  assert.equal(test.publicKeys()["bob@example.com/phone9"], DC9);
  assert.equal(test.publicKeys()["bob@example.com"], DC9);
  assert.equal(test.metrics.value(LIMIT_HITS), 6);
  assert.deepEqual(test.logger.named("datacenter.limit").map(({ fields }) => fields), [
    { host: DC9, limit: "claims-per-account", bound: 3 },
  ]);
  await test.table.close();
});

Deno.test("a datacenter has 1000 claims on one account where it may", async () => {
  const test = await started({ maxClaimsPerAccount: 1000 });
  const devices = Array.from(
    { length: 1000 },
    (_, i) => claim(1 + i, "bob@example.com", `device${i}`),
  );
  const peer = await told(test, ...devices.slice(0, 500));
  await peer.say(peer.changes(2, ...devices.slice(500)));
  const found = (await test.table.sessionsOf(["bob@example.com"])).get("bob@example.com") ?? [];
  assert.equal(new Set(found.map(({ resourcepart }) => resourcepart)).size, 1000);
  assert.ok(found.every(({ host }) => host === DC9));
  assert.equal(test.metrics.value(LIMIT_HITS), 0);
  await test.table.close();
});

/** Makes a node of dc9 without endpoints, which is told over its own link, and asks for a snapshot. */
async function asker(test: TestTable) {
  const opened = test.table.sessionOpened(fullJid("alice", "desk"));
  await advance(test.clock, 10, 1);
  await opened;
  const peer = await node(test, 1, { endpoints: [] });
  const ask = (round: number) =>
    positionFrame({
      process: test.incarnation,
      round,
      applied: 0,
      chunk: 0,
      isRestart: true,
      wantsSnapshot: true,
    });
  const rounds = () =>
    peer.frames.filter((frame) => frame[4] === FRAME_TYPE.snapshot)
      .map((frame) => decodeSnapshot(frame, 0, frame.length).round);
  return { peer, ask, rounds };
}

Deno.test("all that we claim is told from the start as often as it may be, and later in the end", async () => {
  const test = await started();
  const { peer, ask, rounds } = await asker(test);
  const frames = Array.from({ length: 2_500 }, (_, i) => ask(i + 1));
  await peer.say(...frames);
  assert.equal(rounds().length, 2_000);
  await advance(test.clock, 75_000, 500);
  assert.equal(rounds().length, 2_001, "the last that was asked for comes in its turn");
  assert.equal(rounds().at(-1), 2_500);
  assert.deepEqual(peer.refusals, []);
  await test.table.close();
});

Deno.test("a datacenter whose Redis loses its data every few seconds for an hour is always told at once", async () => {
  const test = await started();
  const { peer, ask, rounds } = await asker(test);
  for (let round = 1; round <= 720; round++) {
    await peer.say(ask(round));
    assert.equal(rounds().at(-1), round);
    test.clock.advance(5_000);
  }
  await test.table.close();
});

Deno.test("nothing is left of the time that a node told when it has been removed, or was never written", async () => {
  const hourUs = 3_600_000_000;
  for (const way of ["removed", "never written"]) {
    const test = await started();
    if (way === "never written") test.commands.run = () => Promise.reject(new Error("down"));
    const peer = await node(test, 1, { nowUs: test.clock.wallUs() - hourUs });
    assert.equal(test.logger.named("clock.off").length, 1);
    test.table.traffic!.ended(peer, false);
    if (way === "removed") assert.equal(await test.table.removeHost(DC9), "removed");
    await advance(test.clock, 60_000, 500);
    assert.equal(test.logger.named("clock.agrees").length, 1, way);
    await test.table.close();
  }
});

Deno.test("a claim with a long address counts as 16", async () => {
  const test = await started({ maxClaims: 32 });
  const long = claims(1, 4).map((each) => ({ ...each, resourcepart: "r".repeat(300) }));
  const peer = await told(test);
  for (const [i, each] of long.entries()) await peer.say(peer.changes(2 + i, each));
  assert.equal(usersOf(test).length, 2);
  await test.table.close();
});

Deno.test("a datacenter has at most maxDomains component domains, besides its users", async () => {
  const test = await started({ maxDomains: 2 });
  const peer = await told(test);
  for (let i = 1; i <= 4; i++) {
    await peer.say(peer.changes(1 + i, claim(i, `c${i}.example.com`, "")));
  }
  await peer.say(peer.changes(6, claim(9, "bob@example.com", "phone")));
  const domains = test.publicKeys()[`${DC9}#node1@${DC9}#{domains}`];
  assert.deepEqual(domains, ["c1.example.com", "c2.example.com"]);
  assert.equal(test.publicKeys()["c3.example.com"], undefined);
  assert.equal(test.publicKeys()["bob@example.com"], DC9);
  await test.table.close();
});

Deno.test("claims that are refused write one line a minute", async () => {
  const test = await started();
  const peer = await told(test);
  const foreign = Array.from(
    { length: 200 },
    (_, i) => claim(i + 1, `user${i}@elsewhere.net`, "x"),
  );
  await peer.say(peer.changes(2, ...foreign));
  assert.equal(test.metrics.value("causeway_replication_refused_total"), 200);
  const lines = () => test.logger.named("replication.refused").map(({ fields }) => fields["count"]);
  assert.deepEqual(lines(), [undefined]);
  await advance(test.clock, 75_000, 500);
  assert.deepEqual(lines(), [undefined, 199]);
  await test.table.close();
});

Deno.test("a node that comes and leaves all the time writes a bounded number of lines", async () => {
  const test = await started();
  for (let i = 1; i <= 300; i++) {
    const peer = await node(test, i % 3, { startedUs: i });
    test.table.traffic!.ended(peer, true);
    await advance(test.clock, 10, 5);
  }
  assert.equal(test.logger.named("replication.author-left").length, 64);
  assert.ok(test.logger.entries.length < 100, `${test.logger.entries.length}`);
  await test.table.close();
});

Deno.test("leases come as often as they may, and cost nothing beyond", async () => {
  const test = await started();
  const peer = await node(test, 1);
  const lease = peer.lease();
  let written = 0;
  const run = test.commands.run.bind(test.commands);
  test.commands.run = (commands) => {
    written += commands.filter(([verb, key]) => verb === "SET" && key.includes(DC9)).length;
    return run(commands);
  };
  for (let i = 0; i < 3_000; i++) await peer.say(lease); // the burst is used up
  written = 0;
  for (let i = 0; i < 500; i++) await peer.say(lease); // each takes 10 ms
  assert.ok(written > 300 && written <= 5 * 64 + 1, `${written}`);
  await test.table.close();
});

Deno.test("news of endpoints that change often is sent at a bounded rate", async () => {
  const changed: string[] = [];
  const test = await started({}, (host) => changed.push(host));
  const other = new TestAuthor(test);
  const peer = await node(test, 1);
  other.frames.length = changed.length = 0;
  for (let i = 0; i < 100; i++) {
    await peer.say(peer.lease({ endpoints: [`192.0.2.${i}#5555`] }));
  }
  const meshes = other.frames.filter((frame) => frame[4] === FRAME_TYPE.mesh);
  assert.ok(meshes.length <= 16, `${meshes.length}`);
  assert.equal(changed.length, meshes.length);
  await advance(test.clock, 15_100, 100);
  assert.deepEqual(await test.table.endpoints(DC9), [{ host: "192.0.2.99", port: 5555 }]);
  const last = other.frames.findLast((frame) => frame[4] === FRAME_TYPE.mesh)!;
  assert.ok(
    new TextDecoder().decode(last).includes("192.0.2.99#5555"),
    "the last endpoints are sent in the end",
  );
  await test.table.close();
});

Deno.test("a datacenter that was removed while it lives sends all its entries again", async () => {
  const test = await started();
  const peer = await told(test, claim(1, "bob@example.com", "phone"));
  // as if another of our nodes had got the request
  const key = (text: string) => keysWith(test, text);
  for (const each of [...key(DC9), ...key("bob")]) test.redis.run(["DEL", each]);
  peer.frames.length = 0;
  await peer.say(peer.lease());
  const position = peer.frames.findLast((frame) => frame[4] === FRAME_TYPE.position);
  assert.equal(position?.at(-1), 3, "it asks for a snapshot");
  await peer.say(peer.snapshot(1, claim(1, "bob@example.com", "phone")));
  assert.equal(test.publicKeys()["bob@example.com"], DC9);
  await test.table.close();
});

Deno.test("SessionTable refuses a component's domain that is a key of its own, and never finds it", async () => {
  const test = await started();
  const added = test.table.domainAdded("hosts", { hidden: false });
  await advance(test.clock, 10, 1);
  await added;
  assert.deepEqual(test.publicKeys()["hosts"], [DC1]);
  assert.equal(test.logger.named("table.domain-reserved").length, 1);
  await test.table.close();
});

Deno.test("a lease that comes over another link each time costs no more than some commands", async () => {
  const test = await started();
  const first = await node(test, 1);
  const second = new TestAuthor(test, first.process, DC9, first.nodeName);
  let commandCount = 0;
  const run = test.commands.run.bind(test.commands);
  test.commands.run = (commands) => {
    commandCount += commands.length;
    return run(commands);
  };
  for (let i = 0; i < 100; i++) {
    const peer = i % 2 === 0 ? second : first;
    await peer.say(peer.lease());
  }
  assert.ok(commandCount < 100 * 15, `${commandCount} for 100 leases`);
  await test.table.close();
});
