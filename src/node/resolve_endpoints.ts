import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { CausewayError, describeError } from "../base/mod.ts";
import type { EndpointAddress } from "../distribution/links/mod.ts";

/**
 * Resolves host names to addresses, once: the node listens on the result and shares it
 * (docs/configuration.md).
 * @throws CausewayError `node/endpoint-unresolved`
 */
export async function resolveEndpoints(
  endpoints: readonly EndpointAddress[],
): Promise<readonly EndpointAddress[]> {
  return await Promise.all(endpoints.map(async ({ host, port }) => {
    if (isIP(host) !== 0) return { host, port };
    try {
      const { address } = await lookup(host);
      return { host: address, port };
    } catch (thrown) {
      throw new CausewayError(
        "node/endpoint-unresolved",
        `Cannot resolve endpoint ${host}:${port}: ${describeError(thrown)}`,
        { cause: thrown, retryable: true },
      );
    }
  }));
}
