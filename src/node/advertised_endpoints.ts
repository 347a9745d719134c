import type { GlobalDistribConfig } from "../config/mod.ts";
import type { EndpointAddress } from "../distribution/links/mod.ts";

const EVERY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/**
 * Returns the endpoints that this node advertises: `advertised_endpoints`, or else the addresses it
 * listens on, with their ports as bound. Nobody can connect to `0.0.0.0` or `::`, so the local
 * host's name replaces them.
 */
export function advertisedEndpoints(
  { localHost, connections }: GlobalDistribConfig,
  bound: readonly EndpointAddress[],
): readonly EndpointAddress[] {
  return connections.advertisedEndpoints ??
    bound.map(({ host, port }) => ({ host: EVERY_ADDRESS.has(host) ? localHost : host, port }));
}
