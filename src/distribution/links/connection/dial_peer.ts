import type { Connection } from "../../../net/mod.ts";
import { dial } from "../../../net/mod.ts";
import type { LinkDeps } from "./link_deps.ts";
import type { EndpointAddress } from "../ports.ts";

/**
 * Connects to a peer's endpoint, within the time that a HELLO may take. With TLS the peer's
 * certificate comes from one of our authorities, but may carry any name: the caller checks the
 * name.
 * @throws CausewayError as `dial` of `net/` does
 */
export function dialPeer(
  { host, port }: EndpointAddress,
  { shared, signal }: {
    readonly shared: Pick<LinkDeps, "tls" | "options" | "clock">;
    readonly signal: AbortSignal;
  },
): Promise<Connection> {
  const { tls, options, clock } = shared;
  return dial({
    host,
    port,
    ...(tls === undefined ? {} : { tls }),
    timeoutMs: options.helloTimeoutMs,
    limits: { maxPendingBytes: options.maxPendingBytes },
    signal,
    clock,
  });
}
