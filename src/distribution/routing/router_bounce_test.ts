import assert from "node:assert/strict";
import { RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import { fromLink, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB, BOB_AT_DESK, errorsTo } from "./testing/people.ts";

Deno.test("Router sends stanzas that bounce for a component before later ones when it connects", async () => {
  const fixture = new RouterFixture();
  const echo = "echo.example.com";
  fixture.local.set(echo, "delivered");
  fixture.cache.set(echo, null);
  for (const id of ["1", "2"]) fixture.router.accept(stanza(ALICE, echo, { id }));
  assert.equal(fixture.router.bouncing, 2);
  fixture.domains.add(echo); // the table does not know it yet
  fixture.received(fromLink(stanza(ALICE, echo, { id: "3" })));
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "3"]);
  await fixture.router.drain();
});

Deno.test("Router drops the cache entry and bounces when the address has no session here", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.deepEqual(fixture.forgotten, [BOB]);
  assert.equal(fixture.router.bouncing, 1);
  return fixture.router.drain();
});

Deno.test("Router bounces messages, IQ requests and subscriptions, and counts the rest as dropped", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB_AT_DESK, null);
  const shapes = [
    { kind: "message", type: "chat" },
    { kind: "message", type: "error" },
    { kind: "iq", type: "set" },
    { kind: "iq", type: "result" },
    { kind: "presence", type: "subscribe" },
    { kind: "presence", type: "available" },
    { kind: "presence", type: "probe" },
  ] as const;
  for (const shape of shapes) fixture.router.accept(stanza(ALICE, BOB_AT_DESK, shape));
  assert.equal(fixture.router.bouncing, 3);
  assert.match(
    await fixture.metrics.prometheus(),
    /causeway_stanzas_dropped_total\{reason="no-route"\} 4/,
  );
  await fixture.router.drain();
});

Deno.test("Router sends bounced stanzas in order when a retry finds the recipient", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  for (const id of ["1", "2", "3"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
  fixture.table.set(BOB, "dc2.example.com");
  await fixture.clock.advanceAsync(199);
  assert.deepEqual(fixture.sentTo("dc2.example.com"), []);
  await fixture.clock.advanceAsync(1);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "3"]);
  assert.equal(fixture.value("bounce_queue_size"), 0);
});

Deno.test("Router lets a later stanza wait behind one that bounces, though the cache knows a place by then", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2"]);
});

for (
  const shape of [{ kind: "presence", type: "available" }, { kind: "iq", type: "result" }] as const
) {
  Deno.test(`Router does not let ${shape.kind} of type ${shape.type} overtake stanzas that bounce`, async () => {
    const fixture = new RouterFixture();
    fixture.cache.set(BOB_AT_DESK, "dc1.example.com");
    fixture.router.accept(stanza(ALICE, BOB_AT_DESK, { id: "1" }));
    assert.equal(fixture.router.bouncing, 1, "the address has no session here yet");
    fixture.cache.set(BOB_AT_DESK, "dc1.example.com");
    fixture.router.accept(stanza(ALICE, BOB_AT_DESK, { ...shape, id: "2" }));
    assert.equal(fixture.router.bouncing, 2);
    fixture.local.set(BOB_AT_DESK, "delivered");
    fixture.cache.set(BOB_AT_DESK, "dc1.example.com");
    fixture.router.accept(stanza(ALICE, BOB_AT_DESK, { ...shape, id: "3" }));
    assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "3"]);
    fixture.cache.set("cid@example.com/x", "dc1.example.com");
    fixture.router.accept(stanza(ALICE, "cid@example.com/x", { ...shape, id: "4" }));
    assert.equal(fixture.router.bouncing, 0, "by itself it is not held");
    await fixture.router.drain();
  });
}

Deno.test("Router answers service-unavailable after the last retry, each after twice the delay", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB));
  const lookupsAtMs = [200, 600, 1400, 3000];
  let nowMs = 0;
  for (const [i, atMs] of lookupsAtMs.entries()) {
    await fixture.clock.advanceAsync(atMs - nowMs - 1, 50);
    assert.equal(fixture.relocated.length, i);
    await fixture.clock.advanceAsync(1);
    await fixture.settled();
    assert.equal(fixture.relocated.length, i + 1);
    nowMs = atMs;
  }
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
  assert.equal(fixture.router.bouncing, 0);
  assert.equal(fixture.clock.pendingTimers, 0);
});

Deno.test("Router answers a request to a client that must seem not to be there like one to a missing client", async () => {
  const outcomes: unknown[] = [];
  for (const outcome of ["no-session", "hidden"] as const) {
    const fixture = new RouterFixture();
    const phone = `${BOB}/phone`;
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    fixture.local.set(phone, outcome);
    fixture.table.set(BOB, "dc1.example.com");
    fixture.cache.set(phone, "dc1.example.com");
    for (const id of ["1", "2"]) {
      fixture.router.accept(stanza(ALICE, phone, { id, kind: "iq", type: "get" }));
    }
    await fixture.settled();
    const answers: unknown[] = [];
    for (let ms = 0; ms <= 3_000; ms += 100) {
      answers.push([ms, errorsTo(fixture).length, fixture.relocated.length]);
      await fixture.clock.advanceAsync(100, 50);
      await fixture.settled();
    }
    assert.deepEqual(errorsTo(fixture), ["service-unavailable", "service-unavailable"]);
    assert.equal(fixture.router.bouncing, 0);
    outcomes.push(answers);
  }
  assert.deepEqual(outcomes[1], outcomes[0]);
});

Deno.test("Router lets nobody wait behind a request to a client that must seem not to be there", async () => {
  const fixture = new RouterFixture();
  const phone = `${BOB}/phone`;
  fixture.cache.set(phone, "dc1.example.com");
  fixture.local.set(phone, "hidden");
  fixture.router.accept(stanza(ALICE, phone, { id: "1", kind: "iq", type: "get" }));
  assert.equal(fixture.router.bouncing, 1);
  fixture.local.set(phone, "delivered");
  fixture.router.accept(stanza("carol@example.com/x", phone, { id: "2" }));
  assert.deepEqual(fixture.delivered.map(({ from }) => from.text), ["carol@example.com/x"]);
  assert.deepEqual(fixture.forgotten, []);
  await fixture.clock.advanceAsync(200, 50);
  await fixture.settled();
  assert.equal(fixture.router.bouncing, 1, "nothing has found its account");
  fixture.table.set(BOB, "dc2.example.com");
  await fixture.clock.advanceAsync(400, 50);
  await fixture.settled();
  assert.equal(fixture.delivered.length, 2, "it is tried here, whose session is no longer hidden");
  assert.deepEqual(fixture.sentTo("dc2.example.com"), []);
});

Deno.test("Router sends stanzas held for a recipient as soon as the recipient writes", () => {
  const fixture = new RouterFixture();
  fixture.cache.set("bob@example.com/x", null);
  fixture.router.accept(stanza(ALICE, "bob@example.com/x", { id: "1" }));
  fixture.received(fromLink(stanza("bob@example.com/x", "dc1.example.com")));
  assert.deepEqual(fixture.sentTo("dc2.example.com")[0], "1");
});

Deno.test("Router with bounce false answers at once", () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router answers resource-constraint one stanza past a sender's share of the bounce", async () => {
  const fixture = new RouterFixture({ bounce: { maxItems: 10 } });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  for (const id of ["1", "2", "3"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
  assert.equal(fixture.router.bouncing, 2);
  assert.deepEqual(errorsTo(fixture), ["resource-constraint"]);
  assert.match(await fixture.metrics.prometheus(), /without_room_total\{queue="bounce"\} 1/);
  await fixture.router.drain();
});

const ONE_WAITING = stanza(ALICE, BOB, { id: "2" }).bytes.length + RETAINED_OVERHEAD_BYTES;

for (const bound of [{ maxQueued: 1 }, { maxQueuedBytes: 2 * ONE_WAITING - 1 }]) {
  Deno.test(`Router answers resource-constraint one past ${Object.keys(bound)}`, async () => {
    const fixture = new RouterFixture(bound);
    const gate = Promise.withResolvers<void>();
    fixture.gate = gate.promise;
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    fixture.table.set(BOB, "dc2.example.com");
    for (const id of ["1", "2", "3"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
    assert.deepEqual(errorsTo(fixture), ["resource-constraint"]);
    const shown = await fixture.metrics.prometheus();
    assert.match(shown, /^causeway_lookup_queue_size 1$/m);
    assert.match(shown, new RegExp(`^causeway_lookup_queue_bytes ${ONE_WAITING}$`, "m"));
    assert.match(shown, /without_room_total\{queue="lookup"\} 1/);
    gate.resolve();
    await fixture.settled();
    assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2"]);
    assert.match(await fixture.metrics.prometheus(), /^causeway_lookup_queue_bytes 0$/m);
  });
}
