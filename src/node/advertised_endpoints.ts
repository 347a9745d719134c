import type { GlobalDistribConfig } from "../config/mod.ts";
import type { EndpointAddress } from "../distribution/links/mod.ts";

const EVERY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/**
 * What this node tells others about where it accepts links: `advertised_endpoints`, or else what is
 * listened on, ports as bound. Nobody can connect to "every address": there the local host's
 * name stands in.
 */
export function advertisedEndpoints(
  { localHost, connections }: GlobalDistribConfig,
  bound: readonly EndpointAddress[],
): readonly EndpointAddress[] {
  return connections.advertisedEndpoints ??
    bound.map(({ host, port }) => ({ host: EVERY_ADDRESS.has(host) ? localHost : host, port }));
}
