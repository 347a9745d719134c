import type { Connection } from "../../net/mod.ts";
import { dial } from "../../net/mod.ts";
import type { LinkShared } from "./link_shared.ts";
import type { EndpointAddress } from "./ports.ts";

/**
 * Connects to where a peer accepts links; gives up after the time that a HELLO may take. With TLS the
 * peer's certificate is one of our authorities', in whatever name: which it must be, the caller knows.
 * @throws CausewayError as `dial` of `net/` does
 */
export function dialPeer(
  { host, port }: EndpointAddress,
  { shared, signal }: {
    readonly shared: Pick<LinkShared, "tls" | "options" | "clock">;
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
