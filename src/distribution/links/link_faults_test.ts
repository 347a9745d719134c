import assert from "node:assert/strict";
import { DC1, DC2, numbers, sendPaced } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";

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

Deno.test("LinkLayer gives back in order the stanzas that a peer's dead process had not settled", async () => {
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

Deno.test("LinkLayer ends a link when more than maxPendingBytes wait for the peer to read", async () => {
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
  await dc2.until(() => dc2.received.length === 1, "the stanza within the bound is there");
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
  await dc1.until(() => dc1.pressure.length === 3, "the senders may go on");
  assert.deepEqual(dc1.pressure.splice(0), [[a, false], [b, false], [c, false]]);
  for (const i of numbers(1, 60)) dc1.links.send(DC2, testEnvelope(i, { from: a }));
  assert.deepEqual(dc1.pressure.splice(0), [[a, true]]);
  proxy.block();
  await dc1.until(() => dc1.pressure.length === 1, "a lane that is down slows no sender");
  assert.deepEqual(dc1.pressure, [[a, false]]);
});

Deno.test("LinkLayer slows a sender for whose stanza the other end has no room, and no other", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: undefined });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  const isUp = () => dc1.links.snapshot().hosts[0]?.openLinks === 1;
  await dc1.until(isUp, "the link is up");
  const [a, b] = ["a@example.com/1", "b@example.com/2"] as const;
  for (const i of [1, 2]) dc1.links.send(DC2, testEnvelope(i, { from: a }));
  dc1.links.send(DC2, testEnvelope(1, { from: b }));
  await dc2.until(() => dc2.received.length === 3, "all are there");
  const [first, second] = dc2.received;
  const endFirst = first!.slowSender()!;
  await dc1.until(() => dc1.pressure.length === 1, "the sender is slowed");
  const endSecond = second!.slowSender()!;
  endFirst();
  first!.settle();
  await dc1.until(() => dc1.pressure.length === 3, "the second stanza slows it now");
  assert.deepEqual(dc1.pressure.splice(0), [[a, true], [a, true], [a, false]]);
  proxy.cut();
  await dc1.until(() => dc1.pressure.length >= 1, "a link that is down slows no sender");
  await dc1.until(() => dc1.pressure.length === 2, "it is slowed again when the link is back");
  assert.deepEqual(dc1.pressure.splice(0), [[a, false], [a, true]]);
  endSecond();
  await dc1.until(() => dc1.pressure.length === 1, "it goes on");
  assert.deepEqual(dc1.pressure, [[a, false]]);
});

Deno.test("LinkLayer connects at once to a datacenter that links to it, without waiting for its next attempt", async () => {
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
