import assert from "node:assert/strict";
import { MeshTime } from "./mesh_time.ts";

const FIVE_MINUTES_US = 300_000_000;

/** What each node makes of it when the wall clocks of a mesh are `clocksUs` ahead of the truth. */
function corrected(clocksUs: readonly number[]): number[] {
  return clocksUs.map((own, at) => {
    const time = new MeshTime();
    clocksUs.forEach((other, from) => {
      if (from !== at) time.note(`node${from}`, other - own);
    });
    return own + time.correctionUs;
  });
}

for (
  const [what, clocks, expected] of [
    ["a node that is five minutes ahead of two", [0, FIVE_MINUTES_US, 0], 0],
    ["a node that is five minutes behind two", [0, -FIVE_MINUTES_US, 0], 0],
    ["two of five", [0, FIVE_MINUTES_US, 0, -FIVE_MINUTES_US, 0], 0],
    ["one of two that is ahead", [0, FIVE_MINUTES_US], 0],
    [
      "one of two that is behind, so that both tell the same time",
      [0, -FIVE_MINUTES_US],
      -FIVE_MINUTES_US,
    ],
  ] as const
) {
  Deno.test(`MeshTime brings to one time ${what}`, () => {
    assert.deepEqual(corrected(clocks), clocks.map(() => expected));
  });
}

Deno.test("MeshTime leaves clocks alone that differ by less than a second", () => {
  const clocks = [0, 999_999, -999_999];
  assert.deepEqual(corrected(clocks), clocks);
});

Deno.test("MeshTime.note() says when the correction changes, and forget() takes a node out", () => {
  const time = new MeshTime();
  assert.equal(time.note("a", -FIVE_MINUTES_US), true);
  assert.equal(time.note("a", -FIVE_MINUTES_US + 5), false);
  assert.equal(time.note("b", 0), true, "two of three agree with us");
  assert.equal(time.correctionUs, 0);
  assert.equal(time.forget("b"), true);
  assert.equal(time.correctionUs, -FIVE_MINUTES_US + 5);
  assert.equal(time.forget("b"), false);
});
