import assert from "node:assert/strict";
import { conditionOf, fromLink, RouterFixture, stanza } from "./testing/router_fixture.ts";

const ALICE = "alice@example.com/x";
const BOB = "bob@example.com";
const DC2 = "dc2.example.com";
const DC3 = "dc3.example.com";

function errorsTo(fixture: RouterFixture): string[] {
  return fixture.delivered.filter((each) => each.type === "error").map(conditionOf);
}

Deno.test("Router forwards to the DC that the table names, with one hop less", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.equal(fixture.sent.length, 1);
  assert.equal(fixture.sent[0]!.host, "dc2.example.com");
  assert.equal(fixture.sent[0]!.envelope.ttl, 3);
  assert.equal(fixture.sent[0]!.envelope.origin, "dc1.example.com");
  assert.deepEqual(fixture.lookups, []);
});

Deno.test("Router delivers here if the table says so, and observes the hops left", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 2 }));
  fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 0, sequence: 2 }));
  assert.equal(fixture.delivered.length, 2);
  assert.equal(fixture.value("delivered_with_ttl"), 1);
});

Deno.test("Router does not forward at TTL 0, counts it, and answers the sender", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 0 }));
  assert.equal(fixture.sent.length, 0);
  assert.equal(fixture.value("stop_ttl_zero"), 1);
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router tries local delivery at TTL 0 before it answers", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 0 }));
  assert.equal(fixture.value("stop_ttl_zero"), 1);
  assert.deepEqual(fixture.delivered.map((each) => each.to.text), [BOB]);
});

Deno.test("Router asks the table before it sends a stanza back to the datacenter that passed it on", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, DC2);
  fixture.table.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  for (const sequence of [1, 2]) {
    fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 2, sequence }), DC2);
  }
  await fixture.settled();
  assert.deepEqual(fixture.sent, [], "bob has just logged in here, and dc2 knew that before us");
  assert.equal(fixture.delivered.length, 2);
  assert.deepEqual(fixture.lookups, [BOB]);
});

Deno.test("Router sends a stanza back if the table says so, until its hops are used up", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, DC2);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.table.set(BOB, DC2);
  fixture.local.set(ALICE, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 2 }), DC2);
  await fixture.settled();
  assert.deepEqual(fixture.sent.map(({ host, envelope }) => [host, envelope.ttl]), [[DC2, 1]]);
  fixture.received(fromLink(stanza(ALICE, BOB), { ttl: 0, sequence: 2 }), DC2);
  await fixture.settled();
  assert.equal(fixture.sent.length, 1);
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router.returned() forgets which datacenter passed a stanza on, as its recipient may be there", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const envelope = fromLink(stanza(ALICE, BOB));
  fixture.received(envelope, DC2);
  fixture.cache.set(BOB, DC2);
  fixture.router.returned(envelope, "unacknowledged");
  assert.deepEqual(fixture.sent.map(({ host }) => host), [DC2]);
  assert.deepEqual(fixture.lookups, []);
});

Deno.test("Router makes no lookup for a stanza that goes from one datacenter to a third", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, DC3);
  fixture.received(fromLink(stanza(ALICE, BOB)), DC2);
  assert.deepEqual(fixture.sent.map(({ host }) => host), [DC3]);
  assert.deepEqual(fixture.lookups, []);
});
