/** What is measured, and how large. */
export interface CostMeasurement<T> {
  /** An input of about `size` units. */
  make(size: number): T;
  /** What is done with it. */
  work(input: T): unknown;
  readonly largeSize: number;
  /** Small inputs that are as much as a large one. @default 8 */
  readonly smallCount?: number;
  /** A ratio below this is good enough to stop measuring. @default `MAX_COST_RATIO` */
  readonly enough?: number;
}

/** In linear time a cost ratio is near 1, in quadratic time near the number of small inputs. */
export const MAX_COST_RATIO = 3;

/** Measured anew so often before it counts: others have the processor too. */
const ROUNDS = 40;
/** Done so often in one measurement, so that the clock is fine enough for it. */
const REPETITIONS = 8;

/** What `one` costs, as a multiple of `other`; the least of each is compared, and `enough` ends it. */
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
 * What one large input costs, as a multiple of as much input in small ones: the least that is seen, and
 * no more looking once that is below `enough`.
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
