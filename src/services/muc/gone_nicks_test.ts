import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { GoneNicks } from "./gone_nicks.ts";

Deno.test("GoneNicks.forgetBefore() forgets the nicknames that went before a time, in all rooms", () => {
  const clock = new ManualClock();
  const gone = new GoneNicks(clock);
  gone.note("coven", "witch");
  gone.note("heath", "witch");
  clock.advance(10);
  gone.note("coven", "bard");
  gone.note("coven", "witch"); // again
  gone.forgetBefore(clock.monotonicMs());
  deepStrictEqual([...gone.in("coven")], ["bard", "witch"]);
  deepStrictEqual([...gone.in("heath")], []);
});

Deno.test("GoneNicks.note() keeps twenty thousand nicknames, and forgets those of the quietest room first", () => {
  const gone = new GoneNicks(new ManualClock());
  for (let i = 0; i < 2; i++) gone.note("heath", `${i}`);
  for (let i = 0; i < 20_000; i++) gone.note("coven", `${i}`);
  deepStrictEqual([...gone.in("heath")], []);
  const kept = [...gone.in("coven")];
  strictEqual(kept.length, 20_000);
  gone.note("heath", "witch");
  strictEqual([...gone.in("coven")][0], "1");
});
