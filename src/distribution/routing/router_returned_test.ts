import assert from "node:assert/strict";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB, errorsTo } from "./testing/people.ts";

Deno.test("Router settles a stanza once: when it is delivered or dropped, or its error is", () => {
  const fixture = new RouterFixture({ bounce: false });
  const settled: number[] = [];
  const settler = { settle: (number: number) => void settled.push(number) };
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.cache.set("gone@example.com", null);
  fixture.router.accept(stanza(ALICE, BOB), settler, 1);
  fixture.router.accept(stanza(ALICE, "gone@example.com"), settler, 2);
  fixture.router.accept(
    stanza(ALICE, "gone@example.com", { kind: "iq", type: "result" }),
    settler,
    3,
  );
  assert.deepEqual(settled, [1, 2, 3]);
});

Deno.test("Router leaves a forwarded stanza to be settled by its lane", () => {
  const fixture = new RouterFixture();
  const settled: number[] = [];
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB), { settle: (number) => void settled.push(number) }, 9);
  assert.deepEqual(settled, []);
  fixture.sent[0]!.envelope.settle();
  fixture.sent[0]!.envelope.settle();
  assert.deepEqual(settled, [9]);
});

Deno.test("Router routes a stanza again that a lane returned, and gives the hop back", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.router.returned(fixture.sent[0]!.envelope, "peer-restarted");
  assert.equal(fixture.sent[1]!.host, "dc3.example.com");
  assert.equal(fixture.sent[1]!.envelope.ttl, 3);
});

Deno.test("Router looks a recipient up anew when the peer that had it is gone", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.table.set(BOB, "dc3.example.com");
  fixture.router.returned(fixture.sent[0]!.envelope, "peer-gone");
  await fixture.settled();
  assert.equal(fixture.sent[1]!.host, "dc3.example.com");
  assert.equal(fixture.sent[1]!.envelope.ttl, 3);
});

for (
  const [reason, condition] of [
    ["full", "resource-constraint"],
    ["expired", "remote-server-timeout"],
    ["leaving", "service-unavailable"],
  ] as const
) {
  Deno.test(`Router answers ${condition} for a stanza that a lane returned as ${reason}`, () => {
    const fixture = new RouterFixture();
    fixture.cache.set(BOB, "dc2.example.com");
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    fixture.router.accept(stanza(ALICE, BOB));
    fixture.router.returned(fixture.sent[0]!.envelope, reason);
    assert.deepEqual(errorsTo(fixture), [condition]);
  });
}

Deno.test("Router hands a stanza that cannot leave any more to another node, without an error", () => {
  const fixture = new RouterFixture();
  fixture.handedOn = [];
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  for (const id of ["1", "2"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
  for (const { envelope } of fixture.sent) fixture.router.returned(envelope, "leaving");
  assert.deepEqual([fixture.handedOn, errorsTo(fixture)], [["1", "2"], []]);
  fixture.sent[0]!.envelope.ttl = 1;
  fixture.router.returned(fixture.sent[0]!.envelope, "leaving");
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"], "it is out of hops");
});

Deno.test("Router.returned() drops a stanza that went with its session and has come back with it", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const { memory } = fixture.router;
  const [envelope, again] = [1, 1].map(() =>
    fromLink(stanza(ALICE, BOB, { id: "1" }), { sequence: 1 })
  );
  fixture.received(envelope!);
  memory.forgetDelivered(envelope!); // it went
  memory.noteDelivered(again!); // and has come back
  fixture.router.returned(envelope!, "passed-on");
  assert.equal(fixture.delivered.length, 1);
  memory.forgetDelivered(again!); // it went again
  fixture.router.returned(envelope!, "passed-on");
  assert.equal(fixture.delivered.length, 2);
});

Deno.test("Router.returned() routes a delivered stanza, however old, to where the user is now", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const old = fromLink(stanza(ALICE, BOB, { id: "old" }), { ttl: 1, mayBeRepeat: true });
  fixture.received(old);
  for (let sequence = 2; sequence < 200; sequence++) {
    fixture.received(fromLink(stanza(ALICE, BOB), { sequence }));
  }
  const delivered = fixture.delivered.length;
  fixture.router.returned(old, "unacknowledged");
  assert.equal(fixture.delivered.length, delivered + 1, "it must not count as a repeat");
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.router.returned(old, "unacknowledged");
  assert.deepEqual(fixture.sentTo("dc3.example.com"), ["old"]);
  const { process, sequence, origin, ttl, mayBeRepeat } = fixture.sent[0]!.envelope;
  assert.deepEqual([process, sequence, origin, ttl, mayBeRepeat], [
    2,
    1,
    "dc2.example.com",
    3,
    false,
  ]);
});

Deno.test("Router marks stanzas that a session may have had that ended without acknowledging them", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.router.returned(fromLink(stanza(ALICE, BOB, { id: "kept" })), "unacknowledged");
  fixture.router.returned(fromLink(stanza(ALICE, BOB, { id: "unsent" })), "peer-restarted");
  const sent = fromLink(stanza(ALICE, BOB, { id: "sent" }), { mayBeRepeat: true });
  fixture.router.returned(sent, "peer-restarted");
  assert.deepEqual(
    fixture.sent.map(({ envelope }) => [idOf(envelope.stanza), envelope.isRerouted]),
    [["kept", true], ["unsent", false], ["sent", true]],
  );
  fixture.close();
});

Deno.test("Router.returned() answers the sender, and drops stanzas that get no answer", async () => {
  const fixture = new RouterFixture();
  const link = new FakeLink();
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  const shapes = [{}, { kind: "presence", type: "available" }, { type: "error" }] as const;
  for (const [index, shape] of shapes.entries()) {
    fixture.router.returned(
      new Envelope(fromLink(stanza(ALICE, BOB, shape)), link, index),
      "unreadable",
    );
  }
  await fixture.settled();
  assert.deepEqual(errorsTo(fixture), ["not-acceptable"]);
  assert.deepEqual(link.settled.sort(), [0, 1, 2]);
});

Deno.test("Router.returned() drops and settles stanzas of no use later, and answers those without a recipient", async () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  for (
    const shape of [
      { kind: "presence", type: "available" },
      { kind: "iq", type: "result" },
      { kind: "message", type: "error" },
    ] as const
  ) fixture.router.returned(fromLink(stanza(ALICE, BOB, shape)), "unacknowledged");
  await fixture.settled();
  assert.deepEqual([fixture.lookups, fixture.delivered], [[], []]);
  fixture.router.returned(fromLink(stanza(ALICE, BOB)), "unacknowledged");
  await fixture.settled();
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router sends a returned stanza before those that wait for a lookup", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }));
  const returned = fixture.sent.splice(0).map(({ envelope }) => envelope);
  fixture.cache.clear();
  fixture.table.set(BOB, "dc2.example.com");
  fixture.gate = gate.promise;
  fixture.router.accept(stanza(ALICE, BOB, { id: "3" }));
  for (const envelope of returned) fixture.router.returned(envelope, "peer-restarted");
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "3"]);
  fixture.close();
});
