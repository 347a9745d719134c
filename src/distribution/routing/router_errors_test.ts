import assert from "node:assert/strict";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB, errorsTo } from "./testing/people.ts";

Deno.test("Router answers a stanza to an absent user of the local host after the last retry", async () => {
  const fixture = new RouterFixture();
  fixture.local.set(ALICE, "delivered");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.router.accept(stanza(ALICE, "nobody@dc1.example.com"));
  for (let i = 0; i < 100; i++) {
    fixture.clock.advance(100);
    await fixture.settled();
  }
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
  assert.deepEqual(fixture.sent, []);
});

Deno.test("Router answers a stanza to an unknown outside domain at once, without bouncing", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, "somebody@example.org"));
  await fixture.settled();
  assert.deepEqual(errorsTo(fixture), ["remote-server-not-found"]);
  assert.equal(fixture.router.bouncing, 0);
});

Deno.test("Router marks the errors it answers with, and counts those that find no room", async () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc2.example.com");
  const link = new FakeLink();
  const message = fromLink(stanza(ALICE, BOB));
  fixture.received(new Envelope(message, link, 7));
  const error = fixture.sent[0]!.envelope;
  assert.equal(error.entry, "owed");
  assert.equal(message.entry, "ordinary");
  assert.deepEqual(link.settled, [], "the error has the message's duty");
  const lost = async () =>
    /dropped_total\{reason="owed"\} (\d+)/.exec(await fixture.metrics.prometheus())?.[1];
  fixture.router.returned(error, "full");
  assert.deepEqual([link.settled, await lost()], [[7], "1"]);
  fixture.local.set(ALICE, "resource-constraint");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.equal(await lost(), "2");
  fixture.received(fromLink(stanza(BOB, ALICE, { type: "error" })));
  assert.equal(await lost(), "2", "an error from a client is not owed");
  fixture.close();
});

Deno.test("Router answers stanzas that the local side refuses, and drops those it ignores", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "not-allowed");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.cache.set("carol@example.com", "dc1.example.com");
  fixture.local.set("carol@example.com", "ignored");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.router.accept(stanza(ALICE, "carol@example.com"));
  assert.deepEqual(errorsTo(fixture), ["not-allowed"]);
});

Deno.test("Router sends its error back to where the stanza entered, if the table has lost the sender", async () => {
  const fixture = new RouterFixture();
  fixture.local.set(BOB, "resource-constraint");
  fixture.cache.set(BOB, "dc1.example.com");
  const link = new FakeLink();
  const message = new Envelope(fromLink(stanza(ALICE, BOB)), link, 7);
  fixture.cache.set(ALICE, "dc3.example.com"); // so that the link teaches nothing new
  fixture.received(message, "dc3.example.com");
  assert.equal(fixture.sentTo("dc3.example.com").length, 1, "the table goes before the link");
  fixture.sent.length = 0;

  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB), { sequence: 2 }), link, 8));
  fixture.cache.set(ALICE, null);
  const owed = fixture.sent.pop()!.envelope;
  fixture.router.returned(owed, "peer-gone");
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  assert.deepEqual(link.settled, [], "its fate is open until the error has met its own");
  fixture.router.returned(fixture.sent.pop()!.envelope, "peer-gone");
  await fixture.settled();
  assert.deepEqual(fixture.sent, [], "it goes there once");
  assert.equal(fixture.router.bouncing, 1);
});

Deno.test("Router sends an error that has bounced in vain back to where its stanza entered", async () => {
  const fixture = new RouterFixture();
  fixture.local.set(BOB, "resource-constraint");
  fixture.cache.set(BOB, "dc1.example.com");
  const link = new FakeLink();
  fixture.cache.set(ALICE, "dc3.example.com");
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 8));
  const owed = fixture.sent.pop()!.envelope;
  fixture.cache.set(ALICE, null);
  fixture.router.accept(stanza("carol@example.com/c", ALICE, { id: "first" }));
  await fixture.settled();
  fixture.router.returned(owed, "peer-gone");
  await fixture.settled();
  assert.equal(fixture.router.bouncing, 2, "it waits behind what bounces for the same address");
  await fixture.clock.advanceAsync(30_000, 100);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  assert.deepEqual(link.settled, []);
  fixture.close();
});

Deno.test("Router holds its error until its recipient is found, and counts it if that never happens", async () => {
  for (const isFound of [true, false]) {
    const fixture = new RouterFixture();
    const link = new FakeLink();
    fixture.local.set(BOB, "resource-constraint");
    fixture.cache.set(BOB, "dc1.example.com");
    fixture.cache.set(ALICE, null);
    fixture.router.accept(stanza(ALICE, BOB), link, 3);
    assert.deepEqual([fixture.router.bouncing, link.settled], [1, []]);
    if (isFound) fixture.table.set(ALICE, "dc3.example.com");
    await fixture.clock.advanceAsync(20_000, 100);
    await fixture.settled();
    assert.equal(fixture.router.bouncing, 0);
    assert.equal(fixture.sentTo("dc3.example.com").length, isFound ? 1 : 0);
    assert.deepEqual(link.settled, isFound ? [] : [3]);
    fixture.close();
  }
});
