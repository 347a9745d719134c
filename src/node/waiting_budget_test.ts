import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import { WaitingBudget } from "./waiting_budget.ts";

const ALICE = { singles: ["alice@example.com"], crowds: [] };

Deno.test("WaitingBudget adds up all places in one total, and shows each place", async () => {
  const clock = new ManualClock();
  const metrics = new MetricsRegistry(clock);
  const { total, places } = new WaitingBudget(1_000_000, metrics);
  places.bounce.hold(ALICE, 100_000);
  places.lanes.grow(50_000);
  assert.equal(total.bytes, 150_000);
  assert.equal(places.lookup.mayHold(ALICE, 112_501), false, "a fifth, wherever it waits");
  assert.equal(places.lookup.mayHold(ALICE, 112_500), true);
  assert.equal(
    places.handover.mayHold({ singles: ["bob@example.com"], crowds: [] }, 850_001),
    false,
  );
  const shown = await metrics.prometheus();
  assert.match(shown, /^causeway_waiting_bytes\{place="bounce"\} 100000$/m);
  assert.match(shown, /^causeway_waiting_bytes\{place="lanes"\} 50000$/m);
  assert.match(shown, /^causeway_waiting_bytes\{place="sessions"\} 0$/m);
  assert.match(shown, /^causeway_waiting_limit_bytes 1000000$/m);
  assert.match(shown, /^causeway_waiting_holders 1$/m);
  metrics.close();
});

Deno.test("WaitingBudget leaves an eighth of the bytes at most to presence for inactive clients", () => {
  const metrics = new MetricsRegistry(new ManualClock());
  const budget = new WaitingBudget(1_000_000, metrics);
  const held = budget.places["held-presence"];
  assert.equal(held.mayHold(ALICE, 125_000), true);
  assert.equal(held.mayHold(ALICE, 125_001), false);
  held.hold(ALICE, 100_000);
  assert.equal(budget.total.bytes, 100_000);
  const bob = { singles: ["bob@example.com"], crowds: [] };
  assert.equal(held.mayHold(bob, 50_000), false);
  budget.resize(2_000_000);
  assert.equal(budget.total.maxBytes, 2_000_000);
  assert.equal(held.mayHold(bob, 50_000), true);
  metrics.close();
});

Deno.test("WaitingBudget.watch() asks for room while less than an eighth is free, and not otherwise", () => {
  const clock = new ManualClock();
  const metrics = new MetricsRegistry(clock);
  const budget = new WaitingBudget(1_000_000, metrics);
  const { sessions } = budget.places;
  let asked = 0;
  const end = budget.watch(clock, () => {
    asked++;
    sessions.grow(-1);
  });
  sessions.grow(875_000);
  clock.advance(5_000);
  assert.equal(asked, 0);
  sessions.grow(2);
  clock.advance(5_000);
  assert.equal(asked, 2);
  end();
  metrics.close();
  assert.equal(clock.pendingTimers, 0);
});
