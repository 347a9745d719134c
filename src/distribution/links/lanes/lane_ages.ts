/** Marks remembered; later stanzas count with the newest of these. */
const MAX_MARKS = 256;
/** Milliseconds that one mark stands for at least. */
const MARK_MS = 50;

/**
 * Times at which stanzas came into a lane, to tell how long the oldest one has waited. It is told
 * once for each event-loop turn, not for each stanza. Pure: it knows no clock.
 */
export class LaneAges {
  readonly #marks: { last: number; readonly atMs: number }[] = [];

  /** Notes at monotonic time `atMs` that stanzas up to `last` are in; those up to `received` are not open. */
  note(last: number, received: number, atMs: number): void {
    this.#drop(received);
    const newest = this.#marks.at(-1);
    if (newest !== undefined && newest.last >= last) return;
    if (newest !== undefined && (atMs - newest.atMs < MARK_MS || this.#marks.length >= MAX_MARKS)) {
      newest.last = last;
    } else this.#marks.push({ last, atMs });
  }

  /** Monotonic time at which the oldest stanza above `received` came in; undefined when unknown. */
  oldestMs(received: number): number | undefined {
    return this.#marks.find(({ last }) => last > received)?.atMs;
  }

  /** Starts over, after the lane counts from another number. */
  reset(): void {
    this.#marks.length = 0;
  }

  #drop(received: number): void {
    let done = 0;
    while (done < this.#marks.length && this.#marks[done]!.last <= received) done++;
    if (done > 0) this.#marks.splice(0, done);
  }
}
