/** Milliseconds between two looks at the clock that count; in the rest the machine stood still. */
const MAX_STEP_MS = 1_000;

let lastMs = performance.now();
let stoodStillMs = 0;

/**
 * Monotonic milliseconds without those in which the machine stood still, for bounds on how long
 * something may take. Whoever measures with it looks at it all the time: several times a second.
 */
export function liveMs(): number {
  const nowMs = performance.now();
  stoodStillMs += Math.max(0, nowMs - lastMs - MAX_STEP_MS);
  lastMs = nowMs;
  return nowMs - stoodStillMs;
}
