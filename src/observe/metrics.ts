/**
 * What a module declares beside the code that moves it. Children are bound once (`counter({...})`
 * at wiring time, not per stanza), so that moving one is an addition to a field.
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
  /** Records a value, in the unit that the metric was declared with, `times` (default 1) over. */
  observe(value: number, times?: number): void;
}

/** Labels from small closed sets; never a JID. */
export type MetricLabels = Readonly<Record<string, string>>;

/** How a metric is declared. */
export interface MetricDeclaration {
  /**
   * Prometheus name without a unit conversion, such as `mod_global_distrib_outgoing_messages_total`
   * or `mod_global_distrib_incoming_transfer_time_seconds`.
   */
  readonly name: string;
  /** The question it answers. */
  readonly help: string;
  /**
   * Name as operators of the reference know it, `<host>` standing for the value of the label
   * `host`: `global.mod_global_distrib.incoming.transfer_time.<host>[us]`.
   */
  readonly classicName?: string;
  readonly labels?: MetricLabels;
}

/** A histogram is observed in microseconds; `/metrics` shows seconds, the classic name `[us]`. */
export interface Metrics {
  /** The counter of that name and labels, made at first use; the same object each time after. */
  counter(declaration: MetricDeclaration): Counter;
  /** The gauge of that name and labels. With `read`, its value is asked for when it is shown. */
  gauge(declaration: MetricDeclaration, read?: () => number): Gauge;
  /** The histogram of that name and labels; `observe` takes microseconds. */
  histogramUs(declaration: MetricDeclaration): Histogram;
  /** A histogram of plain numbers with the given upper bounds, such as hops or items. */
  histogram(declaration: MetricDeclaration, bounds: readonly number[]): Histogram;
  /**
   * Takes the metric of that name and labels out of what is shown: what it was about is gone. Whoever
   * still moves it moves nothing; declared again, it begins anew.
   */
  remove(name: string, labels: MetricLabels): void;
}
