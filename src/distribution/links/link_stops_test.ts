import assert from "node:assert/strict";
import { ManualClock, SystemClock } from "../../base/mod.ts";
import { close, DC1, DC2, numbers } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";
import { LaneDrain } from "./lane_drain.ts";

function drainOf({ links }: TestNode): LaneDrain {
  return new LaneDrain({
    clock: new SystemClock(),
    links: [links],
    route: () => Promise.resolve(),
  });
}

Deno.test("LinkLayer.leave() waits for stanzas on their way, leaves received ones to the peer and gives back the rest", async () => {
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
  const drained = dc1.links.leave(300);
  for (const envelope of dc2.received.slice(0, 18)) envelope.settle();
  await drained;
  assert.equal(settler.settled.length, 20, "dc2 owns the last two");
  assert.deepEqual(dc1.returned, [{ sequence: 30, reason: "leaving", mayBeRepeat: false }]);
  dc1.links.send(DC2, testEnvelope(21));
  assert.deepEqual(dc1.returned.at(-1), { sequence: 21, reason: "leaving", mayBeRepeat: false });
  await dc2.until(() => dc2.metrics.value(`incoming_closed_total ${DC1}`) === 1, "it said GOODBYE");
  assert.equal(dc2.metrics.value(`incoming_errored_total ${DC1}`), 0);
});

Deno.test("LinkLayer.leave() leaves open a received stanza that the node before holds too", async () => {
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
  await dc1.links.leave(0);
  assert.deepEqual([fates, dc1.returned], [["left open"], []]);
});

Deno.test("LinkLayer.leave() does not wait for stanzas that a live peer has received and keeps", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  const settler = new TestSettler();
  dc1.links.send(DC2, testEnvelope(1, { settler }));
  assert.equal(await drainOf(dc1).run(60_000), "kept", "dc2 has received it, and keeps it");
  assert.equal(dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes[0]!.items, 1);
  dc1.links.send("dc3.example.com", testEnvelope(2));
  assert.equal(dc1.links.givenBack, 0);
  dc1.links.remove("dc3.example.com");
  assert.equal(dc1.links.givenBack, 1);
  await dc1.links.leave(3_600_000);
  assert.equal(settler.settled.length, 1, "dc2 owns it");
  assert.deepEqual(dc1.returned.map(({ sequence }) => sequence), [2]);
});

for (const isBefore of [true, false]) {
  const when = isBefore ? "has restarted just before" : "restarts meanwhile";
  Deno.test(`LinkLayer.leave() waits for lookups of stanzas that came back from a peer that ${when}`, async () => {
    using authority = await TestAuthority.create();
    await using old = new TestNode(DC2, { tls: await authority.holder(DC2) });
    await using next = new TestNode(DC2, { tls: await authority.holder(DC2) });
    old.settlesAtOnce = false;
    next.datacenterId = old.datacenterId;
    for (const node of [old, next]) await node.links.listen();
    await using proxy = await TestProxy.to(old.address);
    await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
    dc1.endpoints.set(DC2, [proxy.address]);
    dc1.links.start();
    const settler = new TestSettler();
    for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i, { settler }));
    await old.until(() => old.received.length === 3, "they are there");
    let lookups = 0;
    const drained = dc1.links.leave(60_000, async () => {
      if (++lookups === 1 && !isBefore) return;
      await dc1.until(() => dc1.returned.length === 3, "all have come back");
      await new Promise((resolve) => setTimeout(resolve, 30));
      for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i, { settler }));
    });
    proxy.retarget(next.address);
    if (!isBefore) await dc1.until(() => lookups > 0, "it has begun");
    proxy.cut();
    await drained;
    assert.equal(lookups, isBefore ? 1 : 2);
    const reasons = dc1.returned.map(({ reason }) => reason);
    assert.deepEqual(reasons, numbers(1, 3).map(() => "peer-restarted"));
    assert.deepEqual(next.sequences, numbers(1, 3));
    assert.equal(settler.settled.length, 3);
  });
}

Deno.test("LinkLayer.leave() gives the router half of its time, and ends when time is over", async () => {
  const clock = new ManualClock();
  await using dc1 = new TestNode(DC1, { tls: undefined, listen: [], clock });
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  const leftMs: number[] = [];
  let hasLeft = false;
  const leaving = dc1.links.leave(1000, async (withinMs) => {
    leftMs.push(withinMs);
    await new Promise<void>((resolve) => clock.after(withinMs, resolve));
  }).then(() => hasLeft = true);
  await dc1.until(() => {
    if (!hasLeft) clock.advance(10);
    return hasLeft;
  }, "it has left");
  await leaving;
  assert.deepEqual([leftMs, clock.monotonicMs() >= 1000], [[500], true]);
  assert.deepEqual(dc1.returned, [{ sequence: 1, reason: "leaving", mayBeRepeat: false }]);
  await close(dc1, clock);
});

Deno.test("LinkLayer.leave() of the receiving node settles received stanzas and takes no more", async () => {
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
  let hasLeft = false;
  const leaving = dc2.links.leave(60_000).then(() => hasLeft = true);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(hasLeft, false, "their fates are open");
  for (const envelope of dc2.received) envelope.settle();
  await leaving;
  await dc1.until(() => settler.settled.length === 5, "all were settled before GOODBYE");
  await dc1.until(() => dc1.metrics.value(`outgoing_closed_total ${DC2}`) === 1, "in order");
});

Deno.test("LaneDrain.giveUpStuck() gives back stanzas that no peer has received, and lets the rest be settled", async () => {
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
  assert.equal(dc1.links.isGivenUp("dc3.example.com"), false);
  const drain = drainOf(dc1);
  assert.equal(await drain.run(20), "late", "nobody is at dc3");
  drain.giveUpStuck();
  assert.deepEqual([DC2, "dc3.example.com"].map((each) => dc1.links.isGivenUp(each)), [
    false,
    true,
  ]);
  assert.deepEqual(
    dc1.returned,
    numbers(11, 13).map((sequence) => ({ sequence, reason: "leaving", mayBeRepeat: false })),
  );
  dc1.links.send("dc3.example.com", testEnvelope(14));
  assert.deepEqual(dc1.returned.at(-1), { sequence: 14, reason: "leaving", mayBeRepeat: false });
  for (const envelope of [...dc1.received, ...dc2.received]) envelope.settle();
  await dc2.until(() => toDc1.settled.length === 3, "dc2's stanzas are settled");
  await dc1.until(() => toDc2.settled.length === 3, "dc1's stanzas are settled");
  dc1.links.send(DC2, testEnvelope(4));
  await dc2.until(() => dc2.received.length === 4, "dc1 can still write to dc2");
});

Deno.test("LinkLayer.leave() tells what lanes are left with, unless it has never looked for others", async () => {
  using authority = await TestAuthority.create();
  for (const hasStarted of [false, true]) {
    await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1) });
    await dc1.links.listen();
    if (hasStarted) dc1.links.start();
    await dc1.links.leave(0);
    assert.equal(dc1.log.entries.some(({ event }) => event === "links.drained"), hasStarted);
  }
});
