import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { WaitsForRoom } from "./waits_for_room.ts";

/** Waits for a room of some places, and the order in which they ended. */
class World {
  readonly clock = new ManualClock();
  readonly waits = new WaitsForRoom(this.clock, 1_000);
  readonly ended: string[] = [];
  free = 0;
  attempts = 0;
  looks = 0;

  add(name: string, { dueMs = 5_000, places = 1 } = {}): void {
    void this.waits.add({
      dueMs,
      mayFit: () => {
        this.looks++;
        return this.free >= places;
      },
      attempt: () => {
        this.attempts++;
        if (this.free < places) return false;
        this.free -= places;
        return true;
      },
    }).then((isTaken) => this.ended.push(`${name} ${isTaken}`));
  }

  async has(ended: readonly string[]): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    deepStrictEqual(this.ended, ended);
  }
}

Deno.test("WaitsForRoom gives room to those who came first, and to others if these need more", async () => {
  const world = new World();
  world.add("large", { places: 3 });
  for (const name of ["a", "b", "c"]) world.add(name);
  await world.has([]);
  strictEqual(world.attempts, 0, "there is certainly no room");
  world.free = 2;
  world.waits.freed();
  await world.has(["a true", "b true"]);
  world.free = 4;
  world.waits.freed();
  await world.has(["a true", "b true", "large true", "c true"]);
  strictEqual(world.waits.size, 0);
  strictEqual(world.clock.pendingTimers, 0, "it looks no more");
});

Deno.test("WaitsForRoom.freed() looks at few of those without room, and at all others in turn", async () => {
  const world = new World();
  for (let large = 0; large < 1_000; large++) world.add("large", { places: 9 });
  for (const name of ["a", "b"]) world.add(name);
  world.looks = 0;
  world.free = 1;
  world.waits.freed();
  strictEqual(world.looks, 32);
  for (let times = 0; times < 40; times++) world.waits.freed();
  await world.has(["a true"]);
  world.looks = 0;
  world.free = 1;
  world.clock.advance(250);
  await world.has(["a true", "b true"]);
  strictEqual(world.looks, 1_001, "all of them, from time to time");
  world.looks = 0;
  world.free = 9_000;
  world.waits.freed();
  await new Promise((resolve) => setImmediate(resolve));
  strictEqual(world.waits.size, 0, "those that fit are not counted");
});

Deno.test("WaitsForRoom.freed() begins anew where the look before has seen the last one", async () => {
  const world = new World();
  for (let large = 0; large < 32; large++) world.add(`large${large}`, { places: 9 });
  world.waits.freed();
  world.free = 9;
  world.waits.freed();
  await world.has(["large0 true"]);
});

Deno.test("WaitsForRoom.add() takes room at once, and waits no longer than until its time", async () => {
  const world = new World();
  world.free = 1;
  world.add("fits");
  world.add("late", { dueMs: 0 });
  world.add("waits", { dueMs: 900 });
  await world.has(["fits true", "late false"]);
  world.clock.advance(750);
  await world.has(["fits true", "late false"]);
  world.clock.advance(250);
  await world.has(["fits true", "late false", "waits false"]);
  strictEqual(world.clock.pendingTimers, 0);
});

Deno.test("WaitsForRoom looks by itself for room that something else has left", async () => {
  const world = new World();
  world.add("waits");
  world.free = 1;
  world.clock.advance(250);
  await world.has(["waits true"]);
});

Deno.test("WaitsForRoom.hurry() ends all waits soon, and later ones", async () => {
  const world = new World();
  world.add("patient");
  world.waits.hurry();
  world.clock.advance(500);
  world.add("later");
  world.waits.hurry();
  await world.has([]);
  world.clock.advance(500);
  await world.has(["patient false", "later false"]);
  world.add("too late");
  await world.has(["patient false", "later false", "too late false"]);
});
