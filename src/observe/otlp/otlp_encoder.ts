import { SeverityNumber, ValueType } from "@opentelemetry/api";
import type { HrTime } from "@opentelemetry/api";
import {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { Resource } from "@opentelemetry/resources";
import type { ReadableLogRecord } from "@opentelemetry/sdk-logs";
import { AggregationTemporality, DataPointType } from "@opentelemetry/sdk-metrics";
import type { MetricData } from "@opentelemetry/sdk-metrics";
import type { LogEntry } from "../log.ts";
import type { MetricPoint, MetricReading } from "../metrics_registry.ts";
import { redactFields } from "../redact.ts";
import type { FinishedSpan } from "./finished_span.ts";
import type { Signal } from "./signal.ts";
import { SpanEncoder } from "./span_encoder.ts";

/** An event of the log, and when it was logged. */
export interface TimedEntry {
  readonly entry: LogEntry;
  /** Wall-clock microseconds. */
  readonly atUs: number;
}

/** Time of a reading of the metrics, and since when counters count; wall-clock microseconds. */
export interface ReadingTimes {
  readonly startUs: number;
  readonly atUs: number;
}

type Encoded = Uint8Array<ArrayBuffer>;

const SEVERITY = {
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const satisfies Record<LogEntry["level"], SeverityNumber>;

const DATA_POINTS = {
  counter: DataPointType.SUM,
  gauge: DataPointType.GAUGE,
  histogram: DataPointType.HISTOGRAM,
} as const satisfies Record<MetricReading["kind"], DataPointType>;

/** Reads from an answer how many items the collector rejected. */
const REJECTED: Readonly<Record<Signal, (answer: Uint8Array) => number | undefined>> = {
  traces: (answer) =>
    ProtobufTraceSerializer.deserializeResponse(answer).partialSuccess?.rejectedSpans,
  metrics: (answer) =>
    ProtobufMetricsSerializer.deserializeResponse(answer).partialSuccess?.rejectedDataPoints,
  logs: (answer) =>
    ProtobufLogsSerializer.deserializeResponse(answer).partialSuccess?.rejectedLogRecords,
};

/**
 * Encodes what one process tells the collector, as OTLP requests: spans by code of its own, as there are
 * many, and all else by OpenTelemetry's library.
 * Metrics keep the names that they have at `/metrics`.
 */
export class OtlpEncoder {
  readonly #resource: Resource;
  readonly #scope: { readonly name: string; readonly version: string };
  readonly #spans: SpanEncoder;

  /** @param resource attributes of the process */
  constructor(resource: Readonly<Record<string, string>>, version: string) {
    this.#resource = resourceFromAttributes({ ...resource });
    this.#scope = { name: "causeway", version };
    this.#spans = new SpanEncoder(resource, this.#scope);
  }

  spans(spans: readonly FinishedSpan[]): Encoded {
    return this.#spans.encode(spans);
  }

  /** Encodes events of the log, with the secrets among their fields hidden. */
  logs(entries: readonly TimedEntry[]): Encoded {
    return bytesOf(ProtobufLogsSerializer.serializeRequest(entries.map((each) => this.#log(each))));
  }

  metrics(readings: readonly MetricReading[], times: ReadingTimes): Encoded {
    return bytesOf(ProtobufMetricsSerializer.serializeRequest({
      resource: this.#resource,
      scopeMetrics: [{
        scope: this.#scope,
        metrics: readings.filter(({ points }) => points.length > 0)
          .map((reading) => metricOf(reading, times)),
      }],
    }));
  }

  /** Returns how many items the collector rejected. An answer that cannot be read says nothing of them. */
  rejected(signal: Signal, answer: Uint8Array): number {
    try {
      return Math.max(0, REJECTED[signal](answer) ?? 0);
    } catch {
      return 0; // some collectors answer with text or nothing
    }
  }

  #log({ entry: { level, event, fields }, atUs }: TimedEntry): ReadableLogRecord {
    return {
      hrTime: hrTime(atUs),
      hrTimeObserved: hrTime(atUs),
      severityNumber: SEVERITY[level],
      severityText: level.toUpperCase(),
      eventName: event,
      body: event,
      // Values are what JSON can express, which is what OTLP can.
      attributes: redactFields(fields) as ReadableLogRecord["attributes"],
      resource: this.#resource,
      instrumentationScope: this.#scope,
      droppedAttributesCount: 0,
    };
  }
}

function metricOf({ name, help, kind, points }: MetricReading, times: ReadingTimes): MetricData {
  const [startTime, endTime] = [hrTime(times.startUs), hrTime(times.atUs)];
  // The kind of the metric decides which points it has.
  return {
    descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DATA_POINTS[kind],
    ...kind === "counter" && { isMonotonic: true },
    dataPoints: points.map((point) => ({
      startTime,
      endTime,
      attributes: { ...point.labels },
      value: valueOf(point),
    })),
  } as MetricData;
}

function valueOf(point: MetricPoint) {
  if ("value" in point) return point.value;
  const { count, sum, bounds, buckets } = point;
  return { count, sum, buckets: { boundaries: [...bounds], counts: [...buckets] } };
}

/** Returns the UCUM unit that a Prometheus name says. */
function unitOf(name: string): string {
  const [, unit] = /_(seconds|bytes)(?:_total)?$/.exec(name) ?? [];
  return unit === "seconds" ? "s" : unit === "bytes" ? "By" : "";
}

function hrTime(us: number): HrTime {
  const seconds = Math.floor(us / 1_000_000);
  return [seconds, Math.round(us - seconds * 1_000_000) * 1_000];
}

function bytesOf(encoded: Uint8Array | undefined): Encoded {
  if (encoded === undefined) throw new TypeError("Cannot encode for the collector: no bytes");
  return encoded as Encoded; // the library makes it on memory of its own
}
