import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "./manual_clock.ts";
import { Pauses } from "./pauses.ts";

function open() {
  const clock = new ManualClock();
  const pauses = new Pauses(clock);
  const ended: string[] = [];
  const begin = (name: string, forMs: number) => pauses.pause(forMs).then(() => ended.push(name));
  return { clock, pauses, ended, begin };
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

Deno.test("Pauses end each after its own time", async () => {
  const { clock, ended, begin } = open();
  void begin("long", 500);
  void begin("short", 100);
  clock.advance(99);
  await turn();
  deepStrictEqual(ended, []);
  clock.advance(1);
  await turn();
  deepStrictEqual(ended, ["short"]);
  clock.advance(400);
  await turn();
  deepStrictEqual(ended, ["short", "long"]);
});

Deno.test("Pauses.close() ends all pauses in their order, and later ones at once", async () => {
  const { clock, pauses, ended, begin } = open();
  void begin("first", 500);
  void begin("second", 100);
  strictEqual(pauses.isClosed, false);
  pauses.close();
  strictEqual(pauses.isClosed, true);
  await turn();
  deepStrictEqual(ended, ["first", "second"]);
  await begin("third", 500);
  deepStrictEqual(ended, ["first", "second", "third"]);
  strictEqual(clock.pendingTimers, 0);
});
