/** Milliseconds that a standstill of the machine counts as, however long it was. */
const STEP_MS = 500;

/**
 * Time to wait for something, counted in steps. A machine that stands still for seconds makes one
 * step late, and does not use up the time of everything that waits on it.
 */
export class Patience implements Disposable {
  readonly #whenOver: () => void;
  #leftMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param whenOver called when `forMs` have passed, unless disposed of before */
  constructor(forMs: number, whenOver: () => void = () => {}) {
    this.#leftMs = forMs;
    this.#whenOver = whenOver;
    this.#step();
  }

  /** True once the time has passed. */
  get isOver(): boolean {
    return this.#leftMs <= 0;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #step(): void {
    const stepMs = Math.min(STEP_MS, this.#leftMs);
    this.#timer = setTimeout(() => {
      this.#leftMs -= stepMs;
      if (this.isOver) this.#whenOver();
      else this.#step();
    }, stepMs);
  }
}
