const EMPTY = 0;
const DELETED = -1;

/**
 * Set of positive integers below 2^53, already scattered, with a fixed capacity. It uses open
 * addressing in one block of memory, so that an entry costs no object and one memory access.
 */
export class FingerprintSet {
  readonly #capacity: number;
  /** At most half of the cells are in use, deleted ones included. */
  readonly #cells: Float64Array<ArrayBuffer>;
  #used = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#cells = new Float64Array(2 ** Math.ceil(Math.log2(2 * capacity)));
  }

  /** True when nothing more can be added before `clear`. */
  get isFull(): boolean {
    return this.#used >= this.#capacity;
  }

  /** Adds `print`; the set must not be full. */
  add(print: number): void {
    const at = this.#find(print);
    if (this.#cells[at] === print) return;
    this.#cells[at] = print;
    this.#used++;
  }

  has(print: number): boolean {
    return this.#cells[this.#find(print)] === print;
  }

  delete(print: number): void {
    const at = this.#find(print);
    if (this.#cells[at] === print) this.#cells[at] = DELETED;
  }

  clear(): void {
    this.#cells.fill(EMPTY);
    this.#used = 0;
  }

  /** Returns the cell that holds `print`, or the empty one where it belongs. */
  #find(print: number): number {
    const cells = this.#cells;
    const mask = cells.length - 1;
    let at = print & mask;
    while (cells[at] !== print && cells[at] !== EMPTY) at = (at + 1) & mask;
    return at;
  }
}
