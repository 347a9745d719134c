import type { Random } from "../../base/mod.ts";

/**
 * Picks a share of stanzas at random. It draws how many to leave out until the next one, so that a
 * stanza which is left out costs one subtraction.
 */
export class Sampler {
  readonly #ratio: number;
  readonly #random: Random;
  /** Stanzas until the next one that is picked, itself included. */
  #left: number;

  /** @param ratio from 0, for none, to 1, for all */
  constructor(ratio: number, random: Random) {
    this.#ratio = ratio;
    this.#random = random;
    this.#left = this.#draw();
  }

  /** True when the next stanza is picked. */
  next(): boolean {
    if (--this.#left > 0) return false;
    this.#left = this.#draw();
    return true;
  }

  /** Draws from the geometric distribution. */
  #draw(): number {
    if (this.#ratio <= 0) return Infinity;
    if (this.#ratio >= 1) return 1;
    return 1 + Math.floor(Math.log(1 - this.#random.unit()) / Math.log(1 - this.#ratio));
  }
}
