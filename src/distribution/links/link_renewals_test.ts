import assert from "node:assert/strict";
import { DC1, DC2, numbers } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";

Deno.test("LinkLayer.renew() connects each link anew with the current certificate", async () => {
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
  assert.equal(sent, 3, "all are up again and none came back");
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

Deno.test("LinkLayer reports that its identity is in doubt when a peer has another datacenter linked", async () => {
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
  await other.until(
    () => other.links.snapshot().hosts[0]?.openLinks === 1,
    "the other is accepted",
  );
});

Deno.test("LinkLayer.change() makes and ends links while stanzas flow, and loses, repeats and overtakes none", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  const open = () => dc1.links.snapshot().hosts[0]?.openLinks;
  await dc1.until(() => open() === 1, "the first link is up");
  const settler = new TestSettler();
  let sent = 0;
  let isDone = false;
  const sending = (async () => {
    while (!isDone || sent < 500) {
      sent++;
      dc1.links.send(DC2, testEnvelope(sent, { settler, from: `user${sent % 7}@example.com/x` }));
      if (sent % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  })();
  for (const connectionsPerEndpoint of [3, 2, 4, 1]) {
    dc1.links.change({ options: { connectionsPerEndpoint, tickMs: 20 } });
    await dc1.until(() => open() === connectionsPerEndpoint, `${connectionsPerEndpoint} are up`);
  }
  isDone = true;
  await sending;
  await dc1.until(() => settler.settled.length === sent, "all are settled");
  assert.equal(dc1.returned.length, 0);
  assert.equal(dc2.sequences.length, sent);
  for (let user = 0; user < 7; user++) {
    const own = dc2.sequences.filter((sequence) => sequence % 7 === user);
    assert.deepEqual(own, own.toSorted((a, b) => a - b));
  }
  assert.throws(() => dc1.links.change({ options: { connectionsPerEndpoint: 0 } }), RangeError);
});

Deno.test("LinkLayer.change() follows endpoints and seeds of the configuration", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  dc1.links.start();
  assert.equal(dc1.links.isOtherLocalHost(DC2), false);
  dc1.links.change({ overrides: { [DC2]: [dc2.address] } });
  const hosts = () => dc1.links.snapshot().hosts;
  await dc1.until(() => hosts()[0]?.openLinks === 1, "dc2 is linked");
  assert.equal(dc1.links.isOtherLocalHost(DC2), true);
  const nowhere = { host: "127.0.0.1", port: 1 };
  const unreachable = () =>
    dc1.log.named("seed.unreachable").map(({ fields }) => fields["endpoint"]);
  dc1.links.change({ overrides: { [DC2]: [nowhere] }, seeds: [nowhere] });
  await dc1.until(
    () => hosts()[0]!.endpoints.some(({ endpoint }) => endpoint === "127.0.0.1#1"),
    "the other endpoint is used",
  );
  await dc1.until(() => unreachable().length === 1, "the seed is called");
  dc1.links.change({ overrides: { [DC2]: [dc2.address] }, seeds: [] });
  await dc1.until(() => hosts()[0]!.openLinks === 1, "dc2 is linked as before");
});
