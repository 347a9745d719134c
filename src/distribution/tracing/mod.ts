export type { StanzaSpansDeps, StanzaSpansOptions } from "./stanza_spans.ts";
export { StanzaSpans } from "./stanza_spans.ts";
export { Tracers } from "./tracers.ts";
export type { NodeTracing, Trace, TracedNode, TraceListener, TracingDeps } from "./tracing.ts";
export { Tracing } from "./tracing.ts";
export type { TracingOptions } from "./tracing_options.ts";
export { resolveTracing } from "./tracing_options.ts";
export type { Step } from "./watch.ts";
