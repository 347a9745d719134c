import assert from "node:assert/strict";
import { leaks, rssByThird, type Sample } from "./samples.ts";

const CALM: Sample = { rssBytes: 100, handles: 20, held: 0 };

function rising(from: number, to: number): Sample[] {
  return Array.from({ length: 90 }, (_, at) => ({
    ...CALM,
    rssBytes: from + (to - from) * at / 90,
  }));
}

Deno.test("rssByThird() gives the median of each third", () => {
  const samples = [1, 2, 3, 10, 20, 30, 7, 9, 8].map((rssBytes) => ({ ...CALM, rssBytes }));
  assert.deepEqual(rssByThird(samples), [2, 20, 8]);
});

Deno.test("leaks() finds memory that goes on growing, and takes it when it has stopped", () => {
  assert.equal(leaks(CALM, rising(100, 200), CALM).length, 1);
  assert.deepEqual(leaks(CALM, [...rising(100, 200).slice(0, 30), ...rising(200, 200)], CALM), []);
});

Deno.test("leaks() finds handles and stanzas that stay", () => {
  const flat = rising(100, 100);
  assert.deepEqual(leaks(CALM, flat, { ...CALM, handles: 36 }), []);
  assert.equal(leaks(CALM, flat, { ...CALM, handles: 37 }).length, 1);
  assert.equal(leaks(CALM, flat, { ...CALM, held: 1 }).length, 1);
});
