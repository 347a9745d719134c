import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { pausesLine, seePauses, watchPauses } from "./machine_pauses.ts";

/** A clock that tells these times one after another. */
function scripted(...times: readonly number[]): () => number {
  const left = [...times];
  return () => left.shift()!;
}

Deno.test("seePauses() counts the steps of the clock of more than a millisecond", () => {
  const seen = seePauses(scripted(100, 100.5, 101.5, 105, 105.001, 107.5, 110), 10);
  deepStrictEqual(seen, { count: 3, longestMs: 3.5 });
  deepStrictEqual(seePauses(scripted(100, 101, 102), 2), { count: 0, longestMs: 0 });
});

Deno.test("watchPauses() watches every core", async () => {
  const { cores, seconds, count, longestMs } = await watchPauses();
  strictEqual(cores, navigator.hardwareConcurrency);
  strictEqual(seconds, 2);
  ok(count >= 0 && (count > 0) === (longestMs > 1));
});

Deno.test("pausesLine() names the longest pause, if there was one", () => {
  const pauses = { cores: 2, seconds: 2, count: 3, longestMs: 4.25 };
  match(
    pausesLine(pauses),
    /^2 idle cores .* 2 s before: 3 pauses of more than 1 ms, the longest of 4\.3 ms$/,
  );
  match(pausesLine({ ...pauses, count: 0, longestMs: 0 }), /0 pauses of more than 1 ms$/);
});
