/** Options for holding stanzas without a known route; docs/promises.md, "Bounce". */
export interface BounceOptions {
  /** Milliseconds before the first retry; the n-th comes `resendAfterMs`·2^(n−1) later. @default 200 */
  readonly resendAfterMs?: number;
  /** Retries before the sender gets an error. @default 4 */
  readonly maxRetries?: number;
  /** Stanzas held at once. @default 100000 */
  readonly maxItems?: number;
  /** Bytes held at once, counting what each stanza costs besides its text. @default 67108864 */
  readonly maxBytes?: number;
}

/** Fills in the defaults. */
export function resolveBounceOptions(options: BounceOptions): Required<BounceOptions> {
  return Object.freeze({
    resendAfterMs: options.resendAfterMs ?? 200,
    maxRetries: options.maxRetries ?? 4,
    maxItems: options.maxItems ?? 100_000,
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
  });
}

/** Reason why the store returns a held stanza. */
export type BounceFailure = "out-of-retries" | "full" | "stopping";
