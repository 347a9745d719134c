import { X509Certificate } from "node:crypto";
import { connect as connectPlain } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls, createSecureContext } from "node:tls";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { formatAddress } from "./address.ts";
import type { CertificateFacts } from "./certificate_facts.ts";
import { certificateFacts } from "./certificate_facts.ts";
import { toNetError } from "./net_error.ts";
import type { TlsContext } from "./tls_context.ts";

/** Answer of an address to a connection that carries nothing. */
export type ProbeResult =
  /** No connection: `code` is one of `dial`'s. */
  | { readonly kind: "unreachable"; readonly code: string; readonly problem: string }
  /** It took the connection, but the TLS handshake failed before a certificate came. */
  | { readonly kind: "no-tls"; readonly problem: string }
  /** It took a connection without TLS, which is all that was asked. */
  | { readonly kind: "plain"; readonly tookMs: number }
  | {
    readonly kind: "secure";
    readonly tookMs: number;
    readonly certificate: CertificateFacts;
    /** Reason why its certificate is not trusted, such as `CERT_HAS_EXPIRED`. */
    readonly distrust: string | undefined;
    /** True when it ended the connection at once: it does not accept our certificate. */
    readonly hungUp: boolean;
  };

/** Target of a probe. */
export interface ProbeOptions {
  readonly host: string;
  readonly port: number;
  /** Our certificate, and the authorities of the peer's. Undefined: plain TCP. */
  readonly tls: TlsContext | undefined;
  /** Milliseconds until the handshake must be done. */
  readonly timeoutMs: number;
  /** @default the system's */
  readonly clock?: Clock;
}

/**
 * Least time that a peer has for refusing our certificate. With TLS 1.3 the refusal comes one round
 * trip after the end of our handshake.
 */
const VERDICT_MS = 250;

/**
 * Connects to see what is there, writes nothing, and hangs up. A certificate that cannot be trusted
 * is reported instead of ending the attempt. Never rejects.
 */
export function probeTls(options: ProbeOptions): Promise<ProbeResult> {
  const { host, port, tls, timeoutMs } = options;
  const clock = options.clock ?? new SystemClock();
  const what = `Cannot connect to ${formatAddress(host, port)}`;
  const { promise, resolve } = Promise.withResolvers<ProbeResult>();
  const startedMs = clock.monotonicMs();
  const carrier = connectPlain({ host, port, noDelay: true });
  let socket: Socket = carrier;
  let isConnected = false;
  const settle = (result: ProbeResult) => {
    cancel();
    socket.destroy();
    carrier.destroy();
    resolve(result);
  };
  const fail = (error: CausewayError) => {
    settle(
      isConnected
        ? { kind: "no-tls", problem: error.message }
        : { kind: "unreachable", code: error.code, problem: error.message },
    );
  };
  let cancel = clock.after(timeoutMs, () => {
    fail(new CausewayError("net/timeout", `${what}: the limit is ${timeoutMs} ms`));
  });
  const onError = (error: Error) => fail(toNetError(what, error));
  const onClose = () => {
    fail(new CausewayError("net/reset", `${what}: the peer closed the connection`));
  };
  carrier.on("error", onError);
  carrier.once("close", onClose);
  carrier.once("connect", () => {
    isConnected = true;
    if (tls === undefined) {
      settle({ kind: "plain", tookMs: clock.monotonicMs() - startedMs });
      return;
    }
    const secured = connectTls({
      socket: carrier,
      secureContext: createSecureContext({ ...tls.secure, minVersion: "TLSv1.3" }),
      minVersion: "TLSv1.3",
      // The certificate is judged here, so that a probe can say what is wrong with it.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    });
    socket = secured;
    secured.on("error", onError);
    secured.once("close", onClose);
    secured.once("secureConnect", () => {
      const tookMs = clock.monotonicMs() - startedMs;
      const { raw } = secured.getPeerCertificate();
      const certificate = certificateFacts(new X509Certificate(raw));
      const { authorized, authorizationError } = secured;
      const distrust = authorized ? undefined : String(authorizationError);
      const decide = (hungUp: boolean) =>
        settle({ kind: "secure", tookMs, certificate, distrust, hungUp });
      cancel();
      for (const event of ["error", "close"]) secured.removeAllListeners(event);
      carrier.removeAllListeners("close");
      secured.on("error", () => decide(true));
      secured.once("close", () => decide(true));
      carrier.once("close", () => decide(true));
      secured.on("data", () => {}); // else the end of the stream is never seen
      cancel = clock.after(Math.max(VERDICT_MS, 3 * tookMs), () => decide(false));
    });
  });
  return promise;
}
