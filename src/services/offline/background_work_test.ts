import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import { BackgroundWork } from "./background_work.ts";

class Fixture {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly background = new BackgroundWork(this);
}

Deno.test("BackgroundWork.close() waits for work, and for work that begins meanwhile", async () => {
  const { background } = new Fixture();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  background.spawn(first.promise.then(() => background.spawn(second.promise)));
  let isOver = false;
  const closed = background.close().then(() => isOver = true);
  assert.equal(background.isClosed, true);
  first.resolve();
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  assert.equal(isOver, false);
  second.resolve();
  await closed;
});

Deno.test("BackgroundWork.after() begins work when its time has come", async () => {
  const { background, clock } = new Fixture();
  let begun = 0;
  background.after(100, () => Promise.resolve(void begun++));
  clock.advance(99);
  assert.equal(begun, 0);
  clock.advance(1);
  assert.equal(begun, 1);
  await background.close();
});

Deno.test("BackgroundWork.pause() ends when its time is over, or with close()", async () => {
  const { background, clock } = new Fixture();
  const ended: string[] = [];
  const pause = (name: string, forMs: number) =>
    background.spawn(background.pause(forMs).then(() => void ended.push(name)));
  pause("short", 100);
  pause("long", 10_000);
  clock.advance(99);
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  assert.deepEqual(ended, []);
  clock.advance(1);
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  assert.deepEqual(ended, ["short"]);
  const closed = background.close();
  pause("late", 100);
  await closed;
  assert.deepEqual(ended.slice(1).toSorted(), ["late", "long"]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("BackgroundWork leaves no timer after close()", async () => {
  const { background, clock } = new Fixture();
  const begin = () => assert.fail("it is closed");
  background.after(100, begin);
  await background.close();
  background.after(100, begin);
  assert.equal(clock.pendingTimers, 0);
  clock.advance(100);
});

Deno.test("BackgroundWork logs what work throws", async () => {
  const { background, logger } = new Fixture();
  background.spawn(Promise.reject(new Error("unexpected")));
  await background.close();
  assert.deepEqual(logger.entries.map(({ event }) => event), ["offline.bug"]);
});
