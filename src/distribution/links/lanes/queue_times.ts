import type { Histogram } from "../../../observe/mod.ts";

/** Batches remembered; later ones count with the newest of these. */
const MAX_MARKS = 1024;

/**
 * Measures how long each stanza waits in a lane. Stanzas of one event-loop turn came at one time:
 * the clock is read once for them.
 */
export class QueueTimes {
  readonly #histogram: Histogram;
  readonly #marks: { last: number; readonly atMs: number }[] = [];
  #marked = 0;

  constructor(histogram: Histogram) {
    this.#histogram = histogram;
  }

  /** Notes that stanzas up to number `last` are in the lane. */
  appended(last: number, nowMs: number): void {
    if (last <= this.#marked) return;
    this.#marked = last;
    if (this.#marks.length < MAX_MARKS) this.#marks.push({ last, atMs: nowMs });
    else this.#marks.at(-1)!.last = last;
  }

  /** Starts over after the lane was emptied and counts from another number. */
  reset(): void {
    this.#marks.length = 0;
    this.#marked = 0;
  }

  /**
   * Notes that stanzas up to number `last` were written, the last `fresh` of them for the first
   * time.
   */
  written(last: number, fresh: number, nowMs: number): void {
    let done = 0;
    let measured = last - fresh;
    for (const mark of this.#marks) {
      const upTo = Math.min(mark.last, last);
      if (upTo > measured) {
        this.#histogram.observe((nowMs - mark.atMs) * 1000, upTo - measured);
        measured = upTo;
      }
      if (mark.last > last) break;
      done++;
    }
    if (done > 0) this.#marks.splice(0, done);
  }
}
