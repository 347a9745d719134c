import type { Clock } from "../base/mod.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { resolveConnectionLimits } from "./connection_limits.ts";
import type { InTurn } from "./tls_acceptor.ts";
import type { TlsContextHolder } from "./tls_context_holder.ts";

/**
 * Encryption of a listener: `starttls` when the peer asks within the plain connection, `direct` from the
 * first byte, `mutual` also from the first byte, with TLS 1.3 and a certificate that the peer must
 * present.
 */
export interface ListenerTls {
  readonly mode: "starttls" | "direct" | "mutual";
  readonly context: TlsContextHolder;
  /**
   * Application protocols (ALPN, RFC 7301), of which a client that names any must name one. A client
   * that names none is accepted. @default every client is accepted, and no protocol is chosen
   */
  readonly alpnProtocols?: readonly string[];
}

/** Limits of a listener and of each of its connections. */
export interface ListenerLimits extends ConnectionLimits {
  /** Connections open at once; one more is refused. @default 10_000 */
  readonly maxConnections?: number;
  /** TLS handshakes under way at once in `direct` and `mutual`; one more ends the oldest. @default 256 */
  readonly maxHandshakes?: number;
  /**
   * Milliseconds between checks that the listener still accepts. A listener that stopped, for want of
   * file descriptors, is opened again. @default 10_000
   */
  readonly probeIntervalMs?: number;
}

/** Every limit of a listener and its connections. */
export type ResolvedListenerLimits = Readonly<Required<ListenerLimits>>;

/** Fills in the defaults. @throws RangeError for a value that is not an integer from 1 */
export function resolveListenerLimits(limits: ListenerLimits = {}): ResolvedListenerLimits {
  const {
    maxConnections = 10_000,
    maxHandshakes = 256,
    probeIntervalMs = 10_000,
    ...ofConnection
  } = limits;
  for (const [name, value] of Object.entries({ maxConnections, maxHandshakes, probeIntervalMs })) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new RangeError(`Cannot use listener limit ${name}: ${value} is not an integer from 1`);
  }
  return Object.freeze({
    ...resolveConnectionLimits(ofConnection),
    maxConnections,
    maxHandshakes,
    probeIntervalMs,
  });
}

/** Address, encryption and limits of a listener. */
export interface ListenOptions {
  /** Local address; `0.0.0.0` and `::` stand for all. */
  readonly host: string;
  /** 0 lets the system choose; `Listener.address` shows its choice. */
  readonly port: number;
  readonly tls?: ListenerTls;
  readonly limits?: ListenerLimits;
  /**
   * Called before each TLS handshake in `direct` and `mutual`, which costs us more than the peer; false
   * turns the peer away. @default every peer may
   */
  readonly mayHandshake?: (peer: HandshakePeer) => boolean;
  /** Begins each TLS handshake of a peer when there is time for it. @default at once */
  readonly inTurn?: InTurn;
  /** @default the system's */
  readonly clock?: Clock;
}

/** A peer that asks for a TLS handshake. */
export interface HandshakePeer {
  /** `192.0.2.1:40312` or `[2001:db8::1]:40312`. */
  readonly remoteAddress: string;
  readonly isLoopback: boolean;
}

/** A port that accepts connections. */
export interface Listener {
  /** Bound address, `127.0.0.1:40312` or `[::1]:40312`. */
  readonly address: string;
  readonly host: string;
  readonly port: number;
  /** Open connections, including those in their first handshake. */
  readonly connectionCount: number;
  /** Takes other limits for connections that it accepts from now on. */
  changeLimits(limits: ListenerLimits): void;
  /** Stops accepting and drops unfinished handshakes; accepted connections stay. */
  close(): Promise<void>;
}
