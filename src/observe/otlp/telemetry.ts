import { setImmediate } from "node:timers";
import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError, joinBytes } from "../../base/mod.ts";
import type { LogEntry, Logger } from "../log.ts";
import type { Counter } from "../metrics.ts";
import type { MetricsRegistry } from "../metrics_registry.ts";
import type { FinishedSpan } from "./finished_span.ts";
import { showAddresses } from "./shown_address.ts";
import type { ShownAddress } from "./shown_address.ts";
import type { OtlpEncoder, TimedEntry } from "./otlp_encoder.ts";
import { OtlpQueue } from "./otlp_queue.ts";
import type { BatchOutcome } from "./otlp_queue.ts";
import { OtlpSender } from "./otlp_sender.ts";
import type { OtlpTarget } from "./otlp_sender.ts";
import type { Signal } from "./signal.ts";

type Encoded = Uint8Array<ArrayBuffer>;
type Encode = (encoder: OtlpEncoder) => Encoded | Promise<Encoded>;

/** Fate of a request, and what its failure says. */
interface Posted {
  readonly outcome: BatchOutcome;
  readonly detail?: string;
}

/**
 * Items that are encoded in one turn of the event loop. Stanzas wait meanwhile, for half a millisecond or
 * one.
 */
const ENCODED_AT_ONCE = { spans: 128, logs: 64 } as const;

/** Collector, signals and bounds. */
export interface TelemetryOptions extends OtlpTarget {
  readonly signals: ReadonlySet<Signal>;
  /** Attributes of the process. */
  readonly resource: Readonly<Record<string, string>>;
  readonly version: string;
  /** Spans, and events of the log, that wait at most. */
  readonly maxQueued: number;
  /** Milliseconds that a span or an event of the log waits for others. */
  readonly batchIntervalMs: number;
  readonly metricsIntervalMs: number;
  /** Least severe level of the log that is told. */
  readonly logLevel: LogEntry["level"];
  /** Part of people's addresses that events of the log show. */
  readonly addresses: ShownAddress;
}

const LEVELS: readonly LogEntry["level"][] = ["debug", "info", "warn", "error"];

/**
 * Tells an OpenTelemetry collector of spans, metrics and events of the log (OTLP over HTTP). Nothing
 * waits for the collector: what it does not take in time is dropped and counted.
 */
export class Telemetry {
  readonly #options: TelemetryOptions;
  readonly #registry: MetricsRegistry;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #sender: OtlpSender;
  readonly #encoder: Promise<OtlpEncoder>;
  readonly #spans: OtlpQueue<FinishedSpan>;
  readonly #logs: OtlpQueue<TimedEntry>;
  readonly #startUs: number;
  readonly #failing = new Set<Signal>();
  readonly #sent: Readonly<Record<Signal, Counter>>;
  readonly #dropped: Readonly<Record<Signal, Counter>>;
  #cancelMetrics: CancelTimer | undefined;
  #reporting: Promise<void> | undefined;
  #logLevel: LogEntry["level"];
  #isClosed = false;

  constructor(
    options: TelemetryOptions,
    { metrics, log, clock }: {
      readonly metrics: MetricsRegistry;
      readonly log: Logger;
      readonly clock: Clock;
    },
  ) {
    this.#options = options;
    this.#logLevel = options.logLevel;
    this.#registry = metrics;
    this.#log = log;
    this.#clock = clock;
    this.#startUs = clock.wallUs();
    this.#sender = new OtlpSender(options);
    this.#encoder = loadEncoder(options);
    const each = (name: string, help: string) => {
      const counterOf = (signal: Signal) => metrics.counter({ name, help, labels: { signal } });
      return {
        traces: counterOf("traces"),
        metrics: counterOf("metrics"),
        logs: counterOf("logs"),
      };
    };
    this.#sent = each(
      "causeway_telemetry_sent_total",
      "Spans, metrics and log events that the collector has taken",
    );
    this.#dropped = each(
      "causeway_telemetry_dropped_total",
      "Spans, metrics and log events that were dropped: too many waited, or the collector refused them",
    );
    const bounds = { maxItems: options.maxQueued, intervalMs: options.batchIntervalMs, clock };
    this.#spans = new OtlpQueue({
      ...bounds,
      sent: this.#sent.traces,
      dropped: this.#dropped.traces,
      send: (batch) => {
        return this.#send(
          "traces",
          (encoder) => encodeInTurns(batch, ENCODED_AT_ONCE.spans, (spans) => encoder.spans(spans)),
        );
      },
    });
    this.#logs = new OtlpQueue({
      ...bounds,
      sent: this.#sent.logs,
      dropped: this.#dropped.logs,
      send: (batch) => {
        return this.#send(
          "logs",
          (encoder) => encodeInTurns(batch, ENCODED_AT_ONCE.logs, (events) => encoder.logs(events)),
        );
      },
    });
    for (const [signal, queue] of [["traces", this.#spans], ["logs", this.#logs]] as const) {
      metrics.gauge({
        name: "causeway_telemetry_waiting",
        help: "Spans and log events that wait for the collector",
        labels: { signal },
      }, () => queue.size);
    }
    if (options.signals.has("metrics")) this.#reportLater();
  }

  /** Reports other log events from now on: those of this level and above. */
  changeLogLevel(level: LogEntry["level"]): void {
    this.#logLevel = level;
  }

  span(span: FinishedSpan): void {
    if (this.#options.signals.has("traces")) this.#spans.add(span);
  }

  event(entry: LogEntry): void {
    const { signals, addresses } = this.#options;
    if (!signals.has("logs")) return;
    if (LEVELS.indexOf(entry.level) < LEVELS.indexOf(this.#logLevel)) return;
    const fields = showAddresses(entry, addresses);
    this.#logs.add({ entry: { ...entry, fields }, atUs: this.#clock.wallUs() });
  }

  /** Tries once more to send what waits, and the metrics, within `withinMs`; the rest is dropped. */
  async close(withinMs: number): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelMetrics?.();
    const cancel = this.#clock.after(withinMs, () => this.#sender.close());
    const last = this.#options.signals.has("metrics")
      ? (this.#reporting ?? Promise.resolve()).then(() => this.#report())
      : undefined;
    await Promise.all([this.#spans.close(), this.#logs.close(), last]);
    cancel();
    this.#sender.close();
  }

  #reportLater(): void {
    this.#cancelMetrics = this.#clock.after(this.#options.metricsIntervalMs, () => {
      this.#reporting = this.#report().finally(() => {
        if (!this.#isClosed) this.#reportLater();
      });
    });
  }

  /** Sends all metrics as they are now. The next report covers one that is lost. */
  async #report(): Promise<void> {
    let count = 0;
    const outcome = await this.#send("metrics", (encoder) => {
      const readings = this.#registry.read();
      count = readings.length;
      return encoder.metrics(readings, {
        startUs: this.#startUs,
        atUs: this.#clock.wallUs(),
      });
    });
    (outcome.kind === "taken" ? this.#sent : this.#dropped).metrics.inc(count);
  }

  /** Sends what `encode` returns. A value that cannot be encoded counts as refused. */
  async #send(signal: Signal, encode: Encode): Promise<BatchOutcome> {
    const { outcome, detail } = await this.#post(signal, encode);
    if (outcome.kind === "taken") {
      if (this.#failing.delete(signal)) this.#log.info("telemetry.resumed", { signal });
    } else if (!this.#failing.has(signal) && !this.#isClosed) {
      this.#failing.add(signal); // first, as the event is one more item
      this.#log.warn("telemetry.failed", {
        signal,
        endpoint: this.#options.endpoint,
        outcome: outcome.kind,
        detail,
      });
    }
    return outcome;
  }

  async #post(signal: Signal, encode: Encode): Promise<Posted> {
    let encoder: OtlpEncoder;
    let body: Encoded;
    try {
      encoder = await this.#encoder;
      body = await encode(encoder);
    } catch (thrown) {
      return { outcome: { kind: "refused" }, detail: describeError(thrown) };
    }
    const delivery = await this.#sender.post(`/v1/${signal}`, body);
    if (delivery.kind !== "taken") {
      return { outcome: { kind: delivery.kind }, detail: delivery.detail };
    }
    return { outcome: { kind: "taken", rejected: encoder.rejected(signal, delivery.answer) } };
  }
}

/** OpenTelemetry's library is loaded only where a collector is told something: few nodes have one. */
async function loadEncoder({ resource, version }: TelemetryOptions): Promise<OtlpEncoder> {
  const { OtlpEncoder } = await import("./otlp_encoder.ts");
  return new OtlpEncoder(resource, version);
}

/**
 * Encodes items, a few in each turn of the event loop. The parts make one request: repeated fields of
 * Protobuf go on where they come again.
 */
async function encodeInTurns<T>(
  items: readonly T[],
  atOnce: number,
  encode: (items: readonly T[]) => Encoded,
): Promise<Encoded> {
  const parts = [encode(items.slice(0, atOnce))];
  for (let at = atOnce; at < items.length; at += atOnce) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    parts.push(encode(items.slice(at, at + atOnce)));
  }
  return parts.length === 1 ? parts[0]! : joinBytes(parts);
}
