import type {
  Counter,
  Gauge,
  Histogram,
  MetricDeclaration,
  MetricLabels,
  Metrics,
} from "../../../observe/mod.ts";

/** Metrics that a test can read by name and labels. */
export class MemoryMetrics implements Metrics {
  readonly #counters = new Map<string, { value: number } & Counter>();
  readonly #gauges = new Map<string, () => number>();

  counter(declaration: MetricDeclaration): Counter {
    const key = keyOf(declaration.name, declaration.labels);
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      counter = {
        value: 0,
        inc(by = 1) {
          this.value += by;
        },
      };
      this.#counters.set(key, counter);
    }
    return counter;
  }

  gauge(declaration: MetricDeclaration, read?: () => number): Gauge {
    let value = 0;
    const gauge: Gauge = {
      set(to) {
        value = to;
      },
      add(by) {
        value += by;
      },
      get value() {
        return read?.() ?? value;
      },
    };
    this.#gauges.set(keyOf(declaration.name, declaration.labels), () => gauge.value);
    return gauge;
  }

  histogramUs(): Histogram {
    return { observe() {} };
  }

  histogram(): Histogram {
    return { observe() {} };
  }

  remove(name: string, labels: MetricLabels): void {
    this.#counters.delete(keyOf(name, labels));
    this.#gauges.delete(keyOf(name, labels));
  }

  /** Returns the value of a counter or gauge; 0 when it never moved. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const key = keyOf(name, labels);
    return this.#counters.get(key)?.value ?? this.#gauges.get(key)?.() ?? 0;
  }
}

function keyOf(name: string, labels: Readonly<Record<string, string>> = {}): string {
  return name + JSON.stringify(Object.entries(labels).sort());
}
