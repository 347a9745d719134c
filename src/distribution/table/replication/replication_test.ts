import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import {
  changesFrame,
  decodeChanges,
  decodeLease,
  decodeSnapshot,
  FRAME_TYPE,
  positionFrame,
  snapshotFrame,
} from "../../wire/mod.ts";
import type { TableRecord } from "../../wire/mod.ts";
import { FullJid, parseJid } from "../../../xmpp/mod.ts";
import type { BareJid } from "../../../xmpp/mod.ts";
import { claim, TestAuthor } from "../testing/author.ts";
import { advance, bareJid, domainJid, fullJid, TestTable } from "../testing/table.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const NODE2 = `node1@${DC2}`;
const OURS = ["example.com", DC1, "intern.example.net"];

async function started(clock = new ManualClock()): Promise<TestTable> {
  const test = new TestTable({ replication: "builtin", hosts: OURS }, clock);
  await test.table.start();
  return test;
}

/** Makes a table to which another datacenter has sent all its entries. */
async function followed(...records: TableRecord[]): Promise<{ test: TestTable; peer: TestAuthor }> {
  const test = await started();
  const peer = new TestAuthor(test);
  await peer.say(peer.lease());
  await peer.say(peer.snapshot(1, ...records));
  return { test, peer };
}

Deno.test("Replication writes another datacenter's entries as its own node would", async () => {
  const { test } = await followed(
    claim(1, "bob@example.com", "phone"),
    claim(2, "echo.example.com", ""),
    { ...claim(3, "hidden.example.com", ""), isHidden: true },
  );
  const keys = test.publicKeys();
  assert.equal(keys["bob@example.com"], DC2);
  assert.equal(keys["bob@example.com/phone"], DC2);
  assert.equal(keys["echo.example.com"], DC2);
  assert.deepEqual(keys["hosts"], [DC1, DC2]);
  assert.deepEqual(keys[`${DC2}#{nodes}`], [NODE2]);
  assert.deepEqual(keys[`${DC2}#${NODE2}#{endpoints}`], ["192.0.2.2#5555"]);
  const domains = ["echo.example.com", "hidden.example.com"];
  assert.deepEqual(keys[`${DC2}#${NODE2}#{domains}`], domains);
  assert.deepEqual(keys[`${DC2}#${NODE2}#{public_domains}`], ["echo.example.com"]);
  assert.deepEqual(await test.table.hosts(), [DC1, DC2]);
  assert.deepEqual(await test.table.endpoints(DC2), [{ host: "192.0.2.2", port: 5555 }]);
  await test.table.close();
});

Deno.test("Replication sends entries to a datacenter without endpoints over its own link", async () => {
  for (const endpoints of [[], ["192.0.2.2#5555"]]) {
    const test = await started();
    const opened = test.table.sessionOpened(fullJid("alice", "desk"));
    await advance(test.clock, 10, 1);
    await opened;
    const peer = new TestAuthor(test);
    await peer.say(peer.lease({ endpoints }), peer.lease({ endpoints }));
    const ours = peer.frames.filter((frame) => frame[4] === FRAME_TYPE.lease)
      .map((frame) => decodeLease(frame, 0, frame.length));
    if (endpoints.length > 0) {
      assert.deepEqual(ours, [], "entries go over our own link to it");
      await test.table.close();
      continue;
    }
    assert.deepEqual(ours.map(({ localHost }) => localHost), [DC1], "once");
    const process = test.incarnation;
    await peer.say(positionFrame({
      process,
      round: 1,
      applied: 0,
      chunk: 0,
      isRestart: true,
      wantsSnapshot: true,
    }));
    const snapshot = peer.frames.find((frame) => frame[4] === FRAME_TYPE.snapshot)!;
    const { records } = decodeSnapshot(snapshot, 0, snapshot.length);
    assert.deepEqual(records.map(({ name, resourcepart }) => `${name}/${resourcepart}`), [
      "alice@example.com/desk",
    ]);
    assert.deepEqual(peer.refusals, []);
    await test.table.close();
  }
});

Deno.test("Replication removes entries that a snapshot does not name", async () => {
  const { test, peer } = await followed(
    claim(1, "bob@example.com", "phone"),
    claim(2, "eve@example.com", "phone"),
  );
  const next = new TestAuthor(test, 0xb3);
  await next.say(next.lease({ startedUs: 2 }));
  await next.say(next.snapshot(1, claim(1, "eve@example.com", "tablet")));
  const keys = test.publicKeys();
  assert.equal(keys["bob@example.com"], undefined);
  assert.equal(keys["eve@example.com/phone"], undefined);
  assert.equal(keys["eve@example.com/tablet"], DC2);
  // and frames of the process before it do not count
  await peer.say(peer.lease(), peer.changes(2, claim(9, "old@example.com", "x")));
  assert.equal(test.publicKeys()["old@example.com"], undefined);
  await test.table.close();
});

Deno.test("Replication names every session in a snapshot while others of the account log out", async () => {
  const test = await started();
  const resources = Array.from({ length: 100 }, (_, i) => `phone${i}`);
  const opened = resources.map((each) => test.table.sessionOpened(fullJid("alice", each)));
  await advance(test.clock, 10, 1);
  await Promise.all(opened);
  const peer = new TestAuthor(test);
  test.table.traffic!.dialled(peer);
  const position = { process: test.incarnation, round: 1, applied: 0 };
  await peer.say(positionFrame({ ...position, chunk: 0, isRestart: true, wantsSnapshot: true }));
  const closed = ["phone0", "phone99"].map((each) =>
    test.table.sessionClosed(fullJid("alice", each))
  );
  await advance(test.clock, 10, 1);
  await Promise.all(closed);
  for (let chunk = 1; chunk <= 4; chunk++) {
    await peer.say(positionFrame({ ...position, chunk, isRestart: false, wantsSnapshot: false }));
  }
  const pieces = peer.frames.filter((frame) => frame[4] === FRAME_TYPE.snapshot)
    .map((frame) => decodeSnapshot(frame, 0, frame.length));
  assert.equal(pieces.at(-1)?.isLast, true);
  const named = pieces.flatMap(({ records }) => records.map(({ resourcepart }) => resourcepart));
  // phone99 had its withdrawal sent before its turn: named after that, it would come back.
  assert.deepEqual(named, resources.slice(0, -1));
  await test.table.close();
});

Deno.test("Replication lists a component's domain that has come back within one frame", async () => {
  const { test, peer } = await followed(claim(1, "echo.example.com", ""));
  await peer.say(peer.changes(
    2,
    { ...claim(1, "echo.example.com", ""), kind: "withdraw" },
    claim(2, "echo.example.com", ""),
  ));
  const keys = test.publicKeys();
  assert.equal(keys["echo.example.com"], DC2);
  assert.deepEqual(keys[`${DC2}#${NODE2}#{domains}`], ["echo.example.com"]);
  assert.deepEqual(keys[`${DC2}#${NODE2}#{public_domains}`], ["echo.example.com"]);
  await test.table.close();
});

Deno.test("Replication lists no component that a snapshot does not name", async () => {
  const { test } = await followed(
    claim(1, "echo.example.com", ""),
    claim(2, "time.example.com", ""),
  );
  const next = new TestAuthor(test, 0xb3);
  await next.say(next.lease({ startedUs: 2 }));
  await next.say(next.snapshot(1, claim(1, "time.example.com", "")));
  const keys = test.publicKeys();
  assert.equal(keys["echo.example.com"], undefined);
  assert.deepEqual(keys[`${DC2}#${NODE2}#{domains}`], ["time.example.com"]);
  assert.deepEqual(keys[`${DC2}#${NODE2}#{public_domains}`], ["time.example.com"]);
  await test.table.close();
});

Deno.test("Replication gives the bare JID back to the newest login that is left, here or there", async () => {
  const { test, peer } = await followed(claim(1, "bob@example.com", "phone"));
  const opened = test.table.sessionOpened(fullJid("bob", "desk"));
  await advance(test.clock, 10, 1);
  await opened;
  assert.equal(test.publicKeys()["bob@example.com"], DC1, "our login is newer than theirs");
  const closed = test.table.sessionClosed(fullJid("bob", "desk"));
  await advance(test.clock, 10, 1);
  await closed;
  assert.equal(test.publicKeys()["bob@example.com"], DC2);
  const withdrawal = { ...claim(1, "bob@example.com", "phone"), kind: "withdraw" as const };
  await peer.say(peer.changes(2, withdrawal));
  assert.equal(test.publicKeys()["bob@example.com"], undefined);
  await test.table.close();
});

Deno.test("Replication drops changed addresses from the cache", async () => {
  const { test, peer } = await followed();
  assert.equal(await test.table.locate(bareJid("bob")), undefined);
  assert.equal(test.table.cached(bareJid("bob")), null);
  await peer.say(peer.changes(2, claim(1, "bob@example.com", "phone")));
  assert.equal(await test.table.locate(bareJid("bob")), DC2);
  await test.table.close();
});

Deno.test("entries of a datacenter without a live lease count as absent, and count again when it is back", async () => {
  const { test, peer } = await followed(
    claim(1, "bob@example.com", "phone"),
    claim(2, "echo.example.com", ""),
  );
  assert.equal(await test.table.locate(fullJid("bob", "phone")), DC2);
  await advance(test.clock, 125_000, 500);
  assert.equal(await test.table.locate(fullJid("bob", "phone")), undefined);
  assert.equal(await test.table.locate(domainJid("echo.example.com")), undefined);
  assert.equal(test.publicKeys()["bob@example.com"], undefined);
  assert.equal(test.logger.named("replication.author-lost").length, 1);
  await peer.say(peer.lease());
  await advance(test.clock, 6_000, 500);
  assert.equal(await test.table.locate(fullJid("bob", "phone")), DC2);
  assert.equal(await test.table.locate(domainJid("echo.example.com")), DC2);
  assert.equal(test.publicKeys()["bob@example.com"], DC2);
  assert.equal(test.logger.named("replication.author-back").length, 1);
  await test.table.close();
});

Deno.test("a lookup falls back on the claims, and corrects the keys", async () => {
  const { test } = await followed(claim(1, "bob@example.com", "phone"));
  test.redis.apply(["DEL", "bob@example.com"]);
  test.redis.apply(["DEL", "bob@example.com/phone"]);
  assert.equal(await test.table.locate(fullJid("bob", "phone")), DC2);
  await advance(test.clock, 10, 1);
  assert.equal(test.publicKeys()["bob@example.com/phone"], DC2);
  assert.equal(test.publicKeys()["bob@example.com"], DC2);
  await test.table.close();
});

Deno.test("a leaving node's entries are removed, and with the last node its datacenter's endpoints", async () => {
  const { test, peer } = await followed(claim(1, "bob@example.com", "phone"));
  test.table.traffic!.ended(peer, true);
  await advance(test.clock, 20, 1);
  assert.deepEqual(
    Object.keys(test.redis.dump()).filter((key) => key.includes("dc2") || key.includes("bob")),
    [],
  );
  assert.deepEqual(await test.table.hosts(), [DC1]);
  await test.table.close();
});

Deno.test("Replication lists a datacenter's components again after a split of any length", async () => {
  const { test, peer } = await followed(
    claim(2, "echo.example.com", ""),
    { ...claim(3, "hidden.example.com", ""), isHidden: true },
  );
  const domains = async () => [
    (await test.table.publicDomains()).map(({ domain }) => domain),
    (await test.table.allDomains()).map(({ domain }) => domain),
  ];
  const all = [["echo.example.com"], ["echo.example.com", "hidden.example.com"]];
  await peer.say(peer.lease());
  assert.deepEqual(await domains(), all);
  test.table.traffic!.ended(peer, false);
  await advance(test.clock, 600_000, 1_000);
  assert.deepEqual(await domains(), [[], []], "its lease has gone");
  test.table.traffic!.accepted(peer);
  await peer.say(peer.lease());
  const position = peer.frames.findLast((frame) => frame[4] === FRAME_TYPE.position);
  assert.equal(position?.at(-1), 1, "it goes on where it was");
  await advance(test.clock, 1_000, 100);
  assert.deepEqual(await domains(), all);
  await test.table.close();
});

Deno.test("SessionTable.removeHost() takes out a datacenter that is dead, and none that lives", async () => {
  const removed: string[] = [];
  const test = new TestTable({
    replication: "builtin",
    hostRemoved: (host) => removed.push(host),
  });
  await test.table.start();
  const peer = new TestAuthor(test);
  await peer.say(peer.lease({ lifeMs: 5_000 }));
  await peer.say(peer.snapshot(1, claim(1, "bob@example.com", "phone")));
  assert.equal(await test.table.removeHost(DC2), "live");
  assert.equal(await test.table.removeHost(DC1), "live", "our own");
  assert.equal(await test.table.removeHost("dc9.example.com"), "unknown");
  const dead = new TestAuthor(test, 0xb4, DC2, `node2@${DC2}`);
  await dead.say(dead.lease({ lifeMs: 0xffffffff }));
  test.table.traffic!.ended(dead, false);
  const early = test.table.removeHost(DC2);
  await advance(test.clock, 50, 1);
  assert.equal(await early, "live");
  assert.deepEqual(Object.keys(test.redis.dump()).filter((key) => key.includes("node2")), []);
  test.table.traffic!.ended(peer, false);
  await advance(test.clock, 8_000, 250);
  assert.equal(test.publicKeys()["bob@example.com"], undefined, "its lease has ended");
  assert.deepEqual(await test.table.hosts(), [DC1, DC2], "it is still dialled");
  test.commands.setUp(false);
  assert.equal(await test.table.removeHost(DC2), "unavailable");
  test.commands.setUp(true);
  await advance(test.clock, 2_000, 250);
  const removal = test.table.removeHost(DC2);
  await advance(test.clock, 50, 1);
  assert.equal(await removal, "removed");
  assert.deepEqual(removed, [DC2]);
  assert.deepEqual(await test.table.hosts(), [DC1]);
  assert.deepEqual(Object.keys(test.redis.dump()).filter((key) => key.includes("dc2")), []);
  assert.equal(await test.table.removeHost(DC2), "unknown");
  const again = new TestAuthor(test, 0xb3);
  await again.say(again.lease({ startedUs: 2 }));
  assert.deepEqual(await test.table.hosts(), [DC1, DC2], "it may come back");
  await test.table.close();
});

Deno.test("a datacenter that leaves while the peers are read was not removed by an operator", async () => {
  const [dc3, endpoints] = ["dc3.example.com", ["192.0.2.3#5555"]];
  for (let laterMs = 0; laterMs < 20; laterMs++) {
    const removed: string[] = [];
    const test = new TestTable({
      replication: "builtin",
      hostRemoved: (host) => removed.push(host),
    });
    await test.table.start();
    const peer = new TestAuthor(test);
    await peer.say(peer.lease());
    const other = new TestAuthor(test, 0xb4, dc3, `node1@${dc3}`);
    await other.say(other.lease({ endpoints }));
    test.table.traffic!.ended(other, false);
    test.commands.latencyMs = 1;
    const removal = test.table.removeHost(dc3);
    await advance(test.clock, laterMs, 1);
    test.table.traffic!.ended(peer, true);
    await advance(test.clock, 200, 1);
    test.commands.latencyMs = 0;
    assert.equal(await removal, "removed");
    assert.deepEqual(removed, [dc3], `it leaves ${laterMs} ms after the call`);
    assert.deepEqual(await test.table.hosts(), [DC1]);
    await test.table.close();
  }
});

Deno.test("endpoints of a datacenter that vanished without GOODBYE are kept", async () => {
  const { test, peer } = await followed();
  test.table.traffic!.ended(peer, false);
  await advance(test.clock, 400_000, 500);
  assert.deepEqual(await test.table.hosts(), [DC1, DC2]);
  assert.deepEqual(await test.table.endpoints(DC2), [{ host: "192.0.2.2", port: 5555 }]);
  await test.table.close();
});

for (
  const [what, fields] of [
    ["another datacenter", { localHost: "dc3.example.com" }],
    ["another node", { nodeName: `node2@${DC2}` }],
    ["another process", { process: 0xdead }],
    ["our own datacenter", { localHost: DC1, nodeName: `node1@${DC1}` }],
  ] as const
) {
  Deno.test(`Replication refuses, counts and logs a lease of ${what}`, async () => {
    const test = await started();
    const peer = new TestAuthor(test);
    const before = test.redis.dump();
    await peer.say(peer.lease(fields), peer.lease(fields));
    assert.deepEqual(test.redis.dump(), before);
    assert.equal(test.metrics.value("causeway_replication_refused_total"), 2);
    assert.equal(test.logger.named("replication.refused").length, 1, "once for each link");
    await test.table.close();
  });
}

const DC3 = "dc3.example.com";

Deno.test("Replication lets no datacenter write or remove another's claims by using its process number", async () => {
  const { test, peer } = await followed(claim(1, "bob@example.com", "phone"));
  await test.table.sessionOpened(fullJid("alice", "desk"));
  await advance(test.clock, 10, 1);
  const before = test.redis.dump();
  for (const process of [peer.process, test.incarnation]) {
    const forged = new TestAuthor(test, process, DC3);
    const withdrawn = { ...claim(1, "bob@example.com", "phone"), kind: "withdraw" } as const;
    await forged.say(forged.lease(), forged.lease());
    await forged.say(forged.snapshot(1, claim(1, "bob@example.com", "phone")));
    await forged.say(forged.changes(2, withdrawn, { ...withdrawn, name: "alice@example.com" }));
    assert.deepEqual(test.redis.dump(), before);
    assert.deepEqual(forged.refusals, []);
  }
  assert.equal(test.metrics.value("causeway_replication_refused_total"), 4);
  await peer.say(peer.lease(), peer.changes(2, claim(2, "eve@example.com", "phone")));
  assert.equal(test.publicKeys()["eve@example.com"], DC2, "entries of the right process count");
  await test.table.close();
});

Deno.test("Replication remembers which node had a process number after its link has ended", async () => {
  const { test, peer } = await followed(claim(1, "bob@example.com", "phone"));
  test.table.traffic!.ended(peer, false);
  const before = test.redis.dump();
  const forged = new TestAuthor(test, peer.process, DC3);
  await forged.say(forged.lease());
  assert.deepEqual(test.redis.dump(), before);
  await test.table.close();
});

Deno.test("Replication sends MESH to each datacenter, though two claim the same process", async () => {
  const test = await started();
  const forged = new TestAuthor(test, 0xb2, DC3);
  const peer = new TestAuthor(test);
  await peer.say(peer.lease());
  for (const each of [forged, peer]) {
    assert.equal(each.frames.filter((frame) => frame[4] === FRAME_TYPE.mesh).length, 2);
  }
  await test.table.close();
});

for (
  const [what, record] of [
    ["a user of another domain", claim(1, "bob@elsewhere.net", "phone")],
    ["a user without a resource", claim(1, "bob@example.com", "")],
    ["a name that is not normalised", claim(1, "BOB@example.com", "phone")],
    ["a name that is no JID", claim(1, "@", "phone")],
    ["the global host", claim(1, "example.com", "")],
    ["our local host", claim(1, DC1, "")],
    ["a user of another of our hosts", claim(1, "bob@intern.example.net", "phone")],
    ["its own local host", claim(1, DC2, "")],
    ["a domain with a resource", claim(1, "echo.example.com", "x")],
    ["the key of the set of datacenters", claim(1, "hosts", "")],
    ["the key of a set of nodes", claim(1, `${DC2}#{nodes}`, "")],
    ["a key of our own", claim(1, "causeway:peers", "")],
  ] as const
) {
  Deno.test(`Replication does not let another datacenter claim ${what}`, async () => {
    const { test } = await followed(record, claim(2, "eve@example.com", "phone"));
    const { [record.name]: value } = test.publicKeys();
    assert.ok(value !== DC2, "no key is written");
    assert.deepEqual(test.publicKeys()["hosts"], [DC1, DC2]);
    assert.equal(test.publicKeys()["eve@example.com"], DC2, "the claim beside it counts");
    assert.equal(test.metrics.value("causeway_replication_refused_total"), 1);
    await test.table.close();
  });
}

Deno.test("Replication ignores another datacenter's claim on a host that both serve", async () => {
  const { test } = await followed(claim(1, "intern.example.net", ""));
  assert.equal(test.publicKeys()["intern.example.net"], undefined);
  assert.equal(test.metrics.value("causeway_replication_refused_total"), 0);
  await test.table.close();
});

Deno.test("Replication sends other datacenters no users of the local host or another of `hosts`", async () => {
  const test = await started();
  const people = ["alice@example.com", `carol@${DC1}`, "erin@intern.example.net"];
  const session = (name: string) => new FullJid(parseJid(name).bare as BareJid, "desk");
  const opened = people.map((name) => test.table.sessionOpened(session(name)));
  await advance(test.clock, 10, 1);
  await Promise.all(opened);
  const keys = test.publicKeys();
  for (const name of people) {
    assert.equal(keys[`${name}/desk`], DC1, "this datacenter's nodes know");
  }
  const peer = new TestAuthor(test);
  await peer.say(peer.lease({ endpoints: [] }));
  const ask = { round: 1, applied: 0, chunk: 0, isRestart: true, wantsSnapshot: true };
  await peer.say(positionFrame({ process: test.incarnation, ...ask }));
  const closed = people.map((name) => test.table.sessionClosed(session(name)));
  await advance(test.clock, 10, 1);
  await Promise.all(closed);
  const names = (type: number, decode: (frame: Uint8Array) => readonly TableRecord[]) =>
    peer.frames.filter((frame) => frame[4] === type).flatMap(decode).map(({ name }) => name);
  assert.deepEqual(
    names(FRAME_TYPE.snapshot, (frame) => decodeSnapshot(frame, 0, frame.length).records),
    ["alice@example.com"],
  );
  assert.deepEqual(
    names(FRAME_TYPE.changes, (frame) => decodeChanges(frame, 0, frame.length).records),
    ["alice@example.com"],
  );
  await test.table.close();
});

Deno.test("Replication ends a link whose changes have a gap, or whose snapshot has no first piece", async () => {
  const { test, peer } = await followed();
  await peer.say(peer.changes(3, claim(1, "bob@example.com", "phone")));
  assert.deepEqual(peer.refusals, ["change 3 follows 1"]);
  const { process } = peer;
  const { round } = peer;
  const piece = { process, round, number: 1, chunk: 2, isFirst: false, isLast: true };
  await peer.say(snapshotFrame({ ...piece, records: [] }));
  assert.deepEqual(peer.refusals.slice(1), ["a snapshot that has not begun goes on"]);
  await test.table.close();
});

Deno.test("Replication takes 4096 changes that are not applied yet, and ends a link that sends more", async () => {
  const { test, peer } = await followed();
  test.commands.latencyMs = 1_000; // no change is applied meanwhile
  const frames: Uint8Array[] = [];
  for (let first = 2; first < 2 + 4_096; first += 512) {
    const records = Array.from(
      { length: 512 },
      (_, i) => claim(first + i, `user${first + i}@example.com`, "phone"),
    );
    frames.push(peer.changes(first, ...records));
  }
  await peer.say(...frames);
  assert.deepEqual(peer.refusals, []);
  await peer.say(peer.changes(2 + 4_096, claim(9_999, "bob@example.com", "phone")));
  assert.deepEqual(peer.refusals, ["more than 4096 changes that are not applied"]);
  test.commands.latencyMs = 0;
  await advance(test.clock, 4_000, 500);
  await test.table.close();
});

Deno.test("Replication takes two pieces of a snapshot ahead, and ends a link that sends a third", async () => {
  const test = await started();
  const peer = new TestAuthor(test);
  await peer.say(peer.lease());
  test.commands.latencyMs = 1_000;
  const { process, round } = peer;
  const piece = (chunk: number) =>
    snapshotFrame({
      ...{ process, round, number: 1, chunk, isFirst: chunk === 1, isLast: false },
      records: [claim(chunk, `user${chunk}@example.com`, "phone")],
    });
  await peer.say(piece(1), piece(2));
  assert.deepEqual(peer.refusals, []);
  await peer.say(piece(3));
  assert.deepEqual(peer.refusals, ["piece 3 follows 2, of which 0 are applied"]);
  test.commands.latencyMs = 0;
  await advance(test.clock, 4_000, 500);
  await test.table.close();
});

Deno.test("Replication ignores frames of an earlier round", async () => {
  const { test, peer } = await followed();
  const { process } = peer;
  const late = claim(1, "bob@example.com", "phone");
  await peer.say(changesFrame({ process, round: 0, first: 2 }, [late]).frame);
  assert.equal(test.publicKeys()["bob@example.com"], undefined);
  assert.deepEqual(peer.refusals, []);
  await test.table.close();
});

Deno.test("a Redis that lost its data is filled again, from here and by the others", async () => {
  const { test, peer } = await followed(claim(1, "bob@example.com", "phone"));
  const opened = test.table.sessionOpened(fullJid("alice", "desk"));
  await advance(test.clock, 10, 1);
  await opened;
  peer.frames.length = 0;
  test.redis.flush();
  await advance(test.clock, 1_100, 20);
  assert.equal(test.publicKeys()["alice@example.com"], DC1);
  assert.deepEqual(test.publicKeys()["hosts"], [DC1, DC2]);
  const position = peer.frames.find((frame) => frame[4] === 0x0b);
  assert.equal(position?.at(-1), 3, "it asks for a snapshot");
  assert.equal(test.logger.named("redis.lost-data").length, 1);
  await test.table.close();
});

Deno.test("a clock that is minutes off is logged once, and epochs follow the others", async () => {
  const { test, peer } = await followed();
  const behindUs = test.clock.wallUs() - 300_000_000;
  await peer.say(peer.lease({ nowUs: behindUs }), peer.lease({ nowUs: behindUs }));
  assert.deepEqual(test.logger.named("clock.off").map(({ fields }) => fields), [{
    aheadMs: 300_000,
  }]);
  const opened = test.table.sessionOpened(fullJid("alice", "desk"));
  await advance(test.clock, 10, 1);
  await opened;
  const [claims] = test.redis.dump()["causeway:claims:alice@example.com"] as string[];
  const [epoch] = JSON.parse(claims!);
  assert.ok(epoch < test.clock.wallUs() - 290_000_000, `${epoch}`);
  await test.table.close();
});
