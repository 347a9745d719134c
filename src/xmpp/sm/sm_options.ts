import type { IntegerOption } from "../../base/mod.ts";
import { resolveIntegers } from "../../base/mod.ts";

/** Stream management (XEP-0198); durations in milliseconds. */
export interface StreamManagementOptions {
  /** Unacknowledged stanzas that a session may keep; 1 to 1 000 000. @default 5000 */
  readonly maxItems?: number;
  /** Cost of those stanzas, in bytes; 16 384 to 1 073 741 824. @default 8388608 */
  readonly maxBytes?: number;
  /**
   * Unacknowledged stanzas that the sending nodes also keep, in case this node dies; 0 to 1 000 000.
   * @default 256
   */
  readonly maxUnsettled?: number;
  /**
   * Bytes that owed errors may cost, besides everything else that the session keeps; 0 to 1 073 741 824.
   * @default 67108864
   */
  readonly maxOwedBytes?: number;
  /** Stanzas after which an acknowledgement is requested; 1 to 1 000 000. @default 10 */
  readonly ackFreq?: number;
  /**
   * Milliseconds after a stanza by which an acknowledgement is requested; 10 to 3 600 000. @default 1000
   */
  readonly ackDelayMs?: number;
  /**
   * Milliseconds after which a connection with an outstanding acknowledgement is cut. Time in which the
   * client is not read does not count. 100 to 86 400 000. @default 60000
   */
  readonly ackTimeoutMs?: number;
  /** Milliseconds in which a lost stream can be resumed; 0 (never) to 86 400 000. @default 600000 */
  readonly resumeTimeoutMs?: number;
  /**
   * Milliseconds in which a client that resumes at another node gets its session, or a failure; 100 to
   * 60 000. @default 5000
   */
  readonly resumeElsewhereTimeoutMs?: number;
  /** Milliseconds for which a stanza with an open fate may hold `h` back; 0 to 3 600 000. @default 5000 */
  readonly ackHoldMs?: number;
  /**
   * Milliseconds for which the end of a stream waits until another node holds what its client has sent.
   * The client does not come back to this stream, and would resend everything that `h` does not cover. 0
   * to 60 000. @default 500
   */
  readonly endHoldMs?: number;
  /**
   * Milliseconds for which the `h` of an ended stream is reported; 0 (never) to 86 400 000. @default
   * 3600000
   */
  readonly staleHMs?: number;
  /** Number of ended streams whose `h` is remembered; 1 to 10 000 000. @default 100000 */
  readonly maxStaleH?: number;
  /**
   * Milliseconds between checks whether a hibernating session has moved elsewhere; 100 to 3 600 000.
   * @default 5000
   */
  readonly movedCheckMs?: number;
  /**
   * Streams of its recipient that a stanza may end before its sender gets an error instead; 0 (no limit)
   * to 1 000. @default 3
   */
  readonly maxStreamEnds?: number;
  /**
   * Milliseconds after a stanza in which an end by the client counts against that stanza, if the client
   * gives no reason; 0 (never) to 60 000. @default 2000
   */
  readonly suspectWithinMs?: number;
}

/** All options, resolved. */
export type ResolvedStreamManagement = Required<StreamManagementOptions>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Defaults and ranges, for checks of a configuration. */
export const STREAM_MANAGEMENT_RANGES = {
  maxItems: { byDefault: 5_000, min: 1, max: 1_000_000 },
  maxBytes: { byDefault: 8_388_608, min: 16_384, max: 1_073_741_824 },
  maxUnsettled: { byDefault: 256, min: 0, max: 1_000_000 },
  maxOwedBytes: { byDefault: 67_108_864, min: 0, max: 1_073_741_824 },
  ackFreq: { byDefault: 10, min: 1, max: 1_000_000 },
  ackDelayMs: { byDefault: 1_000, min: 10, max: HOUR_MS },
  ackTimeoutMs: { byDefault: 60_000, min: 100, max: DAY_MS },
  resumeTimeoutMs: { byDefault: 600_000, min: 0, max: DAY_MS },
  resumeElsewhereTimeoutMs: { byDefault: 5_000, min: 100, max: 60_000 },
  ackHoldMs: { byDefault: 5_000, min: 0, max: HOUR_MS },
  endHoldMs: { byDefault: 500, min: 0, max: 60_000 },
  staleHMs: { byDefault: HOUR_MS, min: 0, max: DAY_MS },
  maxStaleH: { byDefault: 100_000, min: 1, max: 10_000_000 },
  movedCheckMs: { byDefault: 5_000, min: 100, max: HOUR_MS },
  maxStreamEnds: { byDefault: 3, min: 0, max: 1_000 },
  suspectWithinMs: { byDefault: 2_000, min: 0, max: 60_000 },
} satisfies Record<keyof StreamManagementOptions, IntegerOption>;

/**
 * Fills in defaults.
 * @throws RangeError for a value that is not an integer in its range
 */
export function resolveStreamManagement(
  options: StreamManagementOptions = {},
): ResolvedStreamManagement {
  return resolveIntegers(STREAM_MANAGEMENT_RANGES, options);
}
