import type { Config } from "../config/mod.ts";
import { Tracing } from "../distribution/tracing/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Makes the part that follows stanzas for operators. */
export function makeTracing(
  config: Config,
  { metrics, log, clock }: Pick<Surroundings, "metrics" | "log" | "clock">,
): Tracing {
  const { globalHost, localHost } = config.globalDistrib;
  const { nodeName, observe: { trace } } = config;
  return new Tracing(
    { forOthers: trace.fromOtherDatacenters },
    { nodeName, localHost, globalHost, metrics, log, clock },
  );
}
