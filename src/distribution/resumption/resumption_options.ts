/** How sessions go from one node to another; durations in milliseconds. */
export interface ResumptionOptions {
  /** Time in which a client that resumes at another node gets its session, or is told that it does not. */
  readonly timeoutMs: number;
  /** Stanzas that a session may bring. */
  readonly maxItems: number;
  /** Bytes that they may cost. */
  readonly maxBytes: number;
  /** Bytes that errors which are owed may cost besides. */
  readonly maxOwedBytes: number;
  /** Time after which a node that cannot be reached is given up. */
  readonly expireAfterMs: number;
  /** Sessions that may be on their way from here at once. @default 10000 */
  readonly maxGivings?: number;
  /**
   * Transfers of which a taker knows, when asked again, that it took them. Clients make them, one with each
   * move of a session; a few hundred bytes each. @default 100000
   */
  readonly maxTakings?: number;
}

/** Sessions that may be on their way from a node at once, unless configured. */
export const DEFAULT_MAX_GIVINGS = 10_000;
/** Transfers that a taker remembers, unless told otherwise. */
export const DEFAULT_MAX_TAKINGS = 100_000;

// What follows is the protocol's and not the operator's: both ends count on it being alike, within the
// `timeoutMs` that there is for all of it.

/** Milliseconds that a session waits, before it goes, for the fate of what its client sent last. */
export const COVER_MS = 250;
/** Milliseconds between looks whether the session table says where a session went, and for how long. */
export const KNOWN_CHECK_MS = 100;
export const KNOWN_MS = 5_000;
/** Milliseconds for which it stays reachable after that, for those who learn of it later. */
export const GRACE_MS = 250;
/**
 * Milliseconds for which what comes straight to a session waits, at most, for what follows from its old
 * node: until that is not reachable for it any more.
 */
export const FOLLOW_MS = 2_000;
/** Milliseconds between looks at nodes that cannot be reached. */
export const PEER_CHECK_MS = 1_000;
/** Milliseconds after which a node that cannot be reached and listens nowhere is given up. */
export const NOWHERE_MS = 3_000;
/** Milliseconds in which news of what is settled is gathered. */
export const SETTLED_MS = 100;
/** Bytes of one QUEUE frame, unless a single stanza has more. */
export const QUEUE_BYTES = 65_536;
/** Bytes of the queue on their way at once. */
export const WINDOW_BYTES = 262_144;
/** Things that a session may bring besides its queue. */
export const MAX_DETAILS_IN_ALL = 16_384;
/** Senders of whom it is told what was delivered. */
export const MAX_SENDERS = 2_048;
