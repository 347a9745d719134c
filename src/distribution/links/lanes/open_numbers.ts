import type { SettledRange } from "../../wire/mod.ts";

/**
 * Numbers of a lane that were received and are not settled yet.
 *
 * Only open numbers take memory, however many others have come and gone since: one that a sleeping
 * client keeps open for long costs no more than itself. A number that is settled before the next
 * one comes, as most are, costs nothing.
 */
export class OpenNumbers {
  #received: number;
  /** Received, not settled, and not the last one received; in ascending order. */
  readonly #open = new Set<number>();
  /** The last number received while it is open; 0 when it is not. */
  #newest = 0;
  /** Lower bound of the open numbers. */
  #floor: number;
  /** Ranges settled since `takeNews`, with open numbers below. */
  #news: { first: number; count: number }[] = [];

  /** @param upTo all numbers up to this one count as received and settled */
  constructor(upTo: number) {
    this.#received = upTo;
    this.#floor = upTo + 1;
  }

  /** The last number received; all before it were too. */
  get received(): number {
    return this.#received;
  }

  /** Number of open numbers. */
  get count(): number {
    return this.#open.size + (this.#newest === 0 ? 0 : 1);
  }

  /** All numbers up to this one are settled. */
  get upTo(): number {
    if (this.#open.size === 0) return this.#lastBelowNewest;
    while (!this.#open.has(this.#floor)) this.#floor++;
    return this.#floor - 1;
  }

  /** Receives the number behind the last one. */
  receive(): void {
    if (this.#newest !== 0) {
      if (this.#open.size === 0) this.#floor = this.#newest;
      this.#open.add(this.#newest);
    }
    this.#newest = ++this.#received;
  }

  /** Settles one number; one that is not open stays as it is. */
  settle(number: number): void {
    if (number === this.#newest) this.#newest = 0;
    else if (!this.#open.delete(number)) return;
    if (this.#open.size > 0) this.#tell(number);
  }

  /** Receives and settles every number up to `number`. */
  skipTo(number: number): void {
    for (const open of this.#open) {
      if (open > number) break;
      this.#open.delete(open);
    }
    if (this.#newest <= number) this.#newest = 0;
    if (this.#received < number) this.#received = number;
  }

  /** The open numbers, ascending. */
  *all(): IterableIterator<number> {
    yield* this.#open;
    if (this.#newest !== 0) yield this.#newest;
  }

  /**
   * Makes all settled numbers above `upTo` news again, for a peer that may not have heard of them.
   */
  renew(): void {
    this.#news = [];
    let next = this.upTo + 1;
    for (const open of this.all()) {
      if (open > next) this.#news.push({ first: next, count: open - next });
      next = open + 1;
    }
    if (next <= this.#received) this.#news.push({ first: next, count: this.#received - next + 1 });
  }

  /** Takes the numbers above `upTo` settled since the last call, as separate ascending ranges. */
  takeNews(): SettledRange[] {
    const news = this.#news;
    if (news.length === 0) return news;
    this.#news = [];
    news.sort((a, b) => a.first - b.first);
    const { upTo } = this;
    const ranges: SettledRange[] = [];
    let last: { first: number; count: number } | undefined;
    for (const range of news) {
      const end = range.first + range.count;
      if (end - 1 <= upTo) continue;
      if (range.first <= upTo) {
        range.first = upTo + 1;
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

  get #lastBelowNewest(): number {
    return this.#newest === 0 ? this.#received : this.#newest - 1;
  }

  #tell(number: number): void {
    const last = this.#news.at(-1);
    if (last !== undefined && number === last.first + last.count) last.count++;
    else this.#news.push({ first: number, count: 1 });
  }
}
