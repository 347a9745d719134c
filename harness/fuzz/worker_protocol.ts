/** The one message to a fuzzing worker. */
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
 * Messages of a fuzzing worker: its progress, or, as the last message, its finding or the reason
 * why it cannot go on.
 */
export type FuzzWord =
  | { readonly kind: "progress"; readonly runs: number }
  | { readonly kind: "finding"; readonly runs: number; readonly problem: string }
  | { readonly kind: "failed"; readonly problem: string };

/** Room for one input and its length. */
export const CURRENT_BYTES = 65_536 + 4;
