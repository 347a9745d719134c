import type { Random } from "./random.ts";
import { MATH_RANDOM } from "./random.ts";

/** Growth of the delay between retries. */
export interface BackoffOptions {
  /** Milliseconds before the first retry; at least 1. */
  readonly firstMs: number;
  /** Milliseconds that no delay exceeds before jitter is added. */
  readonly maxMs: number;
  /** Fraction by which jitter lengthens or shortens the delay; 0 to 1. @default 0.1 */
  readonly jitter?: number;
}

/**
 * Returns the milliseconds before retry number `retry` (1 is the first): `firstMs`·2^(retry−1), at most
 * `maxMs`.
 */
export function backoffMs(
  retry: number,
  options: BackoffOptions,
  random: Random = MATH_RANDOM,
): number {
  const plainMs = Math.min(options.maxMs, options.firstMs * 2 ** (retry - 1));
  return plainMs * (1 + (options.jitter ?? 0.1) * (2 * random.unit() - 1));
}
