import { backoffMs } from "../../../base/mod.ts";
import type { Random } from "../../../base/mod.ts";

/** Growing waits before a peer is dialled again. */
export class Redial {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: Random;
  #attempts = 0;
  #hasFailed = false;
  #waitedMs = 0;

  /**
   * @param options milliseconds before the first attempt, and the longest wait; each varies by 10 %
   */
  constructor(
    options: { readonly reconnectFirstMs: number; readonly reconnectMaxMs: number },
    random: Random,
  ) {
    this.#firstMs = options.reconnectFirstMs;
    this.#maxMs = options.reconnectMaxMs;
    this.#random = random;
  }

  /** Notes that an attempt has failed. True for the first failure since the peer answered. */
  failed(): boolean {
    const isNews = !this.#hasFailed;
    this.#hasFailed = true;
    return isNews;
  }

  /** Notes that the peer has answered. */
  answered(): void {
    this.#hasFailed = false;
  }

  /**
   * Notes that a link broke after `stoodMs`. If it stood for longer than the last wait, the waits
   * begin anew. Otherwise they go on growing, so that a link that breaks at once is not dialled
   * without end.
   */
  broke(stoodMs: number): void {
    if (stoodMs >= this.#waitedMs) this.#attempts = 0;
  }

  /** Returns the milliseconds to wait for the next attempt. */
  next(): number {
    const bounds = { firstMs: this.#firstMs, maxMs: this.#maxMs };
    this.#waitedMs = backoffMs(++this.#attempts, bounds, this.#random);
    return this.#waitedMs;
  }
}
