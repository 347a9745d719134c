import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { Envelope } from "../mod.ts";
import { close, DC1, DC2, numbers, sendPaced } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";

/** Returns sequences in order of arrival, without marked repeats. */
function delivered(received: readonly Envelope[]): number[] {
  const seen = new Set<number>();
  return received.flatMap(({ sequence, mayBeRepeat }) => {
    if (mayBeRepeat && seen.has(sequence)) return [];
    seen.add(sequence);
    return [sequence];
  });
}

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

Deno.test("LinkLayer moves the stanzas of a dead, disabled lane to the next endpoint, in order", async () => {
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

Deno.test("LinkLayer moves a leaving node's stanzas to the other node of its datacenter at once", async () => {
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
  await leaving.links.leave(30);
  await staying.until(() => staying.received.length === 5, "the other node has the rest");
  dc1.links.send(DC2, testEnvelope(21, { settler }));
  await dc1.until(() => settler.settled.length === 21, "all are settled");
  assert.deepEqual(staying.sequences, numbers(16, 21));
  assert.deepEqual(staying.received.map((one) => one.mayBeRepeat), [...Array(5).fill(true), false]);
  await leaving.links.close();
});

Deno.test("LinkLayer moves the stanzas of a dead node at once, those of an unreachable node not yet", async () => {
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
  const failed = () => dc1.metrics.value(`outgoing_dials_failed_total ${DC2}`);
  await dc1.until(() => failed() > 3, "several attempts have failed");
  assert.equal(second.received.length, 0, "an unreachable node may still deliver");
  await proxy[Symbol.asyncDispose](); // from now on the endpoint refuses
  await second.until(() => second.received.length === 3, "the other node has them");
  assert.deepEqual(second.sequences, numbers(1, 3));
});

Deno.test("LinkLayer moves the stanzas of a node that stays unreachable to a linked one", async () => {
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

Deno.test("LinkLayer moves an unreachable node's stanzas after rehomeAfterMs, and not before", async () => {
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
