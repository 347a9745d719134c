/** Places by who takes them: nobody takes more than a share, so that one cannot take all. */
export class Shares<T> {
  readonly #most: number;
  readonly #takers = new Map<T, string>();
  readonly #taken = new Map<string, number>();

  /** @param most places that one may take */
  constructor(most: number) {
    this.#most = most;
  }

  /** Places taken, whoever has them. */
  get size(): number {
    return this.#takers.size;
  }

  /** False when `name` has all that it may have; nobody knows it by the empty name, which has no bound. */
  hasRoom(name: string): boolean {
    return name === "" || (this.#taken.get(name) ?? 0) < this.#most;
  }

  take(taker: T, name: string): void {
    this.giveBack(taker);
    this.#takers.set(taker, name);
    this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1);
  }

  /** Does nothing for one that has no place. */
  giveBack(taker: T): void {
    const name = this.#takers.get(taker);
    if (name === undefined) return;
    this.#takers.delete(taker);
    const left = this.#taken.get(name)! - 1; // it was counted when it was taken
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }
}
