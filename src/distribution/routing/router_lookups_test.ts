import assert from "node:assert/strict";
import { fromLink, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB, errorsTo } from "./testing/people.ts";

Deno.test("Router asks the table when memory knows nothing, and keeps the sender's order", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.table.set(BOB, "dc2.example.com");
  fixture.cache.set("carol@example.com", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, "carol@example.com", { id: "2" }));
  fixture.router.accept(stanza("dan@example.com/y", "carol@example.com", { id: "3" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["3"]);
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["3", "1", "2"]);
});

Deno.test("Router looks components up by domain, its own first", async () => {
  const fixture = new RouterFixture();
  fixture.table.set("muc.example.com", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, "room@muc.example.com/n", { id: "1" }));
  await fixture.settled();
  assert.deepEqual(fixture.lookups, ["muc.example.com"]);
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  fixture.domains.add("muc.example.com");
  fixture.local.set("room@muc.example.com/n", "delivered");
  fixture.router.accept(stanza(ALICE, "room@muc.example.com/n", { id: "2" }));
  assert.deepEqual(fixture.delivered.map(idOf), ["2"]);
});

Deno.test("Router learns a sender's DC from traffic, but not from errors or unavailable presence", () => {
  const fixture = new RouterFixture();
  fixture.local.set("dc1.example.com", "delivered");
  const to = "dc1.example.com";
  fixture.received(fromLink(stanza("e@example.com/x", to, { type: "error" })));
  fixture.received(
    fromLink(stanza("u@example.com/x", to, { kind: "presence", type: "unavailable" })),
  );
  fixture.received(fromLink(stanza("bob@example.com", to, { kind: "iq", type: "result" })));
  assert.equal(fixture.cache.size, 0, "a server answered for the account");
  fixture.received(fromLink(stanza("bob@example.com/x", to)));
  fixture.received(
    fromLink(stanza("room@muc.example.com/n", to), { origin: "dc3.example.com" }),
  );
  assert.deepEqual([...fixture.cache], [
    ["bob@example.com/x", "dc2.example.com"],
    ["muc.example.com", "dc3.example.com"],
  ]);
});

Deno.test("Router learns no place that is no datacenter of the mesh", () => {
  const fixture = new RouterFixture();
  fixture.local.set("dc1.example.com", "delivered");
  for (const origin of ["nowhere.example.net", "dc1.example.com"]) {
    fixture.received(fromLink(stanza("bob@example.com/x", "dc1.example.com"), { origin }));
  }
  assert.equal(fixture.cache.size, 0);
});

Deno.test("Router slows a sender down that writes on while a lookup holds its stanzas back", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.table.set(BOB, "dc2.example.com");
  fixture.table.set("muc.example.com", "dc2.example.com");
  for (let i = 0; i < 300; i++) {
    fixture.router.accept(stanza(ALICE, BOB, { id: `${i}` }));
    fixture.router.accept(stanza("room@rooms.example.com/n", "r@muc.example.com", { id: `${i}` }));
  }
  assert.deepEqual(fixture.pressure, [`${ALICE} true`, "rooms.example.com true"]);
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.pressure.slice(2), [`${ALICE} false`, "rooms.example.com false"]);
  assert.equal(fixture.sent.length, 600);
  assert.equal(fixture.router.queued, 0);
});

Deno.test("Router answers every stanza for which its sender has no room to wait", async () => {
  const fixture = new RouterFixture({ maxQueued: 10 });
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.local.set(ALICE, "delivered");
  fixture.table.set(ALICE, "dc1.example.com");
  fixture.table.set(BOB, "dc2.example.com");
  for (let i = 0; i < 6; i++) fixture.router.accept(stanza(ALICE, BOB, { id: `${i}` }));
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["0", "1", "2"]);
  assert.deepEqual(errorsTo(fixture), Array(3).fill("resource-constraint"));
});

Deno.test("Router delays only the sender that causes too many lookups, and keeps its order", async () => {
  const fixture = new RouterFixture({ lookupRates: { perAccount: { perSec: 10, burst: 2 } } });
  const to = ["1", "2", "3", "4"].map((name) => `${name}@example.com`);
  for (const each of [...to, BOB]) fixture.table.set(each, "dc2.example.com");
  for (const [i, each] of to.entries()) {
    fixture.router.accept(stanza(ALICE, each, { id: `${i + 1}` }));
    await fixture.settled();
  }
  fixture.router.accept(stanza("alice@example.com/desk", BOB, { id: "5" }));
  fixture.router.accept(stanza("carol@example.com/c", BOB, { id: "6" }));
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "6"]);
  await fixture.clock.advanceAsync(100);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "6", "3"]);
  assert.match(
    await fixture.metrics.prometheus(),
    /causeway_lookups_delayed_total\{cause="first"\} 3/,
  );
  await fixture.router.drain();
  assert.deepEqual(fixture.sentTo("dc2.example.com").toSorted(), ["1", "2", "3", "4", "5", "6"]);
  assert.equal(fixture.clock.pendingTimers, 0, "a stop waits for no rate");
  fixture.close();
});

Deno.test("Router also delays a sender that looks up too many of this datacenter's users", async () => {
  for (const sender of [ALICE, "dave@dc1.example.com/x"]) {
    const fixture = new RouterFixture({ lookupRates: { perAccount: { perSec: 10, burst: 2 } } });
    fixture.isUnplaced = true;
    const to = ["1", "2", "3"].map((name) => `carol@dc1.example.com/${name}`);
    for (const each of to) {
      fixture.local.set(each, "delivered");
      fixture.router.accept(stanza(sender, each));
      await fixture.settled();
    }
    assert.deepEqual(fixture.lookups, to.slice(0, 2));
    await fixture.clock.advanceAsync(100);
    await fixture.settled();
    assert.deepEqual(fixture.lookups, to);
    assert.deepEqual(fixture.delivered.map((each) => each.to.text), to);
    fixture.close();
  }
});

Deno.test("Router looks up the recipients of its errors, even when their sender's rate is used up", async () => {
  const fixture = new RouterFixture({
    bounce: false,
    lookupRates: { perAccount: { perSec: 0.001, burst: 1 } },
  });
  fixture.cache.set(BOB, null);
  const senders = ["1", "2", "3"].map((name) => `${name}@example.com/x`);
  for (const each of senders) {
    fixture.table.set(each, "dc2.example.com");
    fixture.router.accept(stanza(each, BOB));
    await fixture.settled();
  }
  assert.deepEqual(fixture.sent.map(({ envelope }) => envelope.stanza.to.text), senders);
  fixture.close();
});

Deno.test("Router takes a stanza from a known sender for no news of its place", async () => {
  const fixture = new RouterFixture();
  fixture.local.set("dc1.example.com", "delivered");
  fixture.cache.set("bob@example.com/gone", null);
  fixture.cache.set("bob@example.com/x", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, "bob@example.com/gone"));
  for (let i = 0; i < 10; i++) {
    const presence = stanza("bob@example.com/x", "dc1.example.com", { kind: "presence" });
    fixture.received(fromLink(presence, { sequence: i + 1 }));
    await fixture.settled();
  }
  assert.deepEqual([fixture.lookups, fixture.relocated], [[], []]);
  await fixture.router.drain();
  fixture.close();
});
