import { setImmediate } from "node:timers";

/** Bounds of `PacedWork`, and its sources of time. */
export interface PacedWorkOptions {
  /** Milliseconds of work in one turn of the event loop, without the last piece. @default 2 */
  readonly sliceMs?: number;
  /** Returns a time in milliseconds that does not stand still during a turn. @default the machine's */
  readonly nowMs?: () => number;
  /** Calls back in the next turn of the event loop. @default `setImmediate` */
  readonly nextTurn?: (callback: () => void) => void;
}

/**
 * Pieces of work that may wait, such as the steps of logins. They are done in the order in which they
 * came, a few milliseconds in each turn of the event loop. Between two turns the node reads and writes
 * everything else, so that many logins at once delay conversations only a little.
 *
 * The callers bound how many pieces wait.
 */
export class PacedWork {
  readonly #sliceMs: number;
  readonly #nowMs: () => number;
  readonly #nextTurn: (callback: () => void) => void;
  #pieces: (() => void)[] = [];
  /** Index of the first piece that waits. */
  #next = 0;
  /** Milliseconds of work in this turn. */
  #usedMs = 0;
  #isWorking = false;
  #isTurnExpected = false;

  constructor(options: PacedWorkOptions = {}) {
    const { sliceMs = 2, nowMs = () => performance.now(), nextTurn = setImmediate } = options;
    this.#sliceMs = sliceMs;
    this.#nowMs = nowMs;
    this.#nextTurn = nextTurn;
  }

  /** Pieces that wait. */
  get waiting(): number {
    return this.#pieces.length - this.#next;
  }

  /**
   * Does one piece: at once if no other waits and this turn has time left. Of an asynchronous piece,
   * the part before its first `await` counts.
   *
   * @returns the result of the piece, or what it has thrown
   */
  run<T>(piece: () => T | Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#pieces.push(() => {
      try {
        resolve(piece());
      } catch (thrown) {
        reject(thrown);
      }
    });
    if (!this.#isWorking) this.#work();
    return promise;
  }

  #work(): void {
    this.#isWorking = true;
    while (this.waiting > 0 && this.#usedMs < this.#sliceMs) {
      const startMs = this.#nowMs();
      this.#pieces[this.#next++]!();
      this.#usedMs += this.#nowMs() - startMs;
    }
    this.#isWorking = false;
    // Each piece is moved once at most, on the average.
    if (this.#next * 2 >= this.#pieces.length) {
      this.#pieces = this.#pieces.slice(this.#next);
      this.#next = 0;
    }
    if (this.#isTurnExpected) return;
    this.#isTurnExpected = true;
    this.#nextTurn(() => {
      this.#isTurnExpected = false;
      this.#usedMs = 0;
      if (this.waiting > 0) this.#work();
    });
  }
}
