/** Latency figures of a run, in microseconds. */
export interface LatencySummary {
  readonly count: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly maxUs: number;
}

const SUB_BUCKET_BITS = 10;
const SUB_BUCKETS = 1 << SUB_BUCKET_BITS;
const BUCKETS = (22 << SUB_BUCKET_BITS) + SUB_BUCKETS;
const MAX_VALUE = 0xffff_ffff;

/**
 * Counts latencies in buckets that are exact below 2 ms and 0.1 % wide above: recording one is an
 * addition, however many there are.
 */
export class LatencyRecorder {
  readonly #counts = new Uint32Array(BUCKETS);
  #count = 0;
  #maxUs = 0;

  /** Records one latency in whole microseconds, at most 71 minutes; less than 0 counts as 0. */
  record(us: number): void {
    const value = Math.max(0, Math.min(MAX_VALUE, us));
    this.#counts[bucketOf(value)]!++;
    this.#count++;
    if (value > this.#maxUs) this.#maxUs = value;
  }

  reset(): void {
    this.#counts.fill(0);
    this.#count = 0;
    this.#maxUs = 0;
  }

  /** The smallest recorded latency that `fraction` of all do not exceed, to its bucket's width. */
  quantileUs(fraction: number): number {
    let left = Math.max(1, Math.ceil(this.#count * fraction));
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.#counts[bucket]!;
      if (left <= 0) return Math.min(this.#maxUs, upperBoundOf(bucket));
    }
    return 0;
  }

  summary(): LatencySummary {
    return {
      count: this.#count,
      p50Us: this.quantileUs(0.5),
      p99Us: this.quantileUs(0.99),
      p999Us: this.quantileUs(0.999),
      maxUs: this.#maxUs,
    };
  }
}

function bucketOf(value: number): number {
  const shift = Math.max(0, 31 - SUB_BUCKET_BITS - Math.clz32(value));
  return (shift << SUB_BUCKET_BITS) + (value >>> shift);
}

function upperBoundOf(bucket: number): number {
  const shift = Math.max(0, (bucket >> SUB_BUCKET_BITS) - 1);
  return (bucket - (shift << SUB_BUCKET_BITS) + 1) * 2 ** shift - 1;
}
