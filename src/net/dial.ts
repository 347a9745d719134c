import type { Socket } from "node:net";
import { connect as connectPlain } from "node:net";
import type { SecureContext } from "node:tls";
import { connect as connectTls, createSecureContext } from "node:tls";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { formatAddress } from "./address.ts";
import { certificateNames } from "./certificate_names.ts";
import type { Connection } from "./connection.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { resolveConnectionLimits } from "./connection_limits.ts";
import { toNetError } from "./net_error.ts";
import { SocketConnection } from "./socket_connection.ts";
import type { TlsContext } from "./tls_context.ts";
import type { TlsContextHolder } from "./tls_context_holder.ts";

/** Target of an outgoing connection, its TLS and its time limit. */
export interface DialOptions {
  readonly host: string;
  readonly port: number;
  /**
   * Enables TLS 1.3: we present our certificate and verify the peer's against the context's authorities.
   * Plain TCP without it.
   */
  readonly tls?: TlsContextHolder;
  /**
   * DNS name that the peer's certificate must carry, and that is sent as SNI. Without it any name under
   * the authorities is accepted, and the caller checks `peerNames`.
   */
  readonly servername?: string;
  /** Milliseconds until the connection, handshake included, must be established. @default 10_000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly limits?: ConnectionLimits;
  /** @default the system's */
  readonly clock?: Clock;
}

/** Default time limit; links pass `limits.link_handshake_timeout` instead. */
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Connects. With TLS 1.3 the peer may still refuse our certificate after this resolves; the
 * connection then closes with `net/tls-untrusted` or `net/tls-failed`.
 * @throws {CausewayError} `net/refused`, `net/timeout`, `net/unreachable`, `net/name-not-found`,
 *   `net/tls-untrusted`, `net/tls-name-mismatch`, `net/tls-failed`, `net/aborted`, `net/reset`
 */
export function dial(options: DialOptions): Promise<Connection> {
  const { host, port, signal } = options;
  const limits = resolveConnectionLimits(options.limits);
  const clock = options.clock ?? new SystemClock();
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const what = `Cannot connect to ${formatAddress(host, port)}`;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(aborted(what));
      return;
    }
    const carrier = connectPlain({ host, port, noDelay: true, allowHalfOpen: true });
    let socket = carrier;
    const fail = (error: CausewayError) => {
      settle();
      socket.destroy();
      carrier.destroy();
      reject(error);
    };
    const onAbort = () => fail(aborted(what));
    const cancelTimer = clock.after(timeoutMs, () => {
      fail(
        new CausewayError("net/timeout", `${what}: the limit is ${timeoutMs} ms`, {
          retryable: true,
        }),
      );
    });
    const settle = () => {
      cancelTimer();
      signal?.removeEventListener("abort", onAbort);
    };
    signal?.addEventListener("abort", onAbort);
    const succeed = () => {
      settle();
      const isSecure = socket !== carrier;
      resolve(new SocketConnection(socket, { limits, clock, ...(isSecure ? { carrier } : {}) }));
    };
    // These listeners stay for the sockets' life, so that an error after the end never becomes uncaught.
    const onError = (error: Error) => fail(toNetError(what, error));
    const onClose = () => {
      fail(
        new CausewayError("net/reset", `${what}: the peer closed the connection`, {
          retryable: true,
        }),
      );
    };
    carrier.on("error", onError);
    carrier.once("close", onClose);
    carrier.once("connect", () => {
      const { tls } = options;
      if (tls === undefined) return succeed();
      // Not before: where nobody listens, preparing TLS costs ten times as much as the attempt.
      socket = secure(carrier, { tls: tls.current, servername: options.servername });
      socket.on("error", onError);
      socket.once("close", onClose);
      socket.once("secureConnect", succeed);
    });
  });
}

/** Contexts for dialling: reading a private key costs milliseconds, so each is read once. */
const CONTEXTS = new WeakMap<TlsContext, SecureContext>();

function contextOf(tls: TlsContext): SecureContext {
  let context = CONTEXTS.get(tls);
  if (context === undefined) {
    context = createSecureContext({ ...tls.secure, minVersion: "TLSv1.3" });
    CONTEXTS.set(tls, context);
  }
  return context;
}

function secure(
  carrier: Socket,
  { tls, servername }: { readonly tls: TlsContext; readonly servername: string | undefined },
): Socket {
  return connectTls({
    socket: carrier,
    secureContext: contextOf(tls),
    minVersion: "TLSv1.3",
    ...(servername === undefined ? {} : { servername }),
    // Without an expected name, the caller judges identity by `peerNames`.
    checkServerIdentity: (_host, { raw }) =>
      servername === undefined || certificateNames(raw).includes(servername)
        ? undefined
        : new CausewayError("net/tls-name-mismatch", `The certificate does not name ${servername}`),
  });
}

function aborted(what: string): CausewayError {
  return new CausewayError("net/aborted", `${what}: the caller aborted it`);
}
