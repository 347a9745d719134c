export { HeardLog } from "./heard_log.ts";
export type { LogEntry, LogFields, Logger } from "./log.ts";
export { MemoryLogger, SILENT_LOGGER } from "./log.ts";
export type {
  Counter,
  Gauge,
  Histogram,
  MetricDeclaration,
  MetricLabels,
  Metrics,
} from "./metrics.ts";
export type { LogFormat, LoggerOptions, LogLevel } from "./create_logger.ts";
export { createLogger } from "./create_logger.ts";
export type { HistogramSummary } from "./metric_cells.ts";
export type { Attributes, AttributeValue, FinishedSpan, SpanEvent } from "./otlp/finished_span.ts";
export type { ShownAddress } from "./otlp/shown_address.ts";
export type { Signal } from "./otlp/signal.ts";
export type { TelemetryOptions } from "./otlp/telemetry.ts";
export { Telemetry } from "./otlp/telemetry.ts";
export type { ClassicCounter, ClassicGauge, ClassicMetric } from "./metrics_registry.ts";
export { MetricsRegistry } from "./metrics_registry.ts";
export { LIFE_LINES, PacedLog } from "./paced_log.ts";
export { registerProcessMetrics } from "./process_metrics.ts";
export { redactFields } from "./redact.ts";
