/** Limits on the privacy lists of one account. */
export interface PrivacyBounds {
  /** Lists; at least 1. */
  readonly maxLists: number;
  /** Items of a list; at least 1. */
  readonly maxItems: number;
  /** Bytes of all lists together; at least 1. */
  readonly maxBytes: number;
}

/** Limits where privacy lists themselves are off, and only the block list is on. */
export const DEFAULT_PRIVACY_BOUNDS: PrivacyBounds = Object.freeze({
  maxLists: 50,
  maxItems: 1_000,
  maxBytes: 131_072,
});
