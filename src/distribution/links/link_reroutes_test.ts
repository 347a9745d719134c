import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { close, DC1, DC2, numbers } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";

Deno.test("LinkLayer gives all stanzas back when a datacenter is gone for expireAfterMs", async () => {
  using authority = await TestAuthority.create();
  const clock = new ManualClock();
  const options = { expireAfterMs: 150, tickMs: 10 };
  const tls = await authority.holder(DC1);
  await using dc1 = new TestNode(DC1, { tls, options, clock, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  dc2.settlesAtOnce = false;
  await dc2.links.listen();
  await using proxy = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [proxy.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is up");
  dc1.links.send(DC2, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "the first is there");
  proxy.block();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 0, "the link is down");
  dc1.links.send(DC2, testEnvelope(2));
  clock.advance(140);
  assert.deepEqual(dc1.returned, []);
  clock.advance(10);
  assert.deepEqual(dc1.returned, [
    { sequence: 1, reason: "expired", mayBeRepeat: true },
    { sequence: 2, reason: "expired", mayBeRepeat: false },
  ]);
  dc1.links.send(DC2, testEnvelope(3));
  clock.advance(10);
  assert.equal(dc1.returned.length, 3, "later stanzas come back soon while it is gone");
  proxy.unblock();
  await dc1.until(() => {
    clock.advance(10);
    return dc1.links.snapshot().hosts[0]?.openLinks === 1;
  }, "the link is up again");
  dc1.links.send(DC2, testEnvelope(4));
  await dc2.until(() => dc2.received.length === 2, "and used");
  assert.deepEqual(dc2.sequences, [1, 4]);
  await close(dc1, clock);
});

Deno.test("LinkLayer gives the stanzas of a dead datacenter back to be routed anew, repeatedly and in order", async () => {
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
  const failed = () => dc1.metrics.value(`outgoing_dials_failed_total ${DC2}`);
  const before = failed();
  await dc1.until(() => failed() > before + 4, "several attempts have failed");
  assert.deepEqual(dc1.returned, [], "an unreachable datacenter may still live");
  await proxy[Symbol.asyncDispose](); // from now on the endpoint refuses
  await dc1.until(() => dc1.returned.length === 3, "they come back");
  const gone = { reason: "peer-gone" as const, mayBeRepeat: false };
  assert.deepEqual(dc1.returned, numbers(1, 3).map((sequence) => ({ sequence, ...gone })));
  for (const i of numbers(1, 3)) dc1.links.send(DC2, testEnvelope(i));
  await dc1.until(
    () => dc1.returned.length === 6,
    "they come back again when the table has no news",
  );
  await dc2[Symbol.asyncDispose]();
});

Deno.test("LinkLayer reroutes stanzas for recipients that have left an unreachable datacenter", async () => {
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
  await dc1.until(() => failed() > 3, "several attempts have failed");
  assert.deepEqual(dc1.returned, [], "no recipient has moved");
  places.set(bob, "dc3.example.com");
  await dc1.until(() => dc1.returned.length === 2, "bob's stanzas come back");
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
  Deno.test(`LinkLayer looks up ${lookedFor} of ${recipients} recipients at an unreachable datacenter`, async () => {
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
    asked.clear(); // linking may have been slow
    const name = (i: number) => `u${i}@example.com`;
    for (let i = 1; i <= recipients; i++) {
      dc1.links.send(DC2, testEnvelope(1 + i, { to: name(i) }));
    }
    await dc1.until(() => (asked.get(name(1)) ?? 0) > 1, "each was looked up twice");
    assert.equal(asked.size, lookedFor);
    assert.equal(asked.has(name(recipients)), recipients === lookedFor);
  });
}

Deno.test("LinkLayer expires stanzas that are being rerouted when their time is over", async () => {
  const clock = new ManualClock();
  const options = { tickMs: 10, rerouteFirstMs: 1, expireAfterMs: 200 };
  await using dc1 = new TestNode(DC1, { tls: undefined, options, clock, listen: [] });
  dc1.endpoints.set(DC2, []);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  let seen = 0;
  for (let ms = 0; ms < 300 && dc1.returned.at(-1)?.reason !== "expired"; ms++) {
    clock.advance(1);
    // After a new lookup, which takes a moment, it is sent here again.
    for (; dc1.returned[seen]?.reason === "peer-gone"; seen++) {
      clock.after(1, () => dc1.links.send(DC2, testEnvelope(1)));
    }
  }
  assert.ok(seen > 0, "it was rerouted before");
  assert.deepEqual(dc1.returned.map(({ reason }) => reason).slice(seen), ["expired"]);
  await close(dc1, clock);
});

Deno.test("LinkLayer reroutes stanzas of a refusing endpoint after rerouteFirstMs, then after twice as long", async () => {
  const clock = new ManualClock();
  const options = { rerouteFirstMs: 100, tickMs: 1 };
  await using dc1 = new TestNode(DC1, { tls: undefined, listen: [], clock, options });
  dc1.endpoints.set(DC2, []);
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  clock.advance(1); // the tick notices the stanza
  clock.advance(99);
  assert.deepEqual(dc1.returned, []);
  clock.advance(1);
  assert.deepEqual(dc1.returned.map(({ reason }) => reason), ["peer-gone"]);
  dc1.links.send(DC2, testEnvelope(1)); // the table has no news
  clock.advance(199);
  assert.equal(dc1.returned.length, 1);
  clock.advance(1);
  assert.equal(dc1.returned.length, 2);
  await close(dc1, clock);
});
