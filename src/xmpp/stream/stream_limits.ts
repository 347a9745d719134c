import type { IntegerOption } from "../../base/mod.ts";
import { resolveIntegers } from "../../base/mod.ts";
import { MAX_READABLE_DEPTH } from "../xml/scanner_limits.ts";
import type { ScannerLimits } from "../xml/scanner_types.ts";

/** Bounds on one stream of a client or component. */
export interface StreamLimits {
  /** Bytes of one stanza or stream header; 10 000 (RFC 6120 §13.12) to 16 777 216. @default 262144 */
  readonly maxStanzaBytes?: number;
  /** Depth of nesting below the stream; 8 to 250. @default 64 */
  readonly maxDepth?: number;
  /** Attributes on one element; 16 to 1 000. @default 64 */
  readonly maxAttributes?: number;
  /** Milliseconds from the connection to the bound resource or handshake; 100 to 3 600 000. @default 30000 */
  readonly negotiationTimeoutMs?: number;
  /** Bytes that a peer may send before it is authenticated; 1 024 to 16 777 216. @default 32768 */
  readonly maxUnauthenticatedBytes?: number;
  /**
   * Bytes taken from a peer after we ended its stream, because it wrote them before it learned of that;
   * 0 to 1 073 741 824. @default 4194304
   */
  readonly maxLateBytes?: number;
  /** Failed attempts to authenticate on one stream before it ends; 1 to 100. @default 3 */
  readonly maxAuthFailures?: number;
  /**
   * Bytes that may wait for a peer that reads slowly; one more stanza is refused with
   * `resource-constraint`. 16 384 to 1 073 741 824. @default 1048576
   */
  readonly maxPendingBytes?: number;
  /**
   * Extra bytes that may wait for owed errors, which the peer must get even when it reads slowly. 0 to 1
   * 073 741 824. @default 67108864
   */
  readonly maxOwedBytes?: number;
  /**
   * Milliseconds after which a peer is cut off when stanzas for it were refused and it has not read half
   * of `maxPendingBytes`. A peer that reads nothing while over half of that waits has twice as long. 10
   * to 3 600 000. @default 30000
   */
  readonly slowReaderMs?: number;
  /** Milliseconds of silence after which whitespace is sent; 100 to 86 400 000. @default 150000 */
  readonly keepaliveIntervalMs?: number;
}

/** All limits, resolved. */
export type ResolvedStreamLimits = Required<StreamLimits>;

/** Defaults and ranges of every limit, for checks of a configuration. */
export const STREAM_LIMIT_RANGES = {
  maxStanzaBytes: { byDefault: 262_144, min: 10_000, max: 16_777_216 },
  maxDepth: { byDefault: 64, min: 8, max: MAX_READABLE_DEPTH },
  maxAttributes: { byDefault: 64, min: 16, max: 1_000 },
  negotiationTimeoutMs: { byDefault: 30_000, min: 100, max: 3_600_000 },
  maxUnauthenticatedBytes: { byDefault: 32_768, min: 1_024, max: 16_777_216 },
  maxLateBytes: { byDefault: 4_194_304, min: 0, max: 1_073_741_824 },
  maxAuthFailures: { byDefault: 3, min: 1, max: 100 },
  maxPendingBytes: { byDefault: 1_048_576, min: 16_384, max: 1_073_741_824 },
  maxOwedBytes: { byDefault: 67_108_864, min: 0, max: 1_073_741_824 },
  slowReaderMs: { byDefault: 30_000, min: 10, max: 3_600_000 },
  keepaliveIntervalMs: { byDefault: 150_000, min: 100, max: 86_400_000 },
} satisfies Record<keyof StreamLimits, IntegerOption>;

/**
 * Fills in defaults.
 * @throws RangeError for a value that is not an integer in its range
 */
export function resolveStreamLimits(limits: StreamLimits = {}): ResolvedStreamLimits {
  return resolveIntegers(STREAM_LIMIT_RANGES, limits);
}

/** Returns the limits that the scanner keeps. */
export function scannerLimits(limits: ResolvedStreamLimits): ScannerLimits {
  return {
    maxStanzaBytes: limits.maxStanzaBytes,
    maxDepth: limits.maxDepth,
    maxAttributes: limits.maxAttributes,
  };
}
