/**
 * A counter, declared by a module beside the code that moves it. Children are bound once
 * (`counter({...})` at wiring time, not per stanza), so that moving one is an addition to a field.
 */
export interface Counter {
  /** Adds `by` (default 1); never negative. */
  inc(by?: number): void;
  readonly value: number;
}

/** A value that goes up and down. */
export interface Gauge {
  set(value: number): void;
  add(by: number): void;
  readonly value: number;
}

/** A distribution of measured values. */
export interface Histogram {
  /** Records a value `times` (default 1) over, in the unit that the metric was declared with. */
  observe(value: number, times?: number): void;
}

/** Labels from small closed sets; never a JID. */
export type MetricLabels = Readonly<Record<string, string>>;

/** Declaration of a metric. */
export interface MetricDeclaration {
  /**
   * Prometheus name without a unit conversion, such as `mod_global_distrib_outgoing_messages_total`
   * or `mod_global_distrib_incoming_transfer_time_seconds`.
   */
  readonly name: string;
  /** The question that the metric answers. */
  readonly help: string;
  /**
   * Name that operators of the reference know; `<host>` stands for the value of the label `host`:
   * `global.mod_global_distrib.incoming.transfer_time.<host>[us]`.
   */
  readonly classicName?: string;
  readonly labels?: MetricLabels;
}

/**
 * Registry of a process's metrics. A histogram is observed in microseconds; `/metrics` shows seconds,
 * the classic name `[us]`.
 */
export interface Metrics {
  /** Returns the counter of that name and labels, made at first use; later calls return the same object. */
  counter(declaration: MetricDeclaration): Counter;
  /** Returns the gauge of that name and labels. With `read`, its value is read when it is shown. */
  gauge(declaration: MetricDeclaration, read?: () => number): Gauge;
  /** Returns the histogram of that name and labels; `observe` takes microseconds. */
  histogramUs(declaration: MetricDeclaration): Histogram;
  /** Returns a histogram of plain numbers, such as hops or items, with the given upper bounds. */
  histogram(declaration: MetricDeclaration, bounds: readonly number[]): Histogram;
  /**
   * Stops showing the metric of that name and labels, because its subject is gone. Code that still holds
   * the metric moves nothing. A new declaration begins anew.
   */
  remove(name: string, labels: MetricLabels): void;
}
