import assert from "node:assert/strict";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB, errorsTo } from "./testing/people.ts";

Deno.test("Router.drain() hands bouncing stanzas on to another node, and those that would bounce later", async () => {
  const fixture = new RouterFixture();
  const { router } = fixture;
  const nobody = "nobody@example.com/x";
  for (const id of ["1", "2"]) router.accept(stanza("alice@example.com/a", nobody, { id }));
  await fixture.settled();
  assert.equal(router.bouncing, 2);
  fixture.handedOn = [];
  await router.drain();
  router.accept(stanza("alice@example.com/a", nobody, { id: "3" }));
  await router.drain();
  assert.deepEqual(fixture.handedOn, ["1", "2", "3"]);
  assert.deepEqual(fixture.delivered, [], "no error is sent");
  const spent = fromLink(stanza("bob@example.com/b", nobody, { id: "4" }), { ttl: 1 });
  fixture.local.set("bob@example.com/b", "delivered");
  fixture.received(spent);
  await router.drain();
  assert.equal(fixture.handedOn.length, 3, "it was handed on too often");
  fixture.close();
});

Deno.test("Router.drain() hands on a stanza behind one that it handed on, though a route is known by then", async () => {
  const fixture = new RouterFixture();
  const { router } = fixture;
  fixture.cache.set(BOB, null);
  router.accept(stanza(ALICE, BOB, { id: "1" }));
  assert.equal(router.bouncing, 1);
  fixture.handedOn = [];
  await router.drain();
  fixture.cache.set(BOB, "dc2.example.com");
  router.accept(stanza(ALICE, BOB, { id: "2" }));
  router.accept(stanza("carol@example.com/c", BOB, { id: "3" }));
  assert.deepEqual(fixture.handedOn, ["1", "2"]);
  assert.deepEqual(fixture.sent.map(({ envelope }) => idOf(envelope.stanza)), ["3"]);
  fixture.close();
});

Deno.test("Router.drain() leaves stanzas from a link open", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.handedOn = [];
  const link = new FakeLink();
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 1));
  await fixture.router.drain();
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 2));
  fixture.local.set(BOB, "not-allowed");
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 3));
  assert.deepEqual([link.settled, link.left], [[], [1, 2, 3]]);
  assert.deepEqual([fixture.delivered, fixture.handedOn], [[], []]);
  assert.match(await fixture.metrics.prometheus(), /stanzas_left_open_total 3/);
  fixture.close();
});

Deno.test("Router.drain() leaves open a stanza behind one that it left open, though its place is known by then", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  const link = new FakeLink();
  const receive = (number: number, from = ALICE) => {
    const envelope = fromLink(stanza(from, BOB), { sequence: number });
    fixture.received(new Envelope(envelope, link, number));
  };
  await fixture.router.drain();
  receive(1);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  receive(2);
  receive(3, "carol@example.com/c");
  assert.deepEqual([link.left, link.settled], [[1, 2], [3]]);
  fixture.close();
});

Deno.test("Router.drain() answers the senders of bouncing stanzas", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }));
  await fixture.router.drain();
  assert.deepEqual(errorsTo(fixture), ["service-unavailable", "service-unavailable"]);
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2"]);
});
