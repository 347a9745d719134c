/** Limits of one connection, whatever carries it. */
export interface ConnectionLimits {
  /** Bytes queued for sending above which `drained` will be called; at least 1. @default 262_144 */
  readonly highWaterBytes?: number;
  /**
   * Bytes queued for sending at which the connection is still kept. One more byte destroys it with
   * `net/peer-too-slow`. @default 16_777_216
   */
  readonly maxPendingBytes?: number;
  /**
   * Milliseconds that `close` waits for the system to take the queue and for the peer's own end, before
   * it cuts the connection. @default 5000
   */
  readonly lingerMs?: number;
  /** Milliseconds within which a TLS handshake must be complete. @default 10_000 */
  readonly handshakeTimeoutMs?: number;
  /** Milliseconds of silence before TCP probes whether the peer is still there. @default 60_000 */
  readonly keepAliveMs?: number;
}

const DEFAULTS: Required<ConnectionLimits> = {
  highWaterBytes: 262_144,
  maxPendingBytes: 16_777_216,
  lingerMs: 5000,
  handshakeTimeoutMs: 10_000,
  keepAliveMs: 60_000,
};

/** Fills in the defaults. */
export function resolveConnectionLimits(
  limits: ConnectionLimits = {},
): Readonly<Required<ConnectionLimits>> {
  const resolved = { ...DEFAULTS, ...limits };
  for (const [name, value] of Object.entries(resolved)) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RangeError(
        `Cannot use connection limit ${name}: ${value} is not an integer from 1`,
      );
    }
  }
  return Object.freeze(resolved);
}
