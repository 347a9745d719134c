/** What a fuzzing worker is told, once. */
export interface FuzzPlan {
  readonly target: string;
  readonly seed: number;
  readonly corpus: readonly Uint8Array[];
  /**
   * The input under way: its length as `Uint32` at 0, then its bytes. Shared, so that it can be read
   * while the worker hangs.
   */
  readonly current: SharedArrayBuffer;
}

/**
 * What a fuzzing worker tells: how far it is; or what it found, or that it cannot go on, which is its last
 * word.
 */
export type FuzzWord =
  | { readonly kind: "progress"; readonly runs: number }
  | { readonly kind: "finding"; readonly runs: number; readonly problem: string }
  | { readonly kind: "failed"; readonly problem: string };

/** Room for one input and its length. */
export const CURRENT_BYTES = 65_536 + 4;
