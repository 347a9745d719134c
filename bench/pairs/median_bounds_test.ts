import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { medianBounds, MIN_VALUES } from "./median_bounds.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

Deno.test("medianBounds() gives the ranks that tables of the sign test give", () => {
  // Ranks from 1, as printed for 95 % bounds.
  for (
    const [count, low, high] of [[6, 1, 6], [8, 1, 8], [9, 2, 8], [10, 2, 9], [20, 6, 15], [
      50,
      18,
      33,
    ], [100, 40, 61]] as const
  ) {
    const bounds = medianBounds(upTo(count).toReversed());
    deepStrictEqual([bounds.low, bounds.high], [low, high], `${count} values`);
    strictEqual(bounds.median, (count + 1) / 2);
  }
});

Deno.test("medianBounds() bounds many values, whose extremes have no probability worth a number", () => {
  const { low, median, high } = medianBounds(upTo(3_001));
  strictEqual(median, 1_501);
  // Half the spread of a fair coin is 1.96 · √3001 / 2 = 53.7.
  ok(low >= 1_501 - 56 && low <= 1_501 - 52, `${low}`);
  strictEqual(high - median, median - low);
});

Deno.test("medianBounds() is not moved by one wild value", () => {
  const values = [...upTo(19), 1e9];
  deepStrictEqual(medianBounds(values), { median: 10.5, low: 6, high: 15 });
});

Deno.test("medianBounds() refuses too few values for any bound", () => {
  throws(() => medianBounds(upTo(MIN_VALUES - 1)), RangeError);
});
