import assert from "node:assert/strict";
import { DC1, DC2, numbers } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";

Deno.test("LinkControl.pause() ends the links of a datacenter, and its stanzas wait for resume(), in order", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "they are linked");
  const settler = new TestSettler();
  dc1.links.send(DC2, testEnvelope(1, { settler }));
  await dc1.until(() => settler.settled.length === 1, "one has arrived");

  assert.equal(dc1.links.control.pause(DC2), 1);
  assert.equal(dc1.links.control.pause(DC2), 0, "it is paused already");
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 0, "the link is down");
  for (const i of numbers(2, 20)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  dc1.links.control.retry(DC2);
  await dc1.links.refresh(DC2);
  const paused = dc1.links.snapshot().hosts[0]!;
  assert.equal(paused.isPaused, true);
  assert.deepEqual(paused.endpoints[0]!.lanes.map(({ state }) => state), ["idle"]);
  assert.equal(dc1.links.flows()[0]!.isPaused, true);
  assert.equal(dc2.received.length, 1);

  assert.equal(dc1.links.control.resume(DC2), 1);
  await dc1.until(() => settler.settled.length === 20, "all have arrived");
  assert.deepEqual(dc2.received.map(({ sequence }) => sequence), numbers(1, 20));
  const [flow] = dc1.links.flows();
  assert.deepEqual([flow!.isPaused, flow!.openLinks, flow!.sent], [false, 1, 20]);
});

Deno.test("LinkControl.pause() of one endpoint moves its stanzas to the others, and endpoints that come later are used", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using first = await TestProxy.to(dc2.address);
  await using second = await TestProxy.to(dc2.address);
  const addressOf = ({ host, port }: { host: string; port: number }) => `${host}#${port}`;
  dc1.endpoints.set(DC2, [first.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "they are linked");
  assert.equal(dc1.links.control.pause(DC2, addressOf(first.address)), 1);
  const settler = new TestSettler();
  for (const i of numbers(1, 5)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  dc1.endpoints.set(DC2, [first.address, second.address]);
  await dc1.links.refresh(DC2);
  await dc1.until(() => settler.settled.length === 5, "they go by the other endpoint");
  const { endpoints } = dc1.links.snapshot().hosts[0]!;
  assert.deepEqual(
    endpoints.map(({ endpoint, state, lanes }) => [endpoint, state, lanes[0]!.isPaused]),
    [
      [addressOf(first.address), "disabled", true],
      [addressOf(second.address), "enabled", false],
    ],
  );
  assert.equal(dc1.links.control.resume(DC2), 1);
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 2, "both are linked");
  assert.equal(dc1.links.control.pause("dc9.example.com"), undefined);
});

Deno.test("LinkControl.rebalance() moves senders without held stanzas to lanes with fewer senders", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using second = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "they are linked");
  const settler = new TestSettler();
  const from = (i: number) => `user${i}@example.com/phone`;
  for (const i of numbers(1, 20)) dc1.links.send(DC2, testEnvelope(i, { settler, from: from(i) }));
  await dc1.until(() => settler.settled.length === 20, "all are settled");
  dc1.endpoints.set(DC2, [dc2.address, second.address]);
  await dc1.links.refresh(DC2);
  await dc1.until(() => dc1.links.snapshot().hosts[0]!.openLinks === 2, "both are linked");
  dc2.settlesAtOnce = false;
  dc1.links.send(DC2, testEnvelope(21, { settler, from: from(1) }));
  const senders = () =>
    dc1.links.snapshot().hosts[0]!.endpoints.map(({ lanes }) => lanes[0]!.senders);
  assert.deepEqual(senders(), [20, 0]);
  const { hosts, senders: moved } = dc1.links.control.rebalance();
  assert.equal(hosts, 1);
  assert.equal(moved, 10);
  assert.deepEqual(senders(), [10, 10]);
  assert.equal(dc1.links.control.rebalance(DC2).senders, 0, "they are even");
});
