import { Registry } from "prom-client";
import type { MetricValue } from "prom-client";
import type { CancelTimer, Clock } from "../base/mod.ts";
import {
  BucketLayout,
  CounterCell,
  DURATION_BUCKETS,
  GaugeCell,
  HistogramCell,
  RATE_SAMPLES,
} from "./metric_cells.ts";
import type { HistogramSummary } from "./metric_cells.ts";
import type {
  Counter,
  Gauge,
  Histogram,
  MetricDeclaration,
  MetricLabels,
  Metrics,
} from "./metrics.ts";

/** A counter or histogram by its classic name; rates are over the last minute. */
export interface ClassicCounter {
  readonly count: number;
  readonly ratePerSec: number;
}

/** A gauge by its classic name. */
export interface ClassicGauge {
  readonly value: number;
}

/** The value under one classic name; a histogram in the unit that its name says. */
export type ClassicMetric =
  | ClassicCounter
  | ClassicGauge
  | (ClassicCounter & HistogramSummary);

/** A metric as it is now: a value, or the buckets of a histogram. */
export interface MetricReading {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly points: readonly MetricPoint[];
}

/** One combination of labels of a metric. */
export type MetricPoint =
  & { readonly labels: MetricLabels }
  & ({ readonly value: number } | {
    readonly count: number;
    readonly sum: number;
    /** Upper bounds, rising, in the unit of `sum`. */
    readonly bounds: readonly number[];
    /** Observations in each bucket, not cumulative; the last is above all bounds. */
    readonly buckets: readonly number[];
  });

const SAMPLE_INTERVAL_MS = 5000;
const RATE_WINDOW_MS = SAMPLE_INTERVAL_MS * (RATE_SAMPLES - 1);

type Cell = CounterCell | GaugeCell | HistogramCell;
type Kind = "counter" | "gauge" | "histogram";

interface Child {
  readonly labels: MetricLabels;
  readonly classicName: string | undefined;
  readonly cell: Cell;
}

/** All metrics of one name. */
interface Family {
  readonly kind: Kind;
  readonly declaration: MetricDeclaration;
  readonly labelNames: string;
  readonly children: Map<string, Child>;
}

/**
 * The metrics of one process. Moving one is an addition to a field; everything else is computed when
 * somebody looks. One timer samples all counters for their rates.
 */
export class MetricsRegistry implements Metrics {
  readonly #clock: Clock;
  readonly #registry = new Registry();
  readonly #families = new Map<string, Family>();
  readonly #counters = new Set<CounterCell>();
  readonly #sampleTimesMs = new Float64Array(RATE_SAMPLES);
  #sampleCount = 0;
  #cancelTimer: CancelTimer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sample();
  }

  /** The MIME type of `prometheus()`'s text. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  counter(declaration: MetricDeclaration): Counter {
    return this.#child("counter", declaration, () => this.#sampled(new CounterCell()));
  }

  gauge(declaration: MetricDeclaration, read?: () => number): Gauge {
    const cell = this.#child("gauge", declaration, () => new GaugeCell());
    if (read !== undefined) cell.readFrom(read);
    return cell;
  }

  histogramUs(declaration: MetricDeclaration): Histogram {
    return this.#histogram(declaration, DURATION_BUCKETS);
  }

  histogram(declaration: MetricDeclaration, bounds: readonly number[]): Histogram {
    return this.#histogram(declaration, new BucketLayout(bounds, 1));
  }

  remove(name: string, labels: MetricLabels): void {
    const family = this.#families.get(name);
    const key = keyOf(labels);
    const cell = family?.children.get(key)?.cell;
    if (cell === undefined) return;
    family!.children.delete(key);
    if (cell instanceof CounterCell) this.#counters.delete(cell);
    else if (cell instanceof HistogramCell) this.#counters.delete(cell.counter);
  }

  /** Declares a counter whose value other code keeps, such as processor time; it never falls. */
  counterFrom(declaration: MetricDeclaration, read: () => number): void {
    this.#child("counter", declaration, () => new GaugeCell()).readFrom(read);
  }

  /** Returns everything that has a classic name, under that name; sorted by name. */
  classic(): Readonly<Record<string, ClassicMetric>> {
    const named: [string, ClassicMetric][] = [];
    for (const family of this.#families.values()) {
      for (const { classicName, cell } of family.children.values()) {
        if (classicName !== undefined) named.push([classicName, this.#classicMetric(cell)]);
      }
    }
    return Object.fromEntries(named.sort(([one], [other]) => one < other ? -1 : 1));
  }

  /** Returns everything in Prometheus' text format. */
  prometheus(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Returns everything as it is now, in the units of Prometheus. */
  read(): readonly MetricReading[] {
    return [...this.#families.values()].map(({ kind, declaration: { name, help }, children }) => ({
      name,
      help,
      kind,
      points: [...children.values()].map(({ labels, cell }) => pointOf(labels, cell)),
    }));
  }

  /** Stops sampling. */
  close(): void {
    this.#cancelTimer?.();
  }

  #histogram(declaration: MetricDeclaration, layout: BucketLayout): HistogramCell {
    const cell = this.#child("histogram", declaration, () => {
      const made = new HistogramCell(layout);
      this.#sampled(made.counter);
      return made;
    });
    const bounds = cell.layout.bounds.join();
    if (bounds !== layout.bounds.join() || cell.layout.divisor !== layout.divisor) {
      throw new TypeError(
        `Cannot declare metric ${declaration.name} with bounds ${layout.bounds.join()}: ` +
          `it was declared with ${bounds}`,
      );
    }
    return cell;
  }

  #child<C extends Cell>(kind: Kind, declaration: MetricDeclaration, make: () => C): C {
    const { labels = {} } = declaration;
    const labelNames = Object.keys(labels).sort();
    const family = this.#family(kind, declaration, labelNames.join());
    const key = keyOf(labels);
    const known = family.children.get(key);
    // One family holds one kind of cell, as `#family` has checked.
    if (known !== undefined) return known.cell as C;
    const cell = make();
    const classicName = declaration.classicName?.replace(
      /<([^>]+)>/g,
      (placeholder, label: string) => labels[label] ?? placeholder,
    );
    family.children.set(key, { labels, classicName, cell });
    return cell;
  }

  #family(kind: Kind, declaration: MetricDeclaration, labelNames: string): Family {
    const { name, help, classicName } = declaration;
    const known = this.#families.get(name);
    if (known === undefined) {
      const family: Family = { kind, declaration, labelNames, children: new Map() };
      this.#families.set(name, family);
      this.#registry.registerMetric(asPromMetric(family));
      return family;
    }
    for (
      const [what, before, now] of [
        ["kind", known.kind, kind],
        ["help", known.declaration.help, help],
        ["labels", known.labelNames, labelNames],
        ["classicName", known.declaration.classicName, classicName],
      ] as const
    ) {
      if (before !== now) {
        throw new TypeError(
          `Cannot declare metric ${name} with ${what} "${now}": it was declared with "${before}"`,
        );
      }
    }
    return known;
  }

  #classicMetric(cell: Cell): ClassicMetric {
    if (cell instanceof GaugeCell) return { value: cell.value };
    if (cell instanceof CounterCell) return { count: cell.value, ratePerSec: this.#rate(cell) };
    return { ...cell.summary(), ratePerSec: this.#rate(cell.counter) };
  }

  #sampled(counter: CounterCell): CounterCell {
    this.#counters.add(counter);
    return counter;
  }

  #sample(): void {
    const slot = this.#sampleCount++ % RATE_SAMPLES;
    this.#sampleTimesMs[slot] = this.#clock.monotonicMs();
    for (const counter of this.#counters) counter.sample(slot);
    this.#cancelTimer = this.#clock.after(SAMPLE_INTERVAL_MS, () => this.#sample());
  }

  /**
   * Returns the growth per second since the youngest sample that is a minute old, or else since the
   * oldest.
   */
  #rate(counter: CounterCell): number {
    const nowMs = this.#clock.monotonicMs();
    const oldest = Math.max(0, this.#sampleCount - RATE_SAMPLES);
    let chosen = oldest;
    for (let number = oldest; number < this.#sampleCount; number++) {
      if (nowMs - this.#sampleTimesMs[number % RATE_SAMPLES]! < RATE_WINDOW_MS) break;
      chosen = number;
    }
    const slot = chosen % RATE_SAMPLES;
    const elapsedMs = nowMs - this.#sampleTimesMs[slot]!;
    return elapsedMs <= 0 ? 0 : counter.growthSince(slot) * 1000 / elapsedMs;
  }
}

function keyOf(labels: MetricLabels): string {
  return Object.keys(labels).sort().map((label) => labels[label]).join("\0");
}

function pointOf(labels: MetricLabels, cell: Cell): MetricPoint {
  if (!(cell instanceof HistogramCell)) return { labels, value: cell.value };
  const { count, sum, buckets, layout: { bounds, divisor } } = cell;
  return {
    labels,
    count,
    sum: sum / divisor,
    bounds: bounds.map((bound) => bound / divisor),
    buckets: [...buckets],
  };
}

type RenderedValue = MetricValue<string> & { readonly metricName?: string };

/** Wraps a family for the registry, which reads only the name and `get` of a metric to render it. */
function asPromMetric(family: Family): Parameters<Registry["registerMetric"]>[0] {
  const metric = {
    name: family.declaration.name,
    get: () => Promise.resolve(rendered(family)),
  };
  // The type asks for one of the registry's own classes, which would count a second time.
  return metric as unknown as Parameters<Registry["registerMetric"]>[0];
}

function rendered(family: Family) {
  const { name, help } = family.declaration;
  const values: RenderedValue[] = [];
  for (const { labels, cell } of family.children.values()) {
    if (cell instanceof HistogramCell) renderHistogram(name, labels, cell, values);
    else values.push({ labels, value: cell.value });
  }
  return {
    name,
    help,
    type: family.kind,
    aggregator: "sum",
    values,
  };
}

function renderHistogram(
  name: string,
  labels: MetricLabels,
  cell: HistogramCell,
  into: RenderedValue[],
): void {
  let cumulative = 0;
  const { bounds, divisor } = cell.layout;
  bounds.forEach((bound, i) => {
    cumulative += cell.buckets[i]!;
    const value = cumulative;
    into.push({ metricName: `${name}_bucket`, labels: { ...labels, le: bound / divisor }, value });
  });
  into.push({ metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: cell.count });
  into.push({ metricName: `${name}_sum`, labels, value: cell.sum / divisor });
  into.push({ metricName: `${name}_count`, labels, value: cell.count });
}
