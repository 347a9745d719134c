const SIMULATIONS = Deno.env.get("CAUSEWAY_SIMULATIONS");

/**
 * Returns how often fast-check plays a random test: the same plays every time, or with
 * `CAUSEWAY_SIMULATIONS=20` twenty times as many with a random seed.
 */
export function randomRuns(
  usual: number,
  seed = 1,
): { readonly numRuns: number; readonly seed?: number } {
  return SIMULATIONS === undefined ? { numRuns: usual, seed } : { numRuns: runs(usual) };
}

/** Returns `usual`, or with `CAUSEWAY_SIMULATIONS=20` twenty times as much. */
export function runs(usual: number): number {
  return usual * Number(SIMULATIONS ?? 1);
}
