/** A median, with the bounds between which the true one lies with a probability of 95 % at least. */
export interface MedianBounds {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Fewest values whose extremes are such bounds. */
export const MIN_VALUES = 6;
/** Upper bound of the probability that the true median lies below `low`, and of that above `high`. */
const TAIL = 0.025;

/**
 * Returns the median of independent values. The bounds are two of the values, by rank, and hold for
 * any distribution: how many values lie below the true median is like a toss of a coin for each. Pure.
 * @throws RangeError for fewer values than `MIN_VALUES`
 */
export function medianBounds(values: readonly number[]): MedianBounds {
  const count = values.length;
  if (count < MIN_VALUES) {
    throw new RangeError(`Cannot bound the median of ${count} values: at least ${MIN_VALUES} do`);
  }
  const sorted = values.toSorted((one, other) => one - other);
  const rank = outerRank(count);
  const middle = count >> 1;
  const median = count % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, low: sorted[rank]!, high: sorted[count - 1 - rank]! };
}

/**
 * Returns the highest index, from 0, at which so few of `count` values in order come before that the
 * true median does with a probability of `TAIL` at most.
 */
function outerRank(count: number): number {
  // Probability that exactly `below` of the values lie below the true median; kept as a logarithm,
  // as the first ones are too small for a number.
  let logTerm = -count * Math.LN2;
  let sum = Math.exp(logTerm);
  let below = 0;
  while (sum <= TAIL) {
    logTerm += Math.log((count - below) / (below + 1));
    below++;
    sum += Math.exp(logTerm);
  }
  return below - 1;
}
