/** An entry, with its place in the list that it waits in. The list alone writes the place. */
export interface Placed {
  place?: number | undefined;
}

/** An entry that waits. */
interface Waiting<E> {
  readonly entry: E;
  /** Monotonic milliseconds from which on nobody waits for it. */
  readonly dueMs: number;
}

/** Places without an entry at the beginning of the list, from which on they are cut off. */
const MANY_EMPTY = 64;

/**
 * Entries that wait, in the order in which they came. Each operation costs the same, however many wait.
 *
 * It is no `Set`. Where entries come and go without end, a `Set` takes new tables again and again, and
 * each table that it leaves keeps the next one, and what it had, for all minor garbage collections. They
 * would copy each entry with its message, and leave it to the next major one.
 */
export class WaitingEntries<E extends Placed> {
  #items: (Waiting<E> | undefined)[] = [];
  /** Index of the first item that may have an entry. */
  #head = 0;
  /** Place of the first item. */
  #base = 0;
  #size = 0;
  /** Place from which on others wait for entries. */
  #punctualFrom = 0;

  get size(): number {
    return this.#size;
  }

  /** Place of the first entry, if any waits. */
  get firstPlace(): number {
    return this.#base + this.#head;
  }

  /** Place of the entry that came last, whether or not it still waits. */
  get lastPlace(): number {
    return this.#base + this.#items.length - 1;
  }

  /** @param dueMs monotonic milliseconds from which on nobody waits for it; undefined: nobody does now */
  add(entry: E, dueMs: number | undefined): void {
    entry.place = this.#base + this.#items.length;
    this.#items.push({ entry, dueMs: dueMs ?? Infinity });
    this.#size++;
    if (dueMs === undefined) this.#punctualFrom = entry.place + 1;
  }

  has({ place }: E): boolean {
    return place !== undefined;
  }

  /** Returns false when the entry does not wait. */
  delete(entry: E): boolean {
    const { place } = entry;
    if (place === undefined) return false;
    entry.place = undefined;
    this.#items[place - this.#base] = undefined;
    this.#size--;
    this.#trim();
    return true;
  }

  /** Milliseconds at which the first entry is due, of those that are not late. */
  get firstDueMs(): number | undefined {
    for (let i = this.#firstPunctual; i < this.#items.length; i++) {
      const item = this.#items[i];
      if (item !== undefined) return item.dueMs;
    }
    return undefined;
  }

  /** Returns the entries that are not late. They are late from now on. */
  letGo(): readonly E[] {
    const items = this.#items.slice(this.#firstPunctual);
    this.#punctualFrom = this.#base + this.#items.length;
    return items.flatMap((item) => item === undefined ? [] : [item.entry]);
  }

  *[Symbol.iterator](): Generator<E> {
    for (let i = this.#head; i < this.#items.length; i++) {
      const item = this.#items[i];
      if (item !== undefined) yield item.entry;
    }
  }

  get #firstPunctual(): number {
    return Math.max(this.#head, this.#punctualFrom - this.#base);
  }

  #trim(): void {
    while (this.#head < this.#items.length && this.#items[this.#head] === undefined) this.#head++;
    if (this.#head < MANY_EMPTY || 2 * this.#head < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#base += this.#head;
    this.#head = 0;
  }
}
