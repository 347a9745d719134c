/** Measured anew so often before it counts: others have the processor too. */
const ROUNDS = 40;

/** What `one` costs, as a multiple of `other`; the least of each is compared, and `enough` ends it. */
export function costRatio(one: () => void, other: () => void, enough: number): number {
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
