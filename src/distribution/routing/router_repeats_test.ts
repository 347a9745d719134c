import assert from "node:assert/strict";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB } from "./testing/people.ts";

Deno.test("Router never sends a stanza from a link to its own sender in a circle", async () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(ALICE, "dc2.example.com");
  fixture.table.set("alice@example.com", "dc2.example.com");
  fixture.table.set("alice@example.com/y", "dc2.example.com");
  // A peer that plays alice: to the account, to another resource, and to the same resource.
  for (const [index, to] of ["alice@example.com", "alice@example.com/y", ALICE].entries()) {
    fixture.received(fromLink(stanza(ALICE, to), { ttl: 1, sequence: index + 1 }));
    await fixture.settled();
  }
  // The account has no session here, so its datacenter gets an error. The others had one hop left.
  const sent = () => fixture.sent.map(({ envelope }) => [envelope.stanza.type, envelope.ttl]);
  assert.deepEqual(sent(), [["error", 3], ["chat", 0], ["chat", 0]]);
  // A stanza sent back and forth ends as an error, which is never answered.
  fixture.received(fromLink(stanza(ALICE, ALICE), { ttl: 0, sequence: 9 }));
  const echo = stanza(ALICE, ALICE, { type: "error" });
  fixture.received(fromLink(echo, { ttl: 0, sequence: 10 }));
  await fixture.settled();
  assert.deepEqual(sent().slice(3).filter(([type]) => type !== "error"), []);
  assert.ok(sent().length <= 4, "one answer at most");
});

Deno.test("Router drops and settles a resent stanza that was delivered", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const settled: number[] = [];
  const settler = { settle: (number: number) => void settled.push(number) };
  const again = (id: string) => fixture.acceptResent(stanza(ALICE, BOB, { id }), settler, 7);
  const first = fromLink(stanza(ALICE, BOB, { id: "1" }));
  fixture.received(first);
  again("1");
  again("2");
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2"]);
  assert.deepEqual(settled, [7, 7]);
  // the same text, not marked as resent, is delivered
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "1"]);
  // a stanza that was taken back counts as not delivered
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.returned(first, "unacknowledged");
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  fixture.cache.set(BOB, "dc1.example.com");
  again("1");
  assert.deepEqual(fixture.delivered.map(idOf).slice(3), ["1"]);
  fixture.close();
});

Deno.test("Router drops a stanza that arrives late from a dead node, after its client sent it again", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const link = new FakeLink();
  fixture.acceptResent(stanza(ALICE, BOB, { id: "1" }));
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB, { id: "1" })), link, 7));
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
  assert.deepEqual(link.settled, [7]);
  fixture.close();
});

Deno.test("Router has every request to the server answered, even a resent one", () => {
  const fixture = new RouterFixture();
  const questions = [
    [ALICE, "alice@example.com"],
    [ALICE, "bob@example.com"],
    [ALICE, "dc1.example.com"],
    [ALICE, "example.com"],
  ] as const;
  for (const [from, to] of questions) {
    fixture.local.set(to, "delivered");
    fixture.cache.set(to, "dc1.example.com");
    const request = stanza(from, to, { kind: "iq", type: "get", id: "roster_1" });
    for (let i = 0; i < 2; i++) fixture.acceptResent(request);
    assert.equal(fixture.delivered.splice(0).length, 2, to);
  }
  const toClient = stanza(ALICE, "bob@example.com/y", { kind: "iq", type: "get" });
  fixture.cache.set("bob@example.com/y", "dc1.example.com");
  for (let i = 0; i < 2; i++) fixture.acceptResent(toClient);
  assert.equal(fixture.delivered.length, 1);
  fixture.close();
});

Deno.test("Router does not forward a resent stanza that was delivered here before its recipient moved", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB, { id: "1" })));
  fixture.cache.set(BOB, "dc2.example.com");
  for (const id of ["1", "2"]) fixture.acceptResent(stanza(ALICE, BOB, { id }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["2"]);
  fixture.close();
});

Deno.test("Router marks stanzas that are sent once, and compares no text with them", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }), { settle() {} }, 1);
  fixture.acceptResent(stanza(ALICE, BOB, { id: "3" }), { settle() {} }, 2);
  fixture.router.accept(stanza(ALICE, BOB, { id: "6" }), { settle() {} }, 3, "sent-once");
  const marks = fixture.sent.map(({ envelope }) => envelope.entry);
  assert.deepEqual(marks, ["sent-once", "ordinary", "resent", "sent-once"]);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  for (const id of ["4", "5"]) {
    const sent = fromLink(stanza(ALICE, BOB, { id }), { sequence: Number(id) });
    fixture.received(
      new Envelope({ ...sent, entry: id === "4" ? "sent-once" : "ordinary" }),
    );
  }
  for (const id of ["4", "5"]) fixture.acceptResent(stanza(ALICE, BOB, { id }));
  assert.deepEqual(fixture.delivered.map(idOf), ["4", "5", "4"]);
  fixture.close();
});

Deno.test("Router delivers a stanza once that came back from another datacenter and from its lane", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  const { envelope } = fixture.sent[0]!;
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.table.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const { process, sequence } = envelope;
  const back = { ...fromLink(envelope.stanza, { ttl: 2, sequence }), process };
  fixture.received(new Envelope(back, new FakeLink(), 1));
  assert.equal(fixture.delivered.length, 1);
  envelope.mayBeRepeat = true; // it was sent
  fixture.router.returned(envelope, "peer-gone");
  await fixture.settled();
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("Router does not forward a repeat that was delivered here before its recipient moved", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  for (const sequence of [5, 7]) {
    fixture.received(fromLink(stanza(ALICE, BOB), { sequence }));
  }
  fixture.cache.set(BOB, "dc3.example.com");
  for (const sequence of [5, 6, 7]) {
    const copy = fromLink(stanza(ALICE, BOB, { id: String(sequence) }), {
      sequence,
      mayBeRepeat: true,
    });
    fixture.received(copy);
  }
  assert.deepEqual(fixture.sentTo("dc3.example.com"), ["6"]);
});

Deno.test("Router delivers a stanza that came over two lanes once", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB), { sequence: 5 }));
  fixture.received(fromLink(stanza(ALICE, BOB), { sequence: 5, mayBeRepeat: true }));
  fixture.received(fromLink(stanza(ALICE, BOB), { sequence: 6, mayBeRepeat: true }));
  assert.equal(fixture.delivered.length, 2);
  assert.match(await fixture.metrics.prometheus(), /dropped_total\{reason="repeat"\} 1/);
});
