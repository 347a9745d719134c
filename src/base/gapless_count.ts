/**
 * Numbers from 1 that are done, in whatever order: how many of them, without a gap. Only numbers
 * behind a gap take memory.
 */
export class GaplessCount {
  #done: number;
  /** Numbers that are done, behind one that is not. */
  readonly #ahead = new Set<number>();

  /** @param done numbers up to this one count as done already */
  constructor(done = 0) {
    this.#done = done;
  }

  /** All numbers up to this one are done. */
  get done(): number {
    return this.#done;
  }

  /** Notes that a number is done. Only the first time counts. */
  add(number: number): void {
    if (number !== this.#done + 1) {
      if (number > this.#done) this.#ahead.add(number);
      return;
    }
    this.#done = number;
    while (this.#ahead.size > 0 && this.#ahead.delete(this.#done + 1)) this.#done++;
  }
}
