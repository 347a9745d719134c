import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { CoveredStanzas } from "./covered_stanzas.ts";
import { ackXml } from "./sm_xml.ts";
import { StreamManagement } from "./stream_management.ts";

const HOLD_MS = 5_000;

class World {
  readonly clock = new ManualClock();
  /** Everything that the client was told. */
  readonly told: string[] = [];
  readonly link = { sendNonza: (xml: string) => void this.told.push(xml) };
  readonly management = new StreamManagement({ ackHoldMs: HOLD_MS }, {
    metrics: new MetricsRegistry(new ManualClock()), // its clock has timers of its own
    clock: this.clock,
    returned: () => {},
  });
  readonly covered = new CoveredStanzas(this.link, this.management);

  /** Receives `count` stanzas and passes them on, with their fates open. */
  receive(count: number): void {
    for (let done = 0; done < count; done++) {
      this.covered.receive();
      this.covered.passedOn();
    }
  }
}

Deno.test("CoveredStanzas.requested() tells at once what is covered, and the rest when it is", () => {
  const world = new World();
  const { covered, told } = world;
  world.receive(3);
  covered.settle(1);
  covered.settle(3);
  assert.deepEqual(told, [], "nobody has asked");
  covered.requested();
  assert.deepEqual(told, [ackXml(1)], "2 is open, and 3 is behind it");
  covered.held(2);
  assert.deepEqual(told, [ackXml(1), ackXml(3)]);
  covered.end();
  assert.equal(world.clock.pendingTimers, 0);
});

Deno.test("CoveredStanzas covers an open stanza after ackHoldMs, and counts it as unprotected", () => {
  const world = new World();
  const { covered, clock, told } = world;
  world.receive(2);
  covered.requested();
  clock.advance(HOLD_MS - 1);
  assert.equal(covered.coveredH, 0);
  clock.advance(1);
  assert.equal(covered.coveredH, 2);
  assert.equal(world.management.metrics.unprotected.value, 2);
  assert.deepEqual(told, [ackXml(0), ackXml(2)]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("CoveredStanzas.watch() calls once everything is covered, until it is told to stop", () => {
  const world = new World();
  const { covered } = world;
  let calls = 0;
  covered.watch(() => calls++);
  world.receive(2);
  covered.settle(1);
  assert.equal(calls, 0);
  covered.settle(2);
  assert.equal(calls, 1);
  covered.watch(undefined);
  world.receive(1);
  covered.settle(3);
  assert.equal(calls, 1);
});

Deno.test("CoveredStanzas.resume() covers what was open, because the client would send it again", () => {
  const world = new World();
  const { covered, told } = world;
  world.receive(2);
  covered.unlink();
  covered.requested();
  assert.deepEqual(told, [], "there is no stream");
  covered.resume(world.link);
  assert.equal(covered.coveredH, 2);
  assert.ok(covered.isComplete);
  covered.settle(2);
  assert.deepEqual(told, [], "the answer to <resume/> has told it");
  covered.end();
});

Deno.test("CoveredStanzas.end() leaves no timer and tells nobody of late fates", () => {
  const world = new World();
  const { covered, clock, told } = world;
  world.receive(1);
  assert.equal(clock.pendingTimers, 1);
  covered.end();
  assert.equal(clock.pendingTimers, 0);
  covered.settle(1);
  assert.deepEqual(told, []);
});

Deno.test("CoveredStanzas goes on from the count of another node", () => {
  const world = new World();
  const covered = new CoveredStanzas(world.link, world.management, 7);
  assert.equal(covered.receivedH, 7);
  assert.equal(covered.receive(), 8);
  assert.equal(covered.coveredH, 7);
});
