import type { Config } from "../config/mod.ts";
import type { Domains } from "../distribution/routing/mod.ts";
import { Tracing } from "../distribution/tracing/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Makes the part that follows stanzas for operators. */
export function makeTracing(
  config: Config,
  { domains, metrics, log, clock }: Pick<Surroundings, "metrics" | "log" | "clock"> & {
    readonly domains: Domains;
  },
): Tracing {
  const { globalHost, localHost, hosts } = domains;
  const { nodeName, observe: { trace } } = config;
  return new Tracing(
    { forOthers: trace.fromOtherDatacenters },
    {
      nodeName,
      localHost,
      globalHost,
      hosts,
      isOtherLocalHost: (domain) => domains.isOtherLocalHost(domain),
      metrics,
      log,
      clock,
    },
  );
}
