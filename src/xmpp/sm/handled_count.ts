import { GaplessCount } from "../../base/mod.ts";
import { toHandled } from "./counter.ts";

/** Stanzas up to this one were received at `sinceMs` or later. */
interface Mark {
  upTo: number;
  readonly sinceMs: number;
}

/** Marks in one hold. A stanza may be covered earlier than necessary by this fraction of the hold. */
const MARKS_PER_HOLD = 8;

/**
 * Number of a client's stanzas that the client may forget. `h` covers a stanza once its fate is final or
 * another node holds it, and once all stanzas before it are covered (docs/promises.md, "Acknowledgement
 * to clients"). An open stanza is covered after `holdMs` at the latest.
 *
 * Pure: time is passed in.
 */
export class HandledCount {
  readonly #holdMs: number;
  #received: number;
  readonly #covered: GaplessCount;
  readonly #marks: Mark[] = [];

  /** @param received stanzas that already count as received and covered */
  constructor(holdMs: number, received = 0) {
    this.#holdMs = holdMs;
    this.#received = received;
    this.#covered = new GaplessCount(received);
  }

  /** Stanzas received. */
  get received(): number {
    return this.#received;
  }

  /** Stanzas covered, without a gap. */
  get covered(): number {
    return this.#covered.done;
  }

  /** `covered` as it is written in `h`. */
  get h(): number {
    return toHandled(this.#covered.done);
  }

  /** Counts one more stanza and returns its number. */
  receive(): number {
    return ++this.#received;
  }

  /** Marks a stanza as one that the client may forget. */
  cover(number: number): void {
    this.#covered.add(number);
  }

  /** Starts the hold of the last stanza received, which is still open. */
  hold(nowMs: number): void {
    const last = this.#marks.at(-1);
    if (last !== undefined && nowMs - last.sinceMs < this.#holdMs / MARKS_PER_HOLD) {
      last.upTo = this.#received;
    } else {
      this.#marks.push({ upTo: this.#received, sinceMs: nowMs });
    }
  }

  /** Time at which to call `expire` next; undefined while nothing is open. */
  get dueMs(): number | undefined {
    while (this.#marks.length > 0 && this.#marks[0]!.upTo <= this.covered) this.#marks.shift();
    const first = this.#marks[0];
    return first === undefined ? undefined : first.sinceMs + this.#holdMs;
  }

  /**
   * Covers every stanza that has been open for too long.
   * @returns the number of those stanzas: they are lost if this process dies now
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
   * Covers everything, for a client that would resend open stanzas that this node holds.
   * @returns as `expire`
   */
  coverAll(): number {
    return this.#coverTo(this.#received);
  }

  #coverTo(upTo: number): number {
    let open = 0;
    for (let next = this.covered + 1; next <= upTo; next = this.covered + 1) {
      open++;
      this.cover(next);
    }
    return open;
  }
}
