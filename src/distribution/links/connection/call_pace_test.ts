import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { CALL_EVERY_MS, CallPace, CALLS_AT_ONCE } from "./call_pace.ts";

const DC2 = "dc2.example.com";
const DC3 = "dc3.example.com";

/** A pace, and the calls that have begun under it. */
class World {
  readonly clock = new ManualClock();
  readonly pace = new CallPace(this.clock);
  readonly begun: string[] = [];

  /** Begins calls to `destination`; gives what calls them off. */
  call(destination: string, times: number): readonly ((() => void) | undefined)[] {
    return Array.from(
      { length: times },
      (_, i) => this.pace.begin(destination, () => void this.begun.push(`${destination} ${i}`)),
    );
  }
}

Deno.test("CallPace begins some calls at once, and then one after the other", () => {
  const world = new World();
  world.call(DC2, CALLS_AT_ONCE + 3);
  assert.equal(world.begun.length, CALLS_AT_ONCE);
  for (const more of [1, 2, 3, 3]) {
    world.clock.advance(CALL_EVERY_MS);
    assert.equal(world.begun.length, CALLS_AT_ONCE + more);
  }
  assert.equal(world.clock.pendingTimers, 0);
});

Deno.test("CallPace begins as many at once again after a pause, and no more", () => {
  const world = new World();
  for (const times of [1, 2]) {
    world.call(DC2, 2 * CALLS_AT_ONCE);
    assert.equal(world.begun.length, (2 * times - 1) * CALLS_AT_ONCE);
    world.clock.advance(1_000_000);
    assert.equal(world.begun.length, 2 * times * CALLS_AT_ONCE);
  }
});

Deno.test("CallPace lets no destination with many endpoints delay another", () => {
  const world = new World();
  world.call(DC2, CALLS_AT_ONCE + 100);
  world.call(DC3, 2);
  world.begun.length = 0;
  world.clock.advance(4 * CALL_EVERY_MS);
  const first = CALLS_AT_ONCE;
  assert.deepEqual(world.begun, [
    `${DC2} ${first}`,
    `${DC3} 0`,
    `${DC2} ${first + 1}`,
    `${DC3} 1`,
  ]);
});

Deno.test("CallPace begins no call that was called off", () => {
  const world = new World();
  world.call(DC2, CALLS_AT_ONCE);
  const [first, second] = world.call(DC3, 2);
  first!();
  first!();
  world.clock.advance(1_000);
  second!();
  world.call(DC2, 1);
  assert.deepEqual(world.begun.slice(CALLS_AT_ONCE), [`${DC3} 1`, `${DC2} 0`]);
});
