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
