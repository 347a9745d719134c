import assert from "node:assert/strict";
import fc from "fast-check";
import { DURATION_BUCKETS, HistogramCell } from "./metric_cells.ts";

Deno.test("HistogramCell quantiles are at most 2 % off, everything else is exact", () => {
  const valueUs = fc.oneof(
    fc.integer({ min: 0, max: 100 }),
    fc.integer({ min: 0, max: 40_000_000 }),
    fc.integer({ min: 0, max: 0xffff_ffff }),
  );
  fc.assert(
    fc.property(fc.array(valueUs, { minLength: 1, maxLength: 300 }), (values) => {
      const cell = new HistogramCell(DURATION_BUCKETS);
      for (const value of values) cell.observe(value);
      const sorted = values.toSorted((one, other) => one - other);
      const summary = cell.summary();
      assert.equal(summary.count, values.length);
      assert.equal(summary.min, sorted[0]);
      assert.equal(summary.max, sorted.at(-1));
      const sum = values.reduce((total, value) => total + value, 0);
      assert.equal(cell.sum, sum);
      assert.equal(summary.mean, sum / values.length);
      for (
        const [share, shown] of [
          [0.5, summary.p50],
          [0.95, summary.p95],
          [0.99, summary.p99],
          [0.999, summary["p99.9"]],
        ] as const
      ) {
        const exact = sorted[Math.max(1, Math.ceil(share * values.length)) - 1]!;
        assert.ok(Math.abs(shown - exact) <= exact * 0.02, `${share}: ${shown} for ${exact}`);
      }
      const { bounds } = DURATION_BUCKETS;
      for (let i = 0; i <= bounds.length; i++) {
        const above = bounds[i - 1] ?? -1;
        const upTo = bounds[i] ?? Infinity;
        const exact = values.filter((value) => value > above && value <= upTo).length;
        assert.equal(cell.buckets[i], exact, `bucket up to ${upTo}`);
      }
    }),
  );
});

Deno.test("HistogramCell takes fractions, counts negatives as 0, ignores NaN", () => {
  const cell = new HistogramCell(DURATION_BUCKETS);
  for (const value of [10.5, -3, NaN, Infinity]) cell.observe(value);
  assert.equal(cell.count, 3);
  const summary = cell.summary();
  assert.equal(summary.min, 0);
  assert.equal(summary.max, 0xffff_ffff);
  assert.equal(cell.buckets[0], 1, "0 is up to 10 µs");
  assert.equal(cell.buckets[1], 1, "10.5 is above 10 µs");
});

Deno.test("HistogramCell without observations shows zeros", () => {
  assert.deepEqual(new HistogramCell(DURATION_BUCKETS).summary(), {
    count: 0,
    min: 0,
    mean: 0,
    p50: 0,
    p95: 0,
    p99: 0,
    "p99.9": 0,
    max: 0,
  });
});

Deno.test("HistogramCell.observe() with `times` equals that many single observations", () => {
  const [one, other] = [new HistogramCell(DURATION_BUCKETS), new HistogramCell(DURATION_BUCKETS)];
  for (const [value, times] of [[5, 3], [70.5, 1000], [2_000_000, 1], [-1, 2]] as const) {
    one.observe(value, times);
    for (let i = 0; i < times; i++) other.observe(value);
  }
  assert.deepEqual(one.summary(), other.summary());
  assert.deepEqual(one.buckets, other.buckets);
  assert.equal(one.sum, other.sum);
});
