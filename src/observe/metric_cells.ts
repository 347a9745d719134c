import type { Counter, Gauge, Histogram } from "./metrics.ts";

const BUCKET_BOUNDS_US: readonly number[] = [
  ...[10, 25, 50, 100, 250, 500],
  ...[1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000],
  ...[1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000],
];

/** Samples kept for rates: one more than the number of intervals in a minute. */
export const RATE_SAMPLES = 13;

/** A counter that remembers its values at the registry's last samplings. */
export class CounterCell implements Counter {
  #value = 0;
  readonly #samples = new Float64Array(RATE_SAMPLES);

  get value(): number {
    return this.#value;
  }

  inc(by = 1): void {
    this.#value += by;
  }

  /** Remembers the value under the registry's sample number `slot`. */
  sample(slot: number): void {
    this.#samples[slot] = this.#value;
  }

  /** Returns the growth since the sample in `slot`. */
  growthSince(slot: number): number {
    return this.#value - this.#samples[slot]!;
  }
}

/** A gauge with a value that is either set or read on demand. */
export class GaugeCell implements Gauge {
  #value = 0;
  #read: (() => number) | undefined;

  get value(): number {
    return this.#read === undefined ? this.#value : this.#read();
  }

  /** Reads the value from `read` from now on. */
  readFrom(read: () => number): void {
    this.#read = read;
  }

  set(value: number): void {
    this.#value = value;
  }

  add(by: number): void {
    this.#value += by;
  }
}

/** Smaller values are counted exactly. From here on there are 32 cells to each doubling. */
const EXACT_BELOW = 64;
const CELLS_PER_DOUBLING = 32;
const CELL_COUNT = EXACT_BELOW + (32 - 6) * CELLS_PER_DOUBLING;
const MAX_VALUE = 0xffff_ffff;

function lowestOf(cell: number): number {
  if (cell < EXACT_BELOW) return cell;
  const doubling = (cell - EXACT_BELOW) / CELLS_PER_DOUBLING | 0;
  const step = (cell - EXACT_BELOW) % CELLS_PER_DOUBLING;
  return (CELLS_PER_DOUBLING + step) * 2 ** (doubling + 1);
}

function widthOf(cell: number): number {
  return cell < EXACT_BELOW ? 1 : 2 ** (((cell - EXACT_BELOW) / CELLS_PER_DOUBLING | 0) + 1);
}

/** The Prometheus buckets of a histogram, and the unit in which they are shown. */
export class BucketLayout {
  /** Upper bounds, rising. */
  readonly bounds: readonly number[];
  /** Divisor of a shown value: 1_000_000 shows microseconds as seconds. */
  readonly divisor: number;
  /** Bucket of each cell's lowest value; a cell may straddle bounds. */
  readonly cellBuckets: Uint16Array;
  /** The bounds, followed by infinity. */
  readonly limits: Float64Array;

  constructor(bounds: readonly number[], divisor: number) {
    if (bounds.length === 0 || bounds.some((bound, i) => i > 0 && !(bound > bounds[i - 1]!))) {
      throw new RangeError(`Cannot make buckets with bounds ${bounds.join()}: they must rise`);
    }
    this.bounds = bounds;
    this.divisor = divisor;
    this.limits = Float64Array.of(...bounds, Infinity);
    this.cellBuckets = Uint16Array.from({ length: CELL_COUNT }, (_, cell) => {
      const lowest = lowestOf(cell);
      const bucket = bounds.findIndex((bound) => lowest <= bound);
      return bucket < 0 ? bounds.length : bucket;
    });
  }
}

/** Durations: 10 µs to 30 s, shown in seconds. */
export const DURATION_BUCKETS = new BucketLayout(BUCKET_BOUNDS_US, 1_000_000);

/** Summary of a histogram's observations, in its own unit; all 0 without observations. */
export interface HistogramSummary {
  readonly count: number;
  readonly min: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly "p99.9": number;
  readonly max: number;
}

/**
 * A log-linear histogram. Whole numbers below 64 are counted exactly; above that there are 32 cells to
 * each doubling up to 2^32 (71 minutes in microseconds), so that a quantile is at most 1.6 % off. Count,
 * sum, extremes and the Prometheus buckets are exact.
 */
export class HistogramCell implements Histogram {
  readonly #cells = new Float64Array(CELL_COUNT);
  readonly #buckets: Float64Array;
  readonly #counter = new CounterCell();
  readonly layout: BucketLayout;
  readonly #cellBuckets: Uint16Array;
  readonly #limits: Float64Array;
  #sum = 0;
  #min = Infinity;
  #max = 0;

  constructor(layout: BucketLayout) {
    this.layout = layout;
    this.#cellBuckets = layout.cellBuckets;
    this.#limits = layout.limits;
    this.#buckets = new Float64Array(layout.limits.length);
  }

  /** The number of observations as a counter, for rates. */
  get counter(): CounterCell {
    return this.#counter;
  }

  get count(): number {
    return this.#counter.value;
  }

  get sum(): number {
    return this.#sum;
  }

  /** Observations in each bucket of the layout, not cumulative, followed by those above the last bound. */
  get buckets(): Readonly<Float64Array> {
    return this.#buckets;
  }

  /** Records `value`. A negative duration, which appears when the wall clock was set back, counts as 0. */
  observe(value: number, times = 1): void {
    if (!(value >= 0)) {
      if (value !== value) return;
      value = 0;
    }
    if (value > MAX_VALUE) value = MAX_VALUE;
    this.#counter.inc(times);
    this.#sum += value * times;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
    const whole = value >>> 0;
    let cell = whole;
    if (whole >= EXACT_BELOW) {
      const exponent = 31 - Math.clz32(whole);
      cell = EXACT_BELOW + (exponent - 6) * CELLS_PER_DOUBLING +
        ((whole >>> (exponent - 5)) & (CELLS_PER_DOUBLING - 1));
    }
    this.#cells[cell]! += times;
    let bucket = this.#cellBuckets[cell]!;
    while (value > this.#limits[bucket]!) bucket++;
    this.#buckets[bucket]! += times;
  }

  /** Returns the value below or at which `share` (0 to 1) of all observations lie. */
  quantile(share: number): number {
    const { count } = this;
    if (count === 0) return 0;
    let left = Math.max(1, Math.ceil(share * count));
    for (let cell = 0; cell < CELL_COUNT; cell++) {
      left -= this.#cells[cell]!;
      if (left > 0) continue;
      const middle = lowestOf(cell) + (widthOf(cell) - 1) / 2;
      return Math.min(this.#max, Math.max(this.#min, middle));
    }
    return this.#max;
  }

  summary(): HistogramSummary {
    const { count } = this;
    return {
      count,
      min: count === 0 ? 0 : this.#min,
      mean: count === 0 ? 0 : this.#sum / count,
      p50: this.quantile(0.5),
      p95: this.quantile(0.95),
      p99: this.quantile(0.99),
      "p99.9": this.quantile(0.999),
      max: this.#max,
    };
  }
}
