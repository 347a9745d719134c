import { toHandled } from "./counter.ts";

/** Stanzas up to this one were received not before `sinceMs`. */
interface Mark {
  upTo: number;
  readonly sinceMs: number;
}

/** Marks that a hold is divided into: so much earlier than it must, a stanza may be let go. */
const MARKS_PER_HOLD = 8;

/**
 * How many of a client's stanzas it may forget: `h` covers a stanza once its fate is final or another
 * node holds it, and once all before it are covered (docs/promises.md, "Acknowledgement to clients"). One that stays open is covered
 * after `holdMs` all the same.
 *
 * Pure: time is passed in.
 */
export class HandledCount {
  readonly #holdMs: number;
  #received = 0;
  #covered = 0;
  /** Those covered while one before them is open. */
  readonly #ahead = new Set<number>();
  readonly #marks: Mark[] = [];

  /** @param received stanzas that count as received, and covered, already */
  constructor(holdMs: number, received = 0) {
    this.#holdMs = holdMs;
    this.#received = received;
    this.#covered = received;
  }

  /** Stanzas received. */
  get received(): number {
    return this.#received;
  }

  /** Stanzas covered: no gap among them. */
  get covered(): number {
    return this.#covered;
  }

  /** `covered` as it is written in `h`. */
  get h(): number {
    return toHandled(this.#covered);
  }

  /** Counts one more stanza; gives its number. */
  receive(): number {
    return ++this.#received;
  }

  /** The stanza with this number may be forgotten by the client. */
  cover(number: number): void {
    if (number !== this.#covered + 1) {
      if (number > this.#covered) this.#ahead.add(number);
      return;
    }
    this.#covered = number;
    while (this.#ahead.size > 0 && this.#ahead.delete(this.#covered + 1)) this.#covered++;
  }

  /** The last stanza received is open still: its time to hold `h` back begins. */
  hold(nowMs: number): void {
    const last = this.#marks.at(-1);
    if (last !== undefined && nowMs - last.sinceMs < this.#holdMs / MARKS_PER_HOLD) {
      last.upTo = this.#received;
    } else {
      this.#marks.push({ upTo: this.#received, sinceMs: nowMs });
    }
  }

  /** When `expire` should be called next; undefined while nothing is open. */
  get dueMs(): number | undefined {
    while (this.#marks.length > 0 && this.#marks[0]!.upTo <= this.#covered) this.#marks.shift();
    const first = this.#marks[0];
    return first === undefined ? undefined : first.sinceMs + this.#holdMs;
  }

  /**
   * Covers what has been open for too long.
   * @returns how many stanzas that were: if this process dies now, they are lost
   */
  expire(nowMs: number): number {
    let unprotected = 0;
    for (;;) {
      const dueMs = this.dueMs;
      if (dueMs === undefined || dueMs > nowMs) return unprotected;
      unprotected += this.#coverTo(this.#marks[0]!.upTo);
    }
  }

  /**
   * Covers everything, for a client that would send again what is open and is held here.
   * @returns as `expire`
   */
  coverAll(): number {
    return this.#coverTo(this.#received);
  }

  #coverTo(upTo: number): number {
    let open = 0;
    while (this.#covered < upTo) {
      const number = this.#covered + 1;
      if (!this.#ahead.has(number)) open++;
      this.cover(number);
    }
    return open;
  }
}
