import type { Histogram } from "../../observe/mod.ts";

/** Batches remembered; what comes beyond counts with the newest of them. */
const MAX_MARKS = 1024;

/**
 * Measures how long stanzas wait in a lane, one value for each batch of one event-loop turn: the
 * clock is not read for each stanza.
 */
export class QueueTimes {
  readonly #histogram: Histogram;
  readonly #marks: { last: number; readonly atMs: number }[] = [];
  #marked = 0;

  constructor(histogram: Histogram) {
    this.#histogram = histogram;
  }

  /** Stanzas up to number `last` are in the lane. */
  appended(last: number, nowMs: number): void {
    if (last <= this.#marked) return;
    this.#marked = last;
    if (this.#marks.length < MAX_MARKS) this.#marks.push({ last, atMs: nowMs });
    else this.#marks.at(-1)!.last = last;
  }

  /** The lane was emptied and counts from another number. */
  reset(): void {
    this.#marks.length = 0;
    this.#marked = 0;
  }

  /** Stanzas up to number `last` have been written. */
  written(last: number, nowMs: number): void {
    let done = 0;
    for (const mark of this.#marks) {
      if (mark.last > last) break;
      this.#histogram.observe((nowMs - mark.atMs) * 1000);
      done++;
    }
    if (done > 0) this.#marks.splice(0, done);
  }
}
