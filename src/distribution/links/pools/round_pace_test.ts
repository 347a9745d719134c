import assert from "node:assert/strict";
import { RoundPace } from "./round_pace.ts";

Deno.test("RoundPace.take() doubles the wait up to a quarter of the time to expire, until it is reset", () => {
  const pace = new RoundPace({ rerouteFirstMs: 100, expireAfterMs: 1200 });
  const due = (untilMs: number) => {
    const rounds: number[] = [];
    for (let nowMs = 0; nowMs <= untilMs; nowMs += 10) if (pace.take(nowMs)) rounds.push(nowMs);
    return rounds;
  };
  assert.equal(pace.isRunning, false);
  assert.deepEqual(due(1200), [100, 300, 600, 900, 1200]);
  assert.equal(pace.isRunning, true);
  pace.reset();
  assert.equal(pace.isRunning, false);
  assert.deepEqual(due(300), [100, 300]);
});

Deno.test("RoundPace.take() never waits shorter than the first time", () => {
  const pace = new RoundPace({ rerouteFirstMs: 100, expireAfterMs: 200 });
  assert.deepEqual([0, 99, 100, 199, 200].map((nowMs) => pace.take(nowMs)), [
    false,
    false,
    true,
    false,
    true,
  ]);
});
