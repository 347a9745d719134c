import type { Config } from "../config/mod.ts";
import { VERSION } from "../config/mod.ts";
import { Telemetry } from "../observe/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Makes the part that tells a collector of this node; undefined when none is configured. */
export function makeTelemetry(
  config: Config,
  { metrics, log, clock }: Pick<Surroundings, "metrics" | "log" | "clock">,
): Telemetry | undefined {
  const { nodeName, globalDistrib, observe: { otlp }, log: { level } } = config;
  if (otlp === undefined) return undefined;
  const headers = [...otlp.headers].map(([name, secret]) => [name, secret.reveal()]);
  return new Telemetry({
    ...otlp,
    headers: Object.fromEntries(headers),
    ca: otlp.cafile === undefined ? undefined : Deno.readTextFileSync(otlp.cafile),
    signals: new Set(otlp.signals),
    resource: {
      "service.name": "causeway",
      "service.version": VERSION,
      "service.instance.id": nodeName,
      "causeway.datacenter": globalDistrib.localHost,
      ...otlp.resource,
    },
    version: VERSION,
    logLevel: level,
  }, { metrics, log, clock });
}
