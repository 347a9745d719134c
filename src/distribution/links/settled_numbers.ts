import type { SettledRange } from "../wire/mod.ts";

const FIRST_CAPACITY = 1024;

/**
 * Which numbers of a lane are settled: all up to `upTo`, and single ones above it as bits.
 *
 * Memory is one bit for each number between `upTo` and the highest one settled.
 */
export class SettledNumbers {
  #upTo: number;
  #highest: number;
  #bits = new Uint8Array(FIRST_CAPACITY >> 3);
  #capacity = FIRST_CAPACITY;
  /** Settled above `upTo` since `takeNews`. */
  #news: { first: number; count: number }[] = [];

  /** @param upTo all numbers up to this one count as settled */
  constructor(upTo: number) {
    this.#upTo = upTo;
    this.#highest = upTo;
  }

  get upTo(): number {
    return this.#upTo;
  }

  has(number: number): boolean {
    if (number <= this.#upTo) return true;
    return number <= this.#highest && this.#isSet(number);
  }

  /** Settles one number. */
  add(number: number): void {
    if (number === this.#upTo + 1 && this.#highest <= number) {
      this.#upTo = number;
      this.#highest = number;
      return;
    }
    if (this.has(number)) return;
    if (number > this.#upTo + this.#capacity) this.#grow(number);
    this.#set(number);
    if (number > this.#highest) this.#highest = number;
    if (number === this.#upTo + 1) this.#advance();
    else this.#tell(number);
  }

  /** Settles every number up to `number`. */
  skipTo(number: number): void {
    if (number <= this.#upTo) return;
    if (number >= this.#highest) {
      this.#bits.fill(0);
      this.#highest = number;
      this.#upTo = number;
      return;
    }
    for (let passed = this.#upTo + 1; passed <= number; passed++) this.#clear(passed);
    this.#upTo = number;
    this.#advance();
  }

  /** Makes everything settled above `upTo` news again, for a peer that may not have heard it. */
  renew(): void {
    this.#news = [];
    for (let number = this.#upTo + 1; number <= this.#highest; number++) {
      if (this.#isSet(number)) this.#tell(number);
    }
  }

  get hasNews(): boolean {
    return this.#news.length > 0;
  }

  /** What was settled above `upTo` and not taken before: ascending ranges apart from each other. */
  takeNews(): SettledRange[] {
    const news = this.#news;
    if (news.length === 0) return news;
    this.#news = [];
    news.sort((a, b) => a.first - b.first);
    const ranges: SettledRange[] = [];
    let last: { first: number; count: number } | undefined;
    for (const range of news) {
      const end = range.first + range.count;
      if (end - 1 <= this.#upTo) continue;
      if (range.first <= this.#upTo) {
        range.first = this.#upTo + 1;
        range.count = end - range.first;
      }
      if (last !== undefined && range.first === last.first + last.count) {
        last.count += range.count;
      } else {
        ranges.push(range);
        last = range;
      }
    }
    return ranges;
  }

  #tell(number: number): void {
    const last = this.#news.at(-1);
    if (last !== undefined && number === last.first + last.count) last.count++;
    else this.#news.push({ first: number, count: 1 });
  }

  #advance(): void {
    let next = this.#upTo + 1;
    while (next <= this.#highest && this.#isSet(next)) {
      this.#clear(next);
      next++;
    }
    this.#upTo = next - 1;
  }

  #grow(number: number): void {
    let capacity = this.#capacity;
    while (number > this.#upTo + capacity) capacity *= 2;
    const old = this.#bits;
    const oldCapacity = this.#capacity;
    this.#bits = new Uint8Array(capacity >> 3);
    this.#capacity = capacity;
    for (let known = this.#upTo + 1; known <= this.#highest; known++) {
      const slot = known % oldCapacity;
      if ((old[slot >> 3]! & (1 << (slot & 7))) !== 0) this.#set(known);
    }
  }

  #isSet(number: number): boolean {
    const slot = number % this.#capacity;
    return (this.#bits[slot >> 3]! & (1 << (slot & 7))) !== 0;
  }

  #set(number: number): void {
    const slot = number % this.#capacity;
    this.#bits[slot >> 3] = this.#bits[slot >> 3]! | (1 << (slot & 7));
  }

  #clear(number: number): void {
    const slot = number % this.#capacity;
    this.#bits[slot >> 3] = this.#bits[slot >> 3]! & ~(1 << (slot & 7));
  }
}
