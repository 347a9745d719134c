import type { Config } from "../config/mod.ts";
import type { Envelope, StanzaTracer } from "../distribution/mod.ts";
import type { Domains } from "../distribution/routing/mod.ts";
import { StanzaSpans, Tracers, Tracing } from "../distribution/tracing/mod.ts";
import type { Telemetry } from "../observe/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that follow stanzas. */
export interface NodeTracing {
  /** Traces for operators. */
  readonly tracing: Tracing;
  /** Distributed traces; undefined where no collector is told of them. */
  readonly spans: StanzaSpans | undefined;
  /** Both of them. */
  readonly tracer: StanzaTracer;
}

/** Makes the parts that follow stanzas. Where there are no distributed traces, they cost nothing. */
export function makeTracing(
  config: Config,
  { domains, telemetry, metrics, log, clock }:
    & Pick<Surroundings, "metrics" | "log" | "clock">
    & { readonly domains: Domains; readonly telemetry: Telemetry | undefined },
): NodeTracing {
  const { globalHost, localHost, hosts } = domains;
  const { nodeName, observe: { trace, otlp } } = config;
  let tracers: Tracers | undefined = undefined;
  const changed = () => tracers?.update();
  const tracing = new Tracing(
    { forOthers: trace.fromOtherDatacenters },
    {
      nodeName,
      localHost,
      globalHost,
      hosts,
      isOtherLocalHost: (domain) => domains.isOtherLocalHost(domain),
      metrics,
      changed,
      log,
      clock,
    },
  );
  if (telemetry === undefined || otlp?.signals.includes("traces") !== true) {
    return { tracing, spans: undefined, tracer: tracing };
  }
  const { sampleRatio, addresses } = otlp;
  const spans = new StanzaSpans({ sampleRatio, addresses }, {
    localHost,
    metrics,
    finished: (span) => telemetry.span(span),
    changed,
    clock,
  });
  tracers = new Tracers(tracing, spans);
  return { tracing, spans, tracer: tracers };
}

/** Notes that a stanza of another datacenter was refused before it was routed. */
export function noteRefused(
  tracer: StanzaTracer,
  envelope: Envelope,
  place: string,
  reason: string,
): void {
  if (!tracer.isOn) return;
  envelope.arrived("link", place);
  tracer.follow(envelope)?.note("refused", { place, reason });
}
