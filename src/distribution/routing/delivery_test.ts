import assert from "node:assert/strict";
import { Envelope } from "../envelope.ts";
import type { EnvelopeFields } from "../envelope.ts";
import type { LocalOutcome } from "./ports.ts";
import { DeliveryFixture } from "./testing/delivery_fixture.ts";
import { FakeLink, OWN_PROCESS, PEER_PROCESS, stanza } from "./testing/router_fixture.ts";
import type { StanzaShape } from "./testing/router_fixture.ts";
import { TestTracer } from "./testing/test_tracer.ts";

const [ALICE, BOB] = ["alice@example.com/x", "bob@example.com"];
const DC2 = "dc2.example.com";

function toBob(shape: StanzaShape = {}, to = BOB) {
  return stanza(ALICE, to, shape);
}

Deno.test("Delivery.forward() takes a hop, and leaves the stanza to the lane", () => {
  const fixture = new DeliveryFixture();
  fixture.delivery.forward(fixture.envelope(toBob(), { ttl: 2 }), DC2);
  assert.deepEqual(fixture.sent.map(({ host, envelope }) => [host, envelope.ttl]), [[DC2, 1]]);
  assert.deepEqual(fixture.settled, []);
});

Deno.test("Delivery.forward() tries this datacenter when there are no hops left, then answers", () => {
  const fixture = new DeliveryFixture();
  fixture.delivery.forward(fixture.envelope(toBob(), { ttl: 0 }), DC2);
  assert.equal(fixture.delivered.length, 1);
  fixture.outcome = "no-session";
  fixture.delivery.forward(fixture.envelope(toBob(), { ttl: 0, sequence: 2 }), DC2);
  assert.deepEqual(fixture.answers, ["service-unavailable"]);
  assert.equal(fixture.value("stop_ttl_zero"), 2);
  assert.deepEqual([fixture.sent, fixture.settled], [[], [1, 2]]);
});

Deno.test("Delivery.forward() drops a copy that has no hops left", () => {
  const fixture = new DeliveryFixture();
  fixture.delivery.forward(fixture.envelope(toBob(), { ttl: 0, isCopy: true }), DC2);
  assert.deepEqual([fixture.delivered, fixture.answers, fixture.dropped], [[], [], ["ttl"]]);
});

Deno.test("Delivery.forward() drops what its recipient got here before it moved, and no copy of it", () => {
  for (const mark of [{ mayBeRepeat: true }, { entry: "resent" }] as const) {
    const fixture = new DeliveryFixture();
    fixture.delivery.deliverHere(fixture.envelope(toBob(), mark), true);
    fixture.delivery.forward(fixture.envelope(toBob(), mark), DC2);
    assert.deepEqual([fixture.sent, fixture.dropped], [[], ["repeat"]], JSON.stringify(mark));
    fixture.delivery.forward(fixture.envelope(toBob(), { ...mark, isCopy: true }), DC2);
    assert.equal(fixture.sent.length, 1, "a copy is for other sessions");
  }
});

Deno.test("Delivery.deliverHere() drops a stanza that came twice, from wherever it may", () => {
  const rows: [what: string, (fixture: DeliveryFixture) => Envelope][] = [
    ["another process", (fixture) => fixture.envelope(toBob(), { process: PEER_PROCESS })],
    ["a lane that ended", (fixture) => fixture.envelope(toBob(), { mayBeRepeat: true })],
    ["another node of the datacenter", (fixture) => {
      const envelope = fixture.envelope(toBob());
      envelope.arrived("handed-over");
      return envelope;
    }],
    ["a link", (fixture) => new Envelope(fixture.envelope(toBob()), new FakeLink())],
  ];
  for (const [what, make] of rows) {
    const fixture = new DeliveryFixture();
    for (let i = 0; i < 2; i++) {
      assert.equal(fixture.delivery.deliverHere(make(fixture), true), true);
    }
    assert.deepEqual([fixture.delivered.length, fixture.dropped], [1, ["repeat"]], what);
  }
});

Deno.test("Delivery.deliverHere() remembers nothing of a stanza that can come but once", () => {
  const fixture = new DeliveryFixture();
  fixture.delivery.deliverHere(fixture.envelope(toBob()), true);
  assert.deepEqual(fixture.memory.deliveredTo(BOB, 9), []);
  fixture.delivery.deliverHere(fixture.envelope(toBob(), { sequence: 2 }), true, true);
  assert.equal(fixture.memory.deliveredTo(BOB, 9).length, 1, "another datacenter got it too");
});

Deno.test("Delivery.deliverHere() notes no message of a room that waits for earlier ones", () => {
  const fixture = new DeliveryFixture();
  const message = fixture.envelope(toBob(), { process: PEER_PROCESS });
  message.isHeldForOrder = true;
  assert.equal(fixture.delivery.deliverHere(message, true), true);
  assert.equal(fixture.memory.hasDelivered(message, true), false);
});

Deno.test("Delivery.deliverHere() gives the carbons of a message once, whichever way it comes again", () => {
  const carbon = { isCopy: true, isCarbon: true };
  const first: [what: string, fields: Partial<EnvelopeFields>, outcome: LocalOutcome][] = [
    ["its carbon came from another node", { ...carbon, process: PEER_PROCESS }, "delivered"],
    ["it entered here, for another node", carbon, "delivered"],
    ["a session here had it", {}, "delivered"],
    ["a session at another node has it", {}, "handed-over"],
  ];
  const again: [what: string, fields: Partial<EnvelopeFields>, arrival: "here" | "handed-over"][] =
    [
      ["from another node", {}, "handed-over"],
      [
        "for the sessions here, after one elsewhere has given it back",
        { isRerouted: true },
        "here",
      ],
      ["as its carbon", { ...carbon, isRerouted: true }, "here"],
      ["as a copy, after a lane has given it back", { isCopy: true }, "here"],
      ["as itself, after a lane has given it back", {}, "here"],
    ];
  for (const [before, fields, outcome] of first) {
    for (const [what, others, arrival] of again) {
      const fixture = new DeliveryFixture();
      fixture.hasCarbons = true;
      fixture.outcome = outcome;
      const { process = OWN_PROCESS } = fields;
      const message = fixture.envelope(toBob(), fields);
      fixture.delivery.deliverHere(message, true);
      if (!message.isCarbon) fixture.memory.forgetDelivered(message); // its session gives it back
      fixture.outcome = "delivered";
      for (const sequence of [1, 2]) {
        const envelope = fixture.envelope(toBob(), { ...others, process, sequence });
        envelope.arrived(arrival);
        fixture.delivery.deliverHere(envelope, true);
      }
      assert.deepEqual(fixture.told, [1, 2], `${before}; ${what}`);
    }
  }
});

Deno.test("Delivery keeps a message whose copy was delivered here in the place of that", () => {
  const fixture = new DeliveryFixture();
  const envelope = (sequence: number, isCopy = false) =>
    fixture.envelope(toBob(), { process: 9, sequence, isCopy, mayBeRepeat: true });
  for (const sequence of [1, 2]) fixture.delivery.deliverHere(envelope(sequence, true), true);
  fixture.hasCopies = true;
  fixture.delivery.deliverHere(envelope(1), true);
  fixture.delivery.forward(envelope(2), "dc2.example.com");
  assert.deepEqual([fixture.replaced, fixture.dropped, fixture.sent], [[1, 2], [], []]);
  fixture.delivery.deliverHere(envelope(1, true), true);
  assert.deepEqual([fixture.replaced, fixture.dropped], [[1, 2], ["repeat"]], "a copy does not");
  fixture.hasCopies = false;
  fixture.delivery.deliverHere(envelope(1), true);
  assert.deepEqual(fixture.dropped, ["repeat", "repeat"], "the client has acknowledged it");
});

Deno.test("Delivery.deliverHere() lets a request to the server be sent again, and no request to a client", () => {
  const again: [to: string, delivered: number][] = [
    [BOB, 2],
    ["example.com", 2],
    [`${BOB}/x`, 1],
    ["pubsub.elsewhere.org", 1],
  ];
  for (const [to, delivered] of again) {
    const fixture = new DeliveryFixture();
    for (const sequence of [1, 2]) {
      const request = toBob({ kind: "iq", type: "get" }, to);
      fixture.delivery.deliverHere(
        fixture.envelope(request, { sequence, process: sequence, entry: "resent" }),
        true,
      );
    }
    assert.equal(fixture.delivered.length, delivered, to);
  }
});

Deno.test("Delivery.deliverHere() observes the hops left of what was routed here", () => {
  const fixture = new DeliveryFixture();
  const rows = [[true, 3], [false, 3], [true, 0]] as const;
  for (const [i, [isRouted, ttl]] of rows.entries()) {
    fixture.delivery.deliverHere(fixture.envelope(toBob(), { ttl, sequence: i }), isRouted);
  }
  assert.equal(fixture.value("delivered_with_ttl"), 1);
});

Deno.test("Delivery.deliverHere() ends what the local side ignores or refuses", () => {
  const rows: [LocalOutcome, isDealtWith: boolean, answers: string[], dropped: string[]][] = [
    ["no-session", false, [], []],
    ["hidden", false, [], []],
    ["handed-over", true, [], []],
    ["ignored", true, [], ["ignored"]],
    ["resource-constraint", true, ["resource-constraint"], []],
  ];
  for (const [outcome, isDealtWith, answers, dropped] of rows) {
    const fixture = new DeliveryFixture();
    fixture.outcome = outcome;
    const envelope = fixture.envelope(toBob());
    assert.equal(fixture.delivery.deliverHere(envelope, true), isDealtWith, outcome);
    assert.deepEqual([fixture.answers, fixture.dropped], [answers, dropped], outcome);
    assert.equal(fixture.delivery.isHidden(envelope), outcome === "hidden");
  }
});

Deno.test("Delivery.deliverHere() gives no error for what others have, or answer for", () => {
  const fixture = new DeliveryFixture();
  fixture.outcome = "resource-constraint";
  const copy = fixture.envelope(toBob(), { isCopy: true });
  assert.equal(fixture.delivery.deliverHere(copy, true), false);
  assert.equal(fixture.delivery.deliverHere(fixture.envelope(toBob()), true, true), false);
  assert.deepEqual([fixture.answers, fixture.dropped, fixture.settled], [[], [], []]);
});

Deno.test("Delivery.deliverHere() notes in a trace what became of the stanza", () => {
  const fixture = new DeliveryFixture();
  const tracer = new TestTracer();
  for (const outcome of ["delivered", "no-session", "hidden", "handed-over"] as const) {
    fixture.outcome = outcome;
    const envelope = fixture.envelope(toBob());
    envelope.trace = tracer.follow(envelope);
    fixture.delivery.deliverHere(envelope, true);
  }
  assert.deepEqual(tracer.take(), [
    `${BOB}: delivered`,
    `${BOB}: not-delivered nobody is here`,
    `${BOB}: not-delivered the sender must not learn who is here`,
  ]);
});

Deno.test("Delivery.isKeptBehind() refuses a stanza that has to wait where there is no room", () => {
  const fixture = new DeliveryFixture();
  assert.equal(fixture.delivery.isKeptBehind(fixture.envelope(toBob())), false);
  fixture.kept = true;
  assert.equal(fixture.delivery.isKeptBehind(fixture.envelope(toBob())), true);
  assert.deepEqual(fixture.answers, []);
  fixture.kept = "full";
  assert.equal(fixture.delivery.isKeptBehind(fixture.envelope(toBob())), true);
  assert.deepEqual(fixture.answers, ["resource-constraint"]);
});
