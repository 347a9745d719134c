import assert from "node:assert/strict";
import { fromLink, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { TestTracer } from "./testing/test_tracer.ts";

const ALICE = "alice@example.com/x";
const BOB = "bob@example.com";

function following(options?: ConstructorParameters<typeof RouterFixture>[0]) {
  const fixture = new RouterFixture(options);
  const tracer = new TestTracer();
  fixture.tracer = tracer;
  return { fixture, tracer };
}

Deno.test("Router follows no stanza while nobody traces", () => {
  const { fixture, tracer } = following();
  tracer.isOn = false;
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.received(fromLink(stanza("carol@example.com/y", BOB)));
  assert.equal(tracer.followed, 0);
  assert.ok(fixture.sent.every(({ envelope }) => envelope.trace === undefined));
});

Deno.test("Router notes lookups in the table and in the cache, and gives the trace on with the stanza", async () => {
  const { fixture, tracer } = following();
  fixture.table.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  await fixture.settled();
  assert.deepEqual(tracer.take(), [
    `${BOB}: accepted sent-once`,
    `${BOB}: waiting for a lookup or an archive`,
    `${BOB}: looked-up dc2.example.com redis`,
  ]);
  fixture.router.accept(stanza(ALICE, BOB));
  assert.deepEqual(tracer.take().slice(1), [`${BOB}: looked-up dc2.example.com cache`]);
  assert.ok(fixture.sent.every(({ envelope }) => envelope.trace !== undefined));
});

Deno.test("Router notes where a stanza comes from, its delivery, and then its end", async () => {
  const { fixture, tracer } = following();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const envelope = fromLink(stanza(ALICE, BOB));
  envelope.arrived("link", "dc2.example.com");
  fixture.router.route(envelope);
  envelope.settle();
  await fixture.settled();
  assert.deepEqual(tracer.take(), [
    `${BOB}: arrived dc2.example.com 0`,
    `${BOB}: looked-up dc1.example.com cache`,
    `${BOB}: delivered`,
    `${BOB}: settled`,
  ]);
});

Deno.test("Router notes each retry of a stanza that bounces, the error and its delivery", async () => {
  const { fixture, tracer } = following({ bounce: { resendAfterMs: 200, maxRetries: 2 } });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB));
  for (const ms of [200, 400]) {
    fixture.clock.advance(ms);
    await fixture.settled();
  }
  assert.deepEqual(tracer.take(), [
    `${BOB}: accepted sent-once`,
    `${BOB}: looked-up  cache`,
    `${BOB}: held 1 200`,
    `${BOB}: looked-up  redis`,
    `${BOB}: held 2 400`,
    `${BOB}: looked-up  redis`,
    `${BOB}: answered service-unavailable no-route`,
    `${ALICE}: accepted owed`,
    `${ALICE}: looked-up dc1.example.com cache`,
    `${ALICE}: delivered`,
    `${ALICE}: settled`,
  ]);
});
