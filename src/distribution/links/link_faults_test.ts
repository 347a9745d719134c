import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { Envelope } from "../mod.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./_test_kit.ts";
import { TestProxy } from "./_test_peers.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** Sequences in order of arrival, without what says that it may be a repeat and is one. */
function delivered(received: readonly Envelope[]): number[] {
  const seen = new Set<number>();
  return received.flatMap(({ sequence, mayBeRepeat }) => {
    if (mayBeRepeat && seen.has(sequence)) return [];
    seen.add(sequence);
    return [sequence];
  });
}

/** `close` looks at its clock now and then. */
async function close(node: TestNode, clock: ManualClock): Promise<void> {
  let isClosed = false;
  const closing = node.links.close().then(() => {
    isClosed = true;
  });
  await node.until(() => {
    clock.advance(10);
    return isClosed;
  }, "its links are closed");
  await closing;
}

/** Sends in small batches, so that there are turns in between for things to happen in. */
async function sendPaced(node: TestNode, from: number, to: number, settler: TestSettler) {
  for (let i = from; i <= to; i++) {
    node.links.send(DC2, testEnvelope(i, { settler }));
    if (i % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

Deno.test("LinkLayer resumes a cut lane: 1000 stanzas in order, each once", async () => {
  using authority = await TestAuthority.create();
  const options = { connectionsPerEndpoint: 10 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 10, "all links are up");
  const settler = new TestSettler();
  for (let round = 0; round < 5; round++) {
    await sendPaced(dc1, round * 200 + 1, round * 200 + 200, settler);
    proxy.cut();
  }
  await dc1.until(() => settler.settled.length === 1000, "all are settled");
  assert.deepEqual(dc2.sequences, numbers(1, 1000));
  assert.ok(dc2.received.every((envelope) => !envelope.mayBeRepeat));
  assert.ok(dc1.metrics.value(`outgoing_errored_total ${DC2}`) >= 10);
  assert.equal(dc1.metrics.value(`outgoing_messages_total ${DC2}`), 1000);
});

Deno.test("LinkLayer keeps order when the endpoint is disabled and its connection killed midway", async () => {
  using authority = await TestAuthority.create();
  const options = { connectionsPerEndpoint: 10 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using first = await TestProxy.to(dc2.address);
  await using second = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [first.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 10, "all links are up");
  const settler = new TestSettler();
  await sendPaced(dc1, 1, 400, settler);
  dc1.endpoints.set(DC2, [second.address]);
  await dc1.links.refresh(DC2);
  await sendPaced(dc1, 401, 500, settler);
  first.block();
  await sendPaced(dc1, 501, 1000, settler);
  await dc1.until(() => settler.settled.length === 1000, "all are settled");
  assert.deepEqual(delivered(dc2.received), numbers(1, 1000));
  const { endpoints } = dc1.links.snapshot().hosts[0]!;
  assert.deepEqual(endpoints.map((endpoint) => endpoint.state), ["disabled", "enabled"]);
});

Deno.test("LinkLayer moves what waits in a dead, disabled lane to the next endpoint, in order", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  await using first = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [first.address]);
  dc1.links.start();
  const settler = new TestSettler();
  for (const i of numbers(1, 50)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  await dc2.until(() => dc2.received.length === 50, "half is there, unsettled");
  first.block();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 0, "the link is down");
  for (const i of numbers(51, 100)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  dc1.endpoints.set(DC2, []);
  await dc1.links.refresh(DC2);
  for (const i of numbers(101, 120)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  assert.deepEqual(settler.settled, []);
  dc2.settlesAtOnce = true;
  dc1.endpoints.set(DC2, [dc2.address]);
  await dc1.links.refresh(DC2);
  await dc1.until(() => settler.settled.length === 120, "all are settled");
  assert.deepEqual(settler.settled, numbers(1, 120));
  assert.deepEqual(delivered(dc2.received), numbers(1, 120));
  const repeats = dc2.received.filter((envelope) => envelope.mayBeRepeat);
  assert.deepEqual(repeats.map((envelope) => envelope.sequence), numbers(1, 50));
});

Deno.test("LinkLayer gives back in order what a peer's dead process had not settled", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  const settler = new TestSettler();
  const first = new TestNode(DC2, { tls: await authority.holder(DC2) });
  first.settlesAtOnce = false;
  await first.links.listen();
  await using proxy = await TestProxy.to(first.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  for (const i of numbers(1, 10)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  await first.until(() => first.received.length === 10, "they are there");
  first.received[0]!.settle();
  first.received[4]!.settle();
  await dc1.until(() => settler.settled.length === 2, "two are settled");
  proxy.block();
  await first.links.close();
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 0, "the link is down");
  for (const i of numbers(11, 12)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  await using second = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await second.links.listen();
  proxy.retarget(second.address);
  proxy.unblock();
  await dc1.until(() => dc1.returned.length === 10, "they came back");
  assert.deepEqual(
    dc1.returned,
    [2, 3, 4, 6, 7, 8, 9, 10, 11, 12].map((sequence) => ({
      sequence,
      reason: "peer-restarted",
      mayBeRepeat: sequence <= 10,
    })),
  );
  dc1.links.send(DC2, testEnvelope(13, { settler }));
  await second.until(() => second.received.length === 1, "the new process is used");
  assert.deepEqual(second.sequences, [13]);
});

Deno.test("LinkLayer holds stanzas, bounded, until a first endpoint appears", async () => {
  using authority = await TestAuthority.create();
  const options = { laneMaxItems: 5, endpointRefreshIntervalWhenEmptyMs: 20 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  for (const i of numbers(1, 6)) dc1.links.send(DC2, testEnvelope(i));
  assert.deepEqual(dc1.returned, [{ sequence: 6, reason: "full", mayBeRepeat: false }]);
  assert.equal(dc1.links.snapshot().hosts[0]!.parkedItems, 5);
  assert.deepEqual(dc1.pressure, [], "nobody is slowed for a lane that is down");
  dc1.endpoints.set(DC2, [dc2.address]);
  await dc2.until(() => dc2.received.length === 5, "they arrive once it has");
  assert.deepEqual(dc2.sequences, numbers(1, 5));
});

Deno.test("LinkLayer gives everything back when a datacenter is gone for expireAfterMs", async () => {
  using authority = await TestAuthority.create();
  const options = { expireAfterMs: 150 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "the first is there");
  proxy.block();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 0, "the link is down");
  dc1.links.send(DC2, testEnvelope(2));
  await dc1.until(() => dc1.returned.length === 2, "both came back");
  assert.deepEqual(dc1.returned, [
    { sequence: 1, reason: "expired", mayBeRepeat: true },
    { sequence: 2, reason: "expired", mayBeRepeat: false },
  ]);
  dc1.links.send(DC2, testEnvelope(3));
  await dc1.until(() => dc1.returned.length === 3, "while it is gone they come back soon");
  proxy.unblock();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is up again");
  dc1.links.send(DC2, testEnvelope(4));
  await dc2.until(() => dc2.received.length === 2, "and used");
  assert.deepEqual(dc2.sequences, [1, 4]);
});

Deno.test("LinkLayer has what waits for a dead datacenter routed anew, again and again, in order", async () => {
  using authority = await TestAuthority.create();
  const options = { rerouteFirstMs: 100 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  const dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  const proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is open");
  proxy.block();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 0, "the link is down");
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i));
  const errored = () => dc1.metrics.value(`outgoing_errored_total ${DC2}`);
  const before = errored();
  await dc1.until(() => errored() > before + 4, "several attempts have failed");
  assert.deepEqual(dc1.returned, [], "who cannot be reached may still be there");
  await proxy[Symbol.asyncDispose](); // from now on nobody listens there
  await dc1.until(() => dc1.returned.length === 3, "they come back");
  const gone = { reason: "peer-gone" as const, mayBeRepeat: false };
  assert.deepEqual(dc1.returned, numbers(1, 3).map((sequence) => ({ sequence, ...gone })));
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i));
  await dc1.until(() => dc1.returned.length === 6, "so they do when the table says the same");
  await dc2[Symbol.asyncDispose]();
});

Deno.test("LinkLayer has what waits for those who have left a datacenter out of reach routed anew", async () => {
  using authority = await TestAuthority.create();
  const places = new Map<string, string>();
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    options: { rerouteFirstMs: 20 },
    whereabouts: (to) => Promise.resolve(places.get(to.text)),
  });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  dc2.settlesAtOnce = false;
  const [bob, dan] = ["bob@example.com/b", "dan@example.com/d"];
  let held = 0;
  const settler = { settle() {}, held: () => void held++ };
  const send = (sequence: number, to: string) =>
    dc1.links.send(DC2, testEnvelope(sequence, { to, settler }));
  send(1, bob);
  await dc1.until(() => held === 1, "the other side has said that it is there");
  proxy.block();
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 0, "the link is down");
  for (const sequence of [2, 4]) send(sequence, bob);
  for (const sequence of [3, 5]) send(sequence, dan);
  places.set(bob, DC2);
  const failed = () => dc1.log.entries.filter(({ event }) => event === "link.unreachable").length;
  await dc1.until(() => failed() > 3, "it is looked for in vain");
  assert.deepEqual(dc1.returned, [], "nobody has moved");
  places.set(bob, "dc3.example.com");
  await dc1.until(() => dc1.returned.length === 2, "what is for bob comes back");
  assert.deepEqual(
    dc1.returned,
    [2, 4].map((sequence) => ({
      sequence,
      reason: "peer-gone" as const,
      mayBeRepeat: false,
    })),
  );
  assert.equal(dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes[0]!.items, 3);
});

for (const [recipients, lookedFor] of [[1_000, 1_000], [1_001, 1_000]] as const) {
  Deno.test(`LinkLayer looks for ${lookedFor} of ${recipients} who may have left a datacenter out of reach`, async () => {
    const asked = new Map<string, number>();
    await using dc1 = new TestNode(DC1, {
      tls: undefined,
      listen: [],
      options: { rerouteFirstMs: 20 },
      whereabouts: (to) => {
        asked.set(to.text, (asked.get(to.text) ?? 0) + 1);
        return Promise.resolve(undefined);
      },
    });
    await using dc2 = new TestNode(DC2, { tls: undefined });
    await dc2.links.listen();
    await using proxy = await TestProxy.to(dc2.address);
    dc1.endpoints.set(DC2, [proxy.address]);
    dc1.links.start();
    dc1.links.send(DC2, testEnvelope(1));
    const items = () => dc1.links.snapshot().hosts[0]?.endpoints[0]?.lanes[0]?.items;
    await dc1.until(() => dc2.received.length === 1 && items() === 0, "it is linked");
    proxy.block();
    await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 0, "the link is down");
    asked.clear(); // it may have been slow to link
    const name = (i: number) => `u${i}@example.com`;
    for (let i = 1; i <= recipients; i++) {
      dc1.links.send(DC2, testEnvelope(1 + i, { to: name(i) }));
    }
    await dc1.until(() => (asked.get(name(1)) ?? 0) > 1, "it has looked twice");
    assert.equal(asked.size, lookedFor);
    assert.equal(asked.has(name(recipients)), recipients === lookedFor);
  });
}

Deno.test("LinkLayer lets what is routed anew expire, though it is never there when time runs out", async () => {
  const options = { tickMs: 10, rerouteFirstMs: 1, expireAfterMs: 200 };
  await using dc1 = new TestNode(DC1, { tls: undefined, options, listen: [] });
  dc1.endpoints.set(DC2, []);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  let seen = 0;
  await dc1.until(() => {
    // Looked up afresh, which takes a moment, and sent here again.
    for (; dc1.returned[seen]?.reason === "peer-gone"; seen++) {
      setTimeout(() => dc1.links.send(DC2, testEnvelope(1)), 1);
    }
    return dc1.returned.at(-1)?.reason === "expired";
  }, "it expires");
  assert.ok(seen > 0, "it was routed anew before");
});

Deno.test("LinkLayer enables, disables and collects endpoints, and opens new ones", async () => {
  using authority = await TestAuthority.create();
  const options = {
    disabledGcIntervalMs: 50,
    endpointRefreshIntervalMs: 20,
    endpointRefreshIntervalWhenEmptyMs: 20,
  };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using first = await TestProxy.to(dc2.address);
  await using second = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [first.address]);
  dc1.links.start();
  const states = () =>
    dc1.links.snapshot().hosts[0]?.endpoints.map(({ state }) => state).join(" ") ?? "";
  const open = () => dc1.links.snapshot().hosts[0]?.openLinks;
  await dc1.until(() => open() === 1, "the first is open");
  dc1.endpoints.set(DC2, [second.address]);
  await dc1.until(() => states() === "disabled enabled" && open() === 2, "a new pool is open");
  dc1.links.send(DC2, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "it is used");
  const senders = dc1.links.snapshot().hosts[0]!.endpoints.map(({ lanes }) => lanes[0]!.senders);
  assert.deepEqual(senders, [0, 1], "nobody is bound to a disabled endpoint who has a choice");
  dc1.endpoints.set(DC2, [first.address, second.address]);
  await dc1.until(() => states() === "enabled enabled", "the first is enabled again");
  dc1.endpoints.set(DC2, [second.address]);
  await dc1.until(() => states() === "disabled enabled", "and disabled");
  first.block();
  await dc1.until(() => states() === "enabled", "and collected once it is dead");
  const events = dc1.log.entries.map(({ event }) => event).filter((e) => e.startsWith("endpoint."));
  assert.deepEqual(events, [
    "endpoint.opened",
    "endpoint.opened",
    "endpoint.disabled",
    "endpoint.enabled",
    "endpoint.disabled",
    "endpoint.closed",
  ]);
});

Deno.test("LinkLayer ends a link for which more waits to be read than maxPendingBytes", async () => {
  await using dc1 = new TestNode(DC1, {
    tls: undefined,
    listen: [],
    options: { maxPendingBytes: 131_072 },
  });
  await using dc2 = new TestNode(DC2, { tls: undefined });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1, { padding: 130_000 }));
  await dc2.until(() => dc2.received.length === 1, "what is within the bound is there");
  assert.equal(dc1.metrics.value(`outgoing_errored_total ${DC2}`), 0);
  dc1.links.send(DC2, testEnvelope(2, { padding: 131_072 }));
  await dc1.until(() => dc1.metrics.value(`outgoing_errored_total ${DC2}`) > 0, "the link is cut");
  const [closed] = dc1.log.named("link.closed");
  assert.match(JSON.stringify(closed), /net\/peer-too-slow.*the limit is 131072 bytes/);
  assert.equal(dc2.received.length, 1);
});

Deno.test("LinkLayer slows the senders of a live lane over its mark, and lets them go on", async () => {
  using authority = await TestAuthority.create();
  const options = { laneMaxItems: 100 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is up");
  const [a, b, c] = ["a@example.com/1", "b@example.com/2", "c@example.com/3"] as const;
  for (const i of numbers(1, 25)) {
    dc1.links.send(DC2, testEnvelope(i, { from: a }));
    dc1.links.send(DC2, testEnvelope(i, { from: b }));
  }
  assert.deepEqual(dc1.pressure, []);
  dc1.links.send(DC2, testEnvelope(26, { from: a }));
  assert.deepEqual(dc1.pressure, [[a, true], [b, true]]);
  dc1.links.send(DC2, testEnvelope(1, { from: c }));
  assert.deepEqual(dc1.pressure.splice(0), [[a, true], [b, true], [c, true]]);
  await dc2.until(() => dc2.received.length === 52, "all are there");
  for (const envelope of dc2.received) envelope.settle();
  await dc1.until(() => dc1.pressure.length === 3, "they may go on");
  assert.deepEqual(dc1.pressure.splice(0), [[a, false], [b, false], [c, false]]);
  for (const i of numbers(1, 60)) dc1.links.send(DC2, testEnvelope(i, { from: a }));
  assert.deepEqual(dc1.pressure.splice(0), [[a, true]]);
  proxy.block();
  await dc1.until(() => dc1.pressure.length === 1, "a lane that is down slows nobody");
  assert.deepEqual(dc1.pressure, [[a, false]]);
});

Deno.test("LinkLayer.drain() waits for what is on its way, leaves what arrived there and gives back the rest", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  const settler = new TestSettler();
  for (const i of numbers(1, 20)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  const neverSent = new TestSettler();
  dc1.links.send("dc3.example.com", testEnvelope(30, { settler: neverSent }));
  await dc2.until(() => dc2.received.length === 20, "they are there");
  const drained = dc1.links.drain(300);
  for (const envelope of dc2.received.slice(0, 18)) envelope.settle();
  await drained;
  assert.equal(settler.settled.length, 20, "the last two are dc2's to see to");
  assert.deepEqual(dc1.returned, [{ sequence: 30, reason: "leaving", mayBeRepeat: false }]);
  dc1.links.send(DC2, testEnvelope(21));
  assert.deepEqual(dc1.returned.at(-1), { sequence: 21, reason: "leaving", mayBeRepeat: false });
  await dc2.until(() => dc2.metrics.value(`incoming_closed_total ${DC1}`) === 1, "it said GOODBYE");
  assert.equal(dc2.metrics.value(`incoming_errored_total ${DC1}`), 0);
});

Deno.test("LinkLayer.drain() leaves what arrived there open to whoever held it before", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  const [fates, held]: [string[], TestSettler] = [[], new TestSettler()];
  const settler = {
    settle: () => void fates.push("settled"),
    held: (number: number) => held.held(number),
    leftOpen: () => void fates.push("left open"),
  };
  dc1.links.send(DC2, testEnvelope(1, { settler }));
  await dc1.until(() => held.heldNumbers.length === 1, "dc2 has said that it has it");
  await dc1.links.drain(0);
  assert.deepEqual([fates, dc1.returned], [["left open"], []]);
});

Deno.test("LinkLayer.drain() does not wait for what a live peer has received and keeps", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  assert.equal(dc1.links.isSeenTo, true, "nothing is held");
  const settler = new TestSettler();
  dc1.links.send(DC2, testEnvelope(1, { settler }));
  assert.equal(dc1.links.isSeenTo, false, "nobody has received it");
  await dc1.until(() => dc1.links.isSeenTo, "it is with dc2, and stays there");
  assert.equal(dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes[0]!.items, 1);
  dc1.links.send("dc3.example.com", testEnvelope(2));
  assert.equal(dc1.links.isSeenTo, false, "nobody has received the second");
  dc1.links.remove("dc3.example.com");
  await dc1.links.drain(3_600_000);
  assert.equal(settler.settled.length, 1, "it is dc2's to see to");
  assert.deepEqual(dc1.returned.map(({ sequence }) => sequence), [2]);
});

Deno.test("LinkLayer.drain() of the receiving node settles first and takes no more", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  const settler = new TestSettler();
  for (const i of numbers(1, 5)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  await dc2.until(() => dc2.received.length === 5, "they are there");
  const drained = dc2.links.drain(5000);
  for (const envelope of dc2.received) envelope.settle();
  await drained;
  await dc1.until(() => settler.settled.length === 5, "all were settled before GOODBYE");
  await dc1.until(() => dc1.metrics.value(`outgoing_closed_total ${DC2}`) === 1, "in order");
});

Deno.test("LinkLayer.giveUpStuck() gives back what nobody has received, and lets the rest be settled", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1) });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  for (const node of [dc1, dc2]) {
    node.settlesAtOnce = false;
    await node.links.listen();
  }
  dc1.endpoints.set(DC2, [dc2.address]);
  dc2.endpoints.set(DC1, [dc1.address]);
  for (const node of [dc1, dc2]) node.links.start();
  const [toDc1, toDc2] = [new TestSettler(), new TestSettler()];
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i, { settler: toDc2 }));
  for (const i of numbers(1, 3)) {
    dc2.links.send(DC1, testEnvelope(i, { settler: toDc1, origin: DC2 }));
  }
  for (const i of numbers(11, 13)) dc1.links.send("dc3.example.com", testEnvelope(i));
  await dc1.until(() => dc1.received.length === 3, "dc2's are at dc1");
  await dc2.until(() => dc2.received.length === 3, "dc1's are at dc2");
  await dc1.until(() => toDc2.heldNumbers.length === 3, "dc2 has said that it has them");
  dc1.links.giveUpStuck();
  assert.deepEqual(
    dc1.returned,
    numbers(11, 13).map((sequence) => ({ sequence, reason: "leaving", mayBeRepeat: false })),
  );
  dc1.links.send("dc3.example.com", testEnvelope(14));
  assert.deepEqual(dc1.returned.at(-1), { sequence: 14, reason: "leaving", mayBeRepeat: false });
  for (const envelope of [...dc1.received, ...dc2.received]) envelope.settle();
  await dc2.until(() => toDc1.settled.length === 3, "dc2 is told of its own");
  await dc1.until(() => toDc2.settled.length === 3, "dc1 is told of its own");
  dc1.links.send(DC2, testEnvelope(4));
  await dc2.until(() => dc2.received.length === 4, "dc2 can be written to");
});

Deno.test("LinkLayer.reintroduce() tells all peers of a new id at once, and lanes resume", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1) });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  for (const node of [dc1, dc2]) await node.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc2.endpoints.set(DC1, [dc1.address]);
  for (const node of [dc1, dc2]) node.links.start();
  const isLinked = () =>
    [dc1, dc2].every(({ links }) =>
      links.snapshot().hosts[0]?.openLinks === 1 && links.snapshot().incoming.length === 1
    );
  await dc1.until(isLinked, "both are linked");
  const settler = new TestSettler();
  for (const i of numbers(1, 10)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  dc1.datacenterId = "the id that it should have had";
  dc1.links.reintroduce();
  for (const i of numbers(11, 20)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  await dc1.until(() => settler.settled.length === 20, "all are settled");
  assert.deepEqual(dc2.sequences, numbers(1, 20));
  await dc1.until(isLinked, "both are linked again");
  assert.equal(dc2.metrics.value(`outgoing_established_total ${DC1}`) >= 2, true);
});

Deno.test("LinkLayer says that its identity is in doubt when a peer finds another datacenter linked", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using other = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  other.datacenterId = "another";
  for (const node of [dc1, other]) node.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "one is linked");
  other.links.start();
  await other.until(() => other.doubts > 0, "the other is refused");
  assert.equal(dc1.doubts, 0);
  other.datacenterId = dc1.datacenterId;
  await other.until(() => other.links.snapshot().hosts[0]?.openLinks === 1, "it is taken in");
});

Deno.test("LinkLayer looks for hosts again and again, and connects to those it first sees", async () => {
  using authority = await TestAuthority.create();
  const options = { hostsRefreshIntervalMs: 20 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  dc1.endpoints.set(DC1, [dc2.address]);
  dc1.links.start();
  await dc1.links.refresh(DC2);
  assert.deepEqual(dc1.links.snapshot().hosts, [], "never to our own local host");
  dc1.endpoints.set(DC2, [dc2.address]);
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "it is linked");
});

Deno.test("LinkLayer uses the override's endpoints instead of the table's", async () => {
  using authority = await TestAuthority.create();
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    overrides: { [DC2]: [dc2.address] },
    endpoints: { endpoints: () => Promise.reject(new Error("must not be asked")) },
  });
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "it is linked");
});

Deno.test("LinkLayer keeps its links while the session table cannot be asked", async () => {
  using authority = await TestAuthority.create();
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  let isDown = false;
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    endpoints: {
      endpoints: () => isDown ? Promise.reject(new Error("down")) : Promise.resolve([dc2.address]),
    },
    hosts: { hosts: () => Promise.reject(new Error("down")) },
  });
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "it is linked");
  isDown = true;
  await dc1.links.refresh(DC2);
  await dc1.links.refresh(DC2);
  assert.equal(dc1.links.snapshot().hosts[0]!.endpoints[0]!.state, "enabled");
  assert.equal(dc1.log.named("endpoints.unknown").length, 1);
  assert.equal(dc1.log.named("hosts.unknown").length, 1);
});

Deno.test("LinkLayer moves a leaving node's share to its datacenter's other node at once", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  const leaving = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await using staying = new TestNode(DC2, { tls: await authority.holder(DC2) });
  leaving.settlesAtOnce = false;
  await leaving.links.listen();
  await staying.links.listen();
  dc1.endpoints.set(DC2, [leaving.address]);
  dc1.links.start();
  const settler = new TestSettler();
  for (const i of numbers(1, 20)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  await leaving.until(() => leaving.received.length === 20, "they are there");
  dc1.endpoints.set(DC2, [leaving.address, staying.address]);
  await dc1.links.refresh(DC2);
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 2, "both are linked");
  for (const envelope of leaving.received.slice(0, 15)) envelope.settle();
  await leaving.links.drain(30);
  await staying.until(() => staying.received.length === 5, "the other node has the rest");
  dc1.links.send(DC2, testEnvelope(21, { settler }));
  await dc1.until(() => settler.settled.length === 21, "all are settled");
  assert.deepEqual(staying.sequences, numbers(16, 21));
  assert.deepEqual(staying.received.map((one) => one.mayBeRepeat), [...Array(5).fill(true), false]);
  await leaving.links.close();
});

Deno.test("LinkLayer moves the share of a node that is dead at once, of one out of reach not yet", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using first = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await using second = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await first.links.listen();
  await second.links.listen();
  const proxy = await TestProxy.to(first.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the first is linked");
  first.settlesAtOnce = false;
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i));
  await first.until(() => first.received.length === 3, "they are there");
  dc1.endpoints.set(DC2, [proxy.address, second.address]);
  await dc1.links.refresh(DC2);
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 2, "both are linked");
  proxy.block();
  const errored = () => dc1.metrics.value(`outgoing_errored_total ${DC2}`);
  await dc1.until(() => errored() > 3, "several attempts have failed");
  assert.equal(second.received.length, 0, "a node that cannot be reached may still deliver");
  await proxy[Symbol.asyncDispose](); // from now on nobody listens there
  await second.until(() => second.received.length === 3, "the other node has them");
  assert.deepEqual(second.sequences, numbers(1, 3));
});

Deno.test("LinkLayer moves the share of a node that stays out of reach to one that is reached", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    options: { rehomeAfterMs: 1 },
  });
  await using first = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await using second = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await first.links.listen();
  await second.links.listen();
  await using proxy = await TestProxy.to(first.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the first is linked");
  first.settlesAtOnce = false;
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i));
  await first.until(() => first.received.length === 3, "they are there");
  proxy.block();
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 0, "it is out of reach");
  dc1.links.send(DC2, testEnvelope(4));
  dc1.endpoints.set(DC2, [proxy.address, second.address]);
  await dc1.links.refresh(DC2);
  await second.until(() => second.received.length === 4, "the other node has them");
  assert.deepEqual(second.sequences, numbers(1, 4));
  assert.deepEqual(second.received.map((one) => one.mayBeRepeat), [true, true, true, false]);
});

Deno.test("LinkLayer moves that share after rehomeAfterMs, and not before", async () => {
  const clock = new ManualClock();
  await using dc1 = new TestNode(DC1, {
    tls: undefined,
    listen: [],
    clock,
    options: { rehomeAfterMs: 100, tickMs: 1 },
  });
  await using first = new TestNode(DC2, { tls: undefined });
  await using second = new TestNode(DC2, { tls: undefined });
  await first.links.listen();
  await second.links.listen();
  await using proxy = await TestProxy.to(first.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  const openLinks = () => dc1.links.snapshot().hosts[0]?.openLinks;
  await dc1.until(() => openLinks() === 1, "the first is linked");
  proxy.block();
  await dc1.until(() => openLinks() === 0, "it is out of reach");
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i));
  dc1.endpoints.set(DC2, [proxy.address, second.address]);
  await dc1.links.refresh(DC2);
  await dc1.until(() => openLinks() === 1, "the other is linked");
  const held = () =>
    dc1.links.snapshot().hosts[0]!.endpoints.map(({ lanes }) => lanes[0]!.items).toSorted();
  clock.advance(99);
  assert.deepEqual([held(), second.received.length], [[0, 3], 0]);
  clock.advance(1);
  await second.until(() => second.received.length === 3, "the other node has them");
  assert.deepEqual(second.sequences, numbers(1, 3));
  await close(dc1, clock);
});

Deno.test("LinkLayer routes anew what waits for nobody after rerouteFirstMs, then twice as long", async () => {
  const clock = new ManualClock();
  const options = { rerouteFirstMs: 100, tickMs: 1 };
  await using dc1 = new TestNode(DC1, { tls: undefined, listen: [], clock, options });
  dc1.endpoints.set(DC2, []);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  clock.advance(1); // it is seen to wait
  clock.advance(99);
  assert.deepEqual(dc1.returned, []);
  clock.advance(1);
  assert.deepEqual(dc1.returned.map(({ reason }) => reason), ["peer-gone"]);
  dc1.links.send(DC2, testEnvelope(1)); // the table knows no better
  clock.advance(199);
  assert.equal(dc1.returned.length, 1);
  clock.advance(1);
  assert.equal(dc1.returned.length, 2);
  await close(dc1, clock);
});

Deno.test("LinkLayer.renew() connects each link anew with the certificate that is there now", async () => {
  using authority = await TestAuthority.create();
  const options = { connectionsPerEndpoint: 3 };
  const holder = await authority.holder(DC1);
  await using dc1 = new TestNode(DC1, { tls: holder, options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 3, "all links are up");
  const settler = new TestSettler();
  let isDone = false;
  const sending = (async () => {
    for (let i = 1; i <= 500 || !isDone; i++) {
      dc1.links.send(DC2, testEnvelope(i, { settler, from: `user${i % 7}@example.com/x` }));
      if (i % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  })();
  await holder.reload();
  await dc1.links.renew();
  isDone = true;
  await sending;
  const sent = dc1.returned.length + dc1.links.snapshot().hosts[0]!.openLinks;
  assert.equal(sent, 3, "all are up again and nothing came back");
  assert.equal(dc1.metrics.value(`outgoing_established_total ${DC2}`), 6);
  assert.equal(dc1.metrics.value(`outgoing_closed_total ${DC2}`), 3);
  await dc1.until(
    () => dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes.every((l) => l.items === 0),
    "all is settled",
  );
  assert.equal(new Set(dc2.sequences).size, dc2.sequences.length);
  for (let user = 0; user < 7; user++) {
    const own = dc2.sequences.filter((sequence) => sequence % 7 === user);
    assert.deepEqual(own, own.toSorted((a, b) => a - b));
  }
});

Deno.test("LinkLayer connects at once to a datacenter that links to it, however long it would wait", async () => {
  using authority = await TestAuthority.create();
  const options = { reconnectFirstMs: 3_600_000, reconnectMaxMs: 3_600_000 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc1.links.listen();
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  proxy.block();
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  const state = () => dc1.links.snapshot().hosts[0]?.endpoints[0]?.lanes[0]?.state;
  await dc1.until(() => state() === "waiting", "the first attempt has failed");
  proxy.unblock();
  dc2.endpoints.set(DC1, [dc1.address]);
  dc2.links.start();
  await dc1.until(() => state() === "open", "dc1 has linked back");
});
