/** Places by name of their taker. Each name may take only a share, so that none can take all. */
export class Shares<T> {
  #most: number;
  readonly #takers = new Map<T, string>();
  readonly #taken = new Map<string, number>();

  /** @param most places that one name may take */
  constructor(most: number) {
    this.#most = most;
  }

  /** Changes the share of each name. Takers above it stay. */
  resize(most: number): void {
    this.#most = most;
  }

  /** Places taken, under all names. */
  get size(): number {
    return this.#takers.size;
  }

  /** False when `name` has its full share; the empty name, for unnamed takers, has no bound. */
  hasRoom(name: string): boolean {
    return name === "" || (this.#taken.get(name) ?? 0) < this.#most;
  }

  take(taker: T, name: string): void {
    this.giveBack(taker);
    this.#takers.set(taker, name);
    this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1);
  }

  /** Frees the place of `taker`, if it has one. */
  giveBack(taker: T): void {
    const name = this.#takers.get(taker);
    if (name === undefined) return;
    this.#takers.delete(taker);
    const left = this.#taken.get(name)! - 1; // `take` has counted it
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }
}
