/** One kind of work whose cost is compared, and the size of its input. */
export interface CostMeasurement<T> {
  /** Makes an input of about `size` units. */
  make(size: number): T;
  /** Does the measured work on one input. */
  work(input: T): unknown;
  readonly largeSize: number;
  /** Number of small inputs that add up to one large input. @default 8 */
  readonly smallCount?: number;
  /** A ratio below this is good enough to stop measuring. @default `MAX_COST_RATIO` */
  readonly enough?: number;
}

/** In linear time a cost ratio is near 1, in quadratic time near the number of small inputs. */
export const MAX_COST_RATIO = 3;

/** Rounds of measurement. Other processes use the processor too, so only the fastest round counts. */
const ROUNDS = 40;
/** Repetitions within one round, because the clock is too coarse for one. */
const REPETITIONS = 8;

/**
 * Returns the cost of `one` as a multiple of `other`. It compares the fastest run of each and stops
 * below `enough`.
 */
export function timeRatio(one: () => void, other: () => void, enough: number): number {
  let oneMs = Infinity;
  let otherMs = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const startedMs = performance.now();
    other();
    const betweenMs = performance.now();
    one();
    otherMs = Math.min(otherMs, betweenMs - startedMs);
    oneMs = Math.min(oneMs, performance.now() - betweenMs);
    if (round > 1 && oneMs < otherMs * enough) break;
  }
  return oneMs / otherMs;
}

/**
 * Returns the cost of one large input as a multiple of small inputs of the same total size. It takes the
 * smallest ratio of several measurements, and stops measuring below `enough`.
 */
export function costRatio<T>(measurement: CostMeasurement<T>): number {
  const { make, work, largeSize, smallCount = 8, enough = MAX_COST_RATIO } = measurement;
  const large = make(largeSize);
  const small = make(Math.floor(largeSize / smallCount));
  const times = (count: number, input: T) => () => {
    for (let i = 0; i < count; i++) work(input);
  };
  return timeRatio(times(REPETITIONS, large), times(smallCount * REPETITIONS, small), enough);
}
