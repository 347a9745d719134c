import type { LaneEntry } from "./lane_entry.ts";

/** Stanzas of a lane that somebody follows, by number. Other stanzas cost nothing here. */
export class FollowedStanzas {
  readonly #lane: number;
  readonly #entries: { get(number: number): LaneEntry | undefined };
  /** Ascending. */
  #numbers: number[] = [];

  /**
   * @param lane number of the lane, for the notes
   * @param entries the stanzas of the lane, by their numbers
   */
  constructor(lane: number, entries: { get(number: number): LaneEntry | undefined }) {
    this.#lane = lane;
    this.#entries = entries;
  }

  /** The highest followed number, or 0. */
  get last(): number {
    return this.#numbers.at(-1) ?? 0;
  }

  /** Follows the stanza that gets `number`, which is above all before it. */
  add(number: number): void {
    this.#numbers.push(number);
  }

  /** Notes a step of the followed stanzas with numbers from `first` to `last`. */
  note(step: "written" | "received", first: number, last: number): void {
    const numbers = this.#numbers;
    for (let i = firstAbove(numbers, first - 1); i < numbers.length; i++) {
      const number = numbers[i]!;
      if (number > last) return;
      this.#entries.get(number)?.trace?.note(step, { lane: this.#lane, number });
    }
  }

  /** Stops following the stanzas with numbers up to `last`, which the peer has received. */
  forgetUpTo(last: number): void {
    this.#numbers.splice(0, firstAbove(this.#numbers, last));
  }

  /** Stops following all stanzas. */
  clear(): void {
    this.#numbers = [];
  }

  /**
   * Writes the contexts of the followed stanzas that go out after number `sent` with `creditBytes`,
   * before any of the stanzas.
   */
  writeContexts(sent: number, creditBytes: number, write: (bytes: Uint8Array) => void): void {
    const { last } = this;
    let bytes = 0;
    for (let number = sent + 1; number <= last && bytes < creditBytes; number++) {
      const { trace, start, end } = this.#entries.get(number)!;
      if (trace?.carried !== undefined) write(trace.carried);
      bytes += end - start;
    }
  }
}

/** Returns the index of the first of rising numbers that is above `bound`; the length without one. */
function firstAbove(numbers: readonly number[], bound: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}
