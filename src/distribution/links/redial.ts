import { backoffMs } from "../../base/mod.ts";
import type { Random } from "../../base/mod.ts";

/** How long to wait before a peer is called again: longer from attempt to attempt. */
export class Redial {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: Random;
  #attempts = 0;
  #hasFailed = false;
  #waitedMs = 0;

  /** @param options milliseconds before the first attempt, and what no wait exceeds; 10 % more or less */
  constructor(
    options: { readonly reconnectFirstMs: number; readonly reconnectMaxMs: number },
    random: Random,
  ) {
    this.#firstMs = options.reconnectFirstMs;
    this.#maxMs = options.reconnectMaxMs;
    this.#random = random;
  }

  /** An attempt has failed. True for the first one since the peer answered; the rest is the same again. */
  failed(): boolean {
    const isNews = !this.#hasFailed;
    this.#hasFailed = true;
    return isNews;
  }

  /** The peer has answered. */
  answered(): void {
    this.#hasFailed = false;
  }

  /**
   * A link has broken that stood for `stoodMs`. When that was longer than it had been waited for, the
   * next one is made as soon as the first was; one that breaks as soon as it stands is not made
   * again without end.
   */
  broke(stoodMs: number): void {
    if (stoodMs >= this.#waitedMs) this.#attempts = 0;
  }

  /** Milliseconds to wait for the next attempt. */
  next(): number {
    const bounds = { firstMs: this.#firstMs, maxMs: this.#maxMs };
    this.#waitedMs = backoffMs(++this.#attempts, bounds, this.#random);
    return this.#waitedMs;
  }
}
