import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { Envelope } from "../mod.ts";
import type { EnvelopeFields } from "../mod.ts";
import type { SessionDetail } from "../wire/mod.ts";
import { OVERHEAD_BYTES, SESSION, stanza, TakingWorld } from "./testing/taking_world.ts";

const COST = stanza(1).stanza.bytes.length + OVERHEAD_BYTES;

for (
  const [bound, isOwed] of [
    [{ maxItems: 2 }, false],
    [{ maxBytes: 2 * COST }, false],
    [{ maxOwedBytes: 2 * COST }, true],
  ] as const
) {
  Deno.test(`Taking takes a session at ${Object.keys(bound)}, and declines one past it`, async () => {
    const entry = isOwed ? "owed" : "ordinary";
    const owed = (number: number) => stanza(number, { entry });
    const unbound = isOwed ? { maxItems: 0, maxBytes: 0, ...bound } : { maxOwedBytes: 0, ...bound };
    using world = new TakingWorld(unbound);
    world.taking.begin();
    world.taking.session(SESSION);
    world.queue({ 1: owed(1), 2: owed(2) }, false);
    assert.deepEqual((await world.news()).slice(1), ["HAVE more 2/0"]);
    world.queue({ 3: owed(3) });
    assert.deepEqual(await world.news(), ["HAVE decline 3/0", "over"]);
    assert.equal(world.failures("too-large"), 1);
  });
}

/** Makes a stanza of 28 000 bytes. */
function long(number: number): EnvelopeFields {
  const fields = stanza(number);
  return stanza(number, { stanza: { ...fields.stanza, bytes: new Uint8Array(28_000) } });
}

Deno.test("Taking declines a session past its account's share of the budget, and keeps none of its stanzas", async () => {
  const budget = new FairShares({ maxBytes: 400_000 });
  using world = new TakingWorld({}, budget);
  world.taking.begin();
  world.taking.session(SESSION);
  world.queue({ 1: long(1), 2: long(2) }, false);
  assert.ok(budget.bytes > 56_000);
  await world.news();
  world.queue({ 3: long(3), 4: long(4), 5: long(5) });
  assert.equal((await world.news()).at(-1), "over");
  assert.equal(world.failures("too-large"), 1);
  assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
});

/** Details of `count` senders, with as many numbers as a frame can have of each. */
function details(count: number): SessionDetail[] {
  const recent = Array.from({ length: 255 }, (_, i) => i + 1);
  return Array.from({ length: count }, (_, i) => ({
    kind: "delivered",
    sender: `user${i}@example.com/x`,
    process: 1,
    highest: 255,
    recent,
  }));
}

Deno.test("Taking declines a session whose details are past its account's share of the budget, and keeps none", async () => {
  const budget = new FairShares({ maxBytes: 1_000_000 });
  using world = new TakingWorld({}, budget);
  world.taking.begin();
  world.taking.session(SESSION);
  world.taking.details(details(50));
  assert.ok(budget.bytes > 50 * 255 * 8);
  await world.news();
  world.taking.details(details(100));
  assert.deepEqual(await world.news(), ["HAVE decline 0/0", "over"]);
  assert.equal(world.failures("too-large"), 1);
  assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
});

Deno.test("Taking takes details with the session's state alone", async () => {
  const budget = new FairShares({ maxBytes: 1_000_000 });
  for (const steps of [0, 1, 2]) {
    using world = new TakingWorld({}, budget);
    world.taking.begin();
    if (steps > 0) {
      world.taking.session(SESSION);
      world.queue({});
    }
    if (steps > 1) {
      world.taking.given();
      await world.news();
      assert.ok(world.arrival?.kind === "arrived");
      world.place(world.arrival.session);
    }
    await world.news();
    world.taking.details(details(1));
    assert.equal(budget.bytes, 0);
    assert.deepEqual(await world.news(), steps === 2 ? [] : ["HAVE decline 0/0", "over"]);
  }
});

Deno.test("Taking knows of messages whether an archive has them", async () => {
  using world = new TakingWorld();
  const session = await world.arrived({ 1: stanza(1) });
  world.queue({ 2: stanza(2) }, true, false, true);
  world.place(session);
  const [followed] = world.followed as Envelope[];
  assert.deepEqual([followed!.sequence, followed!.isArchived], [2, true]);
  assert.equal((session.queue[0] as Envelope).isArchived, false);
});

Deno.test("Taking takes stanzas that follow an arrived session, whatever the budget", async () => {
  const budget = new FairShares({ maxBytes: 80_000 });
  using world = new TakingWorld({}, budget);
  const session = await world.arrived({ 1: long(1), 2: long(2) });
  assert.equal(budget.bytes, 0, "the session keeps them now");
  world.queue({ 3: long(3), 4: long(4), 5: long(5) });
  assert.ok(budget.bytes > 80_000);
  world.place(session);
  assert.deepEqual([world.followed.length, budget.bytes], [3, 0]);
});

Deno.test("Taking applies its bounds anew to stanzas that come before the session has its place", async () => {
  for (const entry of ["ordinary", "owed"] as const) {
    using world = new TakingWorld({ maxItems: 2, maxBytes: 2 * COST, maxOwedBytes: 2 * COST });
    const both = (first: number) => ({
      [first]: stanza(first, { entry }),
      [first + 1]: stanza(first + 1, { entry }),
    });
    await world.arrived(both(1));
    world.queue(both(3));
    assert.deepEqual(await world.news(), ["HAVE more 4/0"]);
  }
});
