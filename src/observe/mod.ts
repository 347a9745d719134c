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
