import type { Random } from "./random.ts";
import { MATH_RANDOM } from "./random.ts";

/** How a delay grows from try to try. */
export interface BackoffOptions {
  /** Milliseconds before the first retry; at least 1. */
  readonly firstMs: number;
  /** Milliseconds that no delay exceeds before jitter is added. */
  readonly maxMs: number;
  /** Fraction of the delay by which it may be longer or shorter; 0 to 1. @default 0.1 */
  readonly jitter?: number;
}

/** Milliseconds before retry number `retry` (1 is the first): `firstMs`·2^(retry−1), bounded. */
export function backoffMs(
  retry: number,
  options: BackoffOptions,
  random: Random = MATH_RANDOM,
): number {
  const plainMs = Math.min(options.maxMs, options.firstMs * 2 ** (retry - 1));
  return plainMs * (1 + (options.jitter ?? 0.1) * (2 * random.unit() - 1));
}
