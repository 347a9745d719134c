/**
 * The share rule: one holder may have at most a quarter of what is still free, which is a fifth of the
 * bound while it is the only one. Whoever comes later always finds something free.
 */
const SINGLE_PART = 4;
/** A crowd may have at most as much as is still free: half of the bound while it is the only one. */
const CROWD_PART = 1;

/** A tab tells its share of changes in steps of so many bytes, so that small ones cost a sum only. */
const TAB_STEP_BYTES = 65_536;

/** Bytes that a retained stanza costs besides its text: an array of its own, and what routing knows of it. */
export const RETAINED_OVERHEAD_BYTES = 1_024;

/** What all holders together may have. */
export interface FairBounds {
  /** @default unlimited */
  readonly maxItems?: number;
  /** @default unlimited */
  readonly maxBytes?: number;
  /** A wider bound that everything held here counts for as well. @default none */
  readonly within?: FairShares;
}

/** Whose shares something counts for, by names that never mean both kinds. */
export interface Holders {
  /** Such as an account. */
  readonly singles: readonly string[];
  /** Each stands for many: all that a component speaks for, or that a datacenter brings. */
  readonly crowds: readonly string[];
}

/** What one holder has. */
interface Share {
  items: number;
  bytes: number;
}

/**
 * A bound that many holders share fairly: who holds little finds room beside who holds much.
 *
 * Each item counts for one or several holders (its sender, its recipient, the peer that brought it).
 * It is taken while the bound has room for it, and none of these holders would have more than a quarter
 * of what is free; for a crowd, more than what is free. A holder that has nothing needs room only. Every
 * operation costs the same however many holders there are.
 */
export class FairShares {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly #within: FairShares | undefined;
  /** False where there is nothing to share: then only sums are kept, and `#within` knows the shares. */
  readonly #isBound: boolean;
  readonly #shares = new Map<string, Share>();
  #items = 0;
  #bytes = 0;

  constructor({ maxItems = Infinity, maxBytes = Infinity, within }: FairBounds = {}) {
    this.maxItems = maxItems;
    this.maxBytes = maxBytes;
    this.#within = within;
    this.#isBound = maxItems < Infinity || maxBytes < Infinity;
  }

  /** Items held. */
  get items(): number {
    return this.#items;
  }

  /** Bytes held, whoever holds them. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Holders that have something. */
  get holders(): number {
    return this.#shares.size;
  }

  /** Bytes that `holder` has. */
  bytesOf(holder: string): number {
    return this.#shares.get(holder)?.bytes ?? 0;
  }

  /** True when one more item of `bytes` finds room, for each of `holders`. */
  mayHold(holders: Holders, bytes: number): boolean {
    return this.#items < this.maxItems && this.#bytes + bytes <= this.maxBytes &&
      this.#areWithin(holders, 1, bytes) &&
      (this.#within === undefined || this.#within.mayHold(holders, bytes));
  }

  /** Counts one more item, whatever the bounds. */
  hold(holders: Holders, bytes: number): void {
    this.#items++;
    this.#bytes += bytes;
    this.#change(holders, 1, bytes);
    this.#within?.hold(holders, bytes);
  }

  /** Takes back what `hold` was told with the same arguments. */
  release(holders: Holders, bytes: number): void {
    this.#items--;
    this.#bytes -= bytes;
    this.#change(holders, -1, -bytes);
    this.#within?.release(holders, bytes);
  }

  /** True when there is room for `bytes`, whoever holds them. */
  mayGrow(bytes: number): boolean {
    return this.#bytes + bytes <= this.maxBytes &&
      (this.#within === undefined || this.#within.mayGrow(bytes));
  }

  /** Counts `bytes` that are no items of their own, whatever the bounds; below 0 to take them back. */
  grow(bytes: number): void {
    this.#bytes += bytes;
    this.#within?.grow(bytes);
  }

  /** True when the shares of `holders` allow `bytes` more; whether there is room, `mayGrow` tells. */
  mayOwe(holders: Holders, bytes: number): boolean {
    return this.#areWithin(holders, 0, bytes) &&
      (this.#within === undefined || this.#within.mayOwe(holders, bytes));
  }

  /** Counts `bytes` for `holders` that `grow` counts for all; below 0 to take them back. */
  owe(holders: Holders, bytes: number): void {
    this.#change(holders, 0, bytes);
    this.#within?.owe(holders, bytes);
  }

  #areWithin({ singles, crowds }: Holders, items: number, bytes: number): boolean {
    if (!this.#isBound) return true;
    const freeBytes = this.maxBytes - this.#bytes;
    const freeItems = this.maxItems - this.#items;
    const isWithin = (holder: string, part: number) => {
      const share = this.#shares.get(holder);
      return share === undefined || ((share.bytes + bytes) * part <= freeBytes &&
        (share.items + items) * part <= freeItems);
    };
    return singles.every((single) => isWithin(single, SINGLE_PART)) &&
      crowds.every((crowd) => isWithin(crowd, CROWD_PART));
  }

  #change({ singles, crowds }: Holders, items: number, bytes: number): void {
    if (!this.#isBound) return;
    for (const single of singles) this.#changeOne(single, items, bytes);
    for (const crowd of crowds) this.#changeOne(crowd, items, bytes);
  }

  #changeOne(holder: string, items: number, bytes: number): void {
    let share = this.#shares.get(holder);
    if (share === undefined) this.#shares.set(holder, share = { items: 0, bytes: 0 });
    share.items += items;
    share.bytes += bytes;
    if (share.items === 0 && share.bytes === 0) this.#shares.delete(holder);
  }
}

/**
 * What one place (a session's queue, a sender's part of a lane) holds for somebody, whose share learns of it
 * in steps of 64 KiB, rounded down: a place that holds little costs no look at the shares. The bound itself
 * is told of every byte with `FairShares.grow`.
 */
export class ShareTab {
  readonly #shares: FairShares;
  readonly #holders: Holders;
  #bytes = 0;
  #toldBytes = 0;

  constructor(shares: FairShares, holders: Holders) {
    this.#shares = shares;
    this.#holders = holders;
  }

  /** Bytes on it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True when the share allows `bytes` more. */
  mayAdd(bytes: number): boolean {
    const untold = this.#bytes + bytes - this.#toldBytes;
    return untold < TAB_STEP_BYTES || this.#shares.mayOwe(this.#holders, untold);
  }

  /** Counts `bytes` more, whatever the bounds. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes - this.#toldBytes >= TAB_STEP_BYTES) this.#tell();
  }

  /** Takes `bytes` off it. */
  remove(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#toldBytes - this.#bytes >= TAB_STEP_BYTES) this.#tell();
  }

  #tell(): void {
    const bytes = this.#bytes - this.#bytes % TAB_STEP_BYTES;
    this.#shares.owe(this.#holders, bytes - this.#toldBytes);
    this.#toldBytes = bytes;
  }
}
