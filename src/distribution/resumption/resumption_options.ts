/** Options of moving sessions between nodes; durations in milliseconds. */
export interface ResumptionOptions {
  /**
   * Time in which a client that resumes at another node gets its session, or an answer that it does
   * not.
   */
  readonly timeoutMs: number;
  /** Stanzas that a session may bring. */
  readonly maxItems: number;
  /** Bytes that those stanzas may cost. */
  readonly maxBytes: number;
  /** Bytes that owed errors may cost besides. */
  readonly maxOwedBytes: number;
  /** Bytes of a frame that carries one stanza. */
  readonly maxFrameBytes: number;
  /** Time after which an unreachable node is taken for gone. */
  readonly expireAfterMs: number;
  /**
   * Sessions that may be on their way from here at once, with those that have come but have stanzas
   * that are not settled. One account may have a quarter of the free places. @default 10000
   */
  readonly maxGivings?: number;
  /**
   * Transfers that a taker remembers, to answer that it has the session. A client makes one with
   * each move of its session; each takes a few hundred bytes. @default 100000
   */
  readonly maxTakings?: number;
}

/** Default of `maxGivings`. */
export const DEFAULT_MAX_GIVINGS = 10_000;
/** Default of `maxTakings`. */
export const DEFAULT_MAX_TAKINGS = 100_000;

// The following values belong to the protocol: both ends rely on equal values, within the
// `timeoutMs` for the whole transfer.

/**
 * Milliseconds that a session waits, before it goes, for its client's latest stanzas to be settled.
 */
export const COVER_MS = 250;
/**
 * Milliseconds between checks whether the session table names the new place, and the limit of all.
 */
export const KNOWN_CHECK_MS = 100;
export const KNOWN_MS = 5_000;
/** Milliseconds for which it then stays reachable, for nodes that learn of the new place later. */
export const GRACE_MS = 250;
/**
 * Milliseconds that stanzas sent straight to a session wait at most for those that follow from its
 * old node, until that node is no longer reachable for it.
 */
export const FOLLOW_MS = 2_000;
/** Milliseconds between checks of unreachable nodes. */
export const PEER_CHECK_MS = 1_000;
/** Milliseconds after which an unreachable node that listens nowhere is taken for gone. */
export const NOWHERE_MS = 3_000;
/** Milliseconds in which news of settled stanzas is gathered. */
export const SETTLED_MS = 100;
/** Bytes of one QUEUE frame, unless a single stanza has more. */
export const QUEUE_BYTES = 65_536;
/** Bytes of the queue on their way at once. */
export const WINDOW_BYTES = 262_144;
/** Details that a session may bring besides its queue. */
export const MAX_DETAILS_IN_ALL = 16_384;
/** Senders whose delivered numbers move with a session. */
export const MAX_SENDERS = 2_048;
