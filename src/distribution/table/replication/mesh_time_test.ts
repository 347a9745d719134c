import assert from "node:assert/strict";
import { MAX_CORRECTION_US, MeshTime } from "./mesh_time.ts";

const FIVE_MINUTES_US = 300_000_000;

function nodeOf(host: string, node = "node1"): { host: string; node: string } {
  return { host, node };
}

const A = nodeOf("a");
const B = nodeOf("b");

/**
 * Returns each node's corrected clock when the wall clocks of a mesh are `clocksUs` ahead of the
 * truth.
 */
function corrected(clocksUs: readonly number[]): number[] {
  return clocksUs.map((own, at) => {
    const time = new MeshTime();
    clocksUs.forEach((other, from) => {
      if (from !== at) time.note(nodeOf(`dc${from}`), other - own);
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
      "one of two that is behind, so that both agree",
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

Deno.test("MeshTime.note() reports when the correction changes, and forget() takes a node out", () => {
  const time = new MeshTime();
  assert.equal(time.note(A, -FIVE_MINUTES_US), true);
  assert.equal(time.note(A, -FIVE_MINUTES_US + 5), false);
  assert.equal(time.note(B, 0), true, "two of three agree with us");
  assert.equal(time.correctionUs, 0);
  assert.equal(time.forget(B), true);
  assert.equal(time.correctionUs, -FIVE_MINUTES_US + 5);
  assert.equal(time.forget(B), false);
});

Deno.test("MeshTime counts one vote for a datacenter, however many nodes it names", () => {
  const time = new MeshTime();
  time.note(nodeOf("dc2"), 0);
  time.note(nodeOf("dc3"), 0);
  for (let i = 0; i < 100; i++) {
    time.note(nodeOf("dc9", `node${i}`), Number.MAX_SAFE_INTEGER);
    assert.equal(time.correctionUs, 0, `with ${i + 1} nodes`);
  }
});

Deno.test("MeshTime takes the middle of a datacenter's nodes for its vote, and of two the nearer to our clock", () => {
  const time = new MeshTime();
  time.note(nodeOf("dc2", "node1"), 0);
  time.note(nodeOf("dc2", "node2"), -FIVE_MINUTES_US);
  assert.equal(time.correctionUs, 0);
  time.note(nodeOf("dc2", "node3"), -FIVE_MINUTES_US);
  assert.equal(time.correctionUs, -FIVE_MINUTES_US);
});

for (const offsetUs of [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER]) {
  Deno.test(`MeshTime moves by a day at most when most clocks differ by ${offsetUs} µs`, () => {
    const time = new MeshTime();
    time.note(A, offsetUs);
    time.note(B, offsetUs);
    assert.equal(time.correctionUs, Math.sign(offsetUs) * MAX_CORRECTION_US);
  });
}
