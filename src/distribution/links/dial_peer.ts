import type { Connection } from "../../net/mod.ts";
import { dial } from "../../net/mod.ts";
import type { LinkShared } from "./link_shared.ts";
import type { EndpointAddress } from "./ports.ts";

/** Connects to where a peer accepts links; gives up after the time that a HELLO may take. */
export function dialPeer(
  { host, port }: EndpointAddress,
  { shared, signal }: { readonly shared: LinkShared; readonly signal: AbortSignal },
): Promise<Connection> {
  const { tls, options, clock } = shared;
  return dial({
    host,
    port,
    ...(tls === undefined ? {} : { tls }),
    timeoutMs: options.helloTimeoutMs,
    signal,
    clock,
  });
}
