import type { LaneEntry } from "./lane_entry.ts";

/** Fewest places of the ring; a power of two. */
const MIN_PLACES = 64;
/** A ring of this many places does not shrink: a lane that fills and empties would only copy. */
const KEPT_PLACES = 4096;

/**
 * Entries of a lane by number. Numbers are added one after the other, and most are removed in that
 * order, so that a ring does what a map would, without hashing.
 *
 * An entry that stays while many later ones come and go moves from the ring to a map of
 * stragglers. A ring of more than 4096 places has at most 16 for each of its entries.
 */
export class LaneEntries {
  /** The entry of `number` is at `number & #mask`. */
  #ring: (LaneEntry | undefined)[] = emptyRing(MIN_PLACES);
  #mask = MIN_PLACES - 1;
  /** Lowest number in the ring; `#end` while the ring is empty. */
  #first = 0;
  /** The number behind the last one. */
  #end = 0;
  /** Entries in the ring. */
  #inRing = 0;
  /** Entries with numbers below `#first`, ascending. */
  readonly #stragglers = new Map<number, LaneEntry>();

  get size(): number {
    return this.#inRing + this.#stragglers.size;
  }

  /** The lowest number that is held; undefined when there is none. */
  get lowest(): number | undefined {
    const { value } = this.#stragglers.keys().next();
    return value ?? (this.#inRing === 0 ? undefined : this.#first);
  }

  get(number: number): LaneEntry | undefined {
    if (number < this.#first) return this.#stragglers.get(number);
    return number < this.#end ? this.#ring[number & this.#mask] : undefined;
  }

  /** Adds an entry. Its number follows the last one, or is any number when nothing is held. */
  add(number: number, entry: LaneEntry): void {
    if (number !== this.#end) this.#begin(number);
    if (number - this.#first > this.#mask) this.#makeRoom();
    this.#ring[number & this.#mask] = entry;
    this.#end = number + 1;
    this.#inRing++;
  }

  /** Removes and returns an entry; undefined when the number is not held. */
  take(number: number): LaneEntry | undefined {
    if (number < this.#first) {
      const straggler = this.#stragglers.get(number);
      this.#stragglers.delete(number);
      return straggler;
    }
    if (number >= this.#end) return undefined;
    const at = number & this.#mask;
    const entry = this.#ring[at];
    if (entry === undefined) return undefined;
    this.#ring[at] = undefined;
    this.#inRing--;
    if (number === this.#first) this.#skipGaps();
    if (this.#mask >= KEPT_PLACES && this.#inRing < this.#mask >> 4) {
      this.#rebuild((this.#mask + 1) >> 1);
    }
    return entry;
  }

  clear(): void {
    this.#stragglers.clear();
    this.#ring = emptyRing(MIN_PLACES);
    this.#mask = MIN_PLACES - 1;
    this.#first = this.#end;
    this.#inRing = 0;
  }

  /** Yields the entries with their numbers, ascending. */
  *[Symbol.iterator](): IterableIterator<[number, LaneEntry]> {
    yield* this.#stragglers;
    for (let number = this.#first; number < this.#end; number++) {
      const entry = this.#ring[number & this.#mask];
      if (entry !== undefined) yield [number, entry];
    }
  }

  /** Yields the entries alone, in the same order. */
  *values(): IterableIterator<LaneEntry> {
    for (const [, entry] of this) yield entry;
  }

  #begin(number: number): void {
    if (this.size > 0) {
      throw new RangeError(`Cannot add number ${number}: the next one is ${this.#end}`);
    }
    this.#first = number;
    this.#end = number;
  }

  #skipGaps(): void {
    if (this.#inRing === 0) {
      this.#first = this.#end;
      return;
    }
    while (this.#ring[this.#first & this.#mask] === undefined) this.#first++;
  }

  /** Makes room for one more number: moves old entries out of a ring of gaps, else doubles it. */
  #makeRoom(): void {
    const places = this.#mask + 1;
    this.#rebuild(this.#inRing > places >> 1 ? places << 1 : places);
  }

  /** Moves the entries to a ring of `places`, of which they take the half; older ones straggle. */
  #rebuild(places: number): void {
    const ring = emptyRing(places);
    const mask = places - 1;
    const from = Math.max(this.#first, this.#end - (places >> 1));
    for (let number = this.#first; number < this.#end; number++) {
      const entry = this.#ring[number & this.#mask];
      if (entry === undefined) continue;
      if (number >= from) ring[number & mask] = entry;
      else {
        this.#stragglers.set(number, entry);
        this.#inRing--;
      }
    }
    this.#ring = ring;
    this.#mask = mask;
    this.#first = from;
    this.#skipGaps();
  }
}

function emptyRing(places: number): (LaneEntry | undefined)[] {
  return new Array<LaneEntry | undefined>(places).fill(undefined);
}
