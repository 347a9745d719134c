/**
 * The share rule: one holder may have at most a quarter of what is still free. While it is the only
 * holder, that is a fifth of the bound. A later holder always finds something free.
 */
const SINGLE_PART = 4;
/**
 * A crowd may have at most as much as is still free. While it is the only holder, that is half of the
 * bound.
 */
const CROWD_PART = 1;

/** Step in which a tab reports its size to its share, so that small changes cost only an addition. */
const TAB_STEP_BYTES = 65_536;

/** Bytes that a retained stanza costs besides its text: its own array and its routing data. */
export const RETAINED_OVERHEAD_BYTES = 1_024;

/** Bounds on what all holders have together. */
export interface FairBounds {
  /** @default unlimited */
  readonly maxItems?: number;
  /** @default unlimited */
  readonly maxBytes?: number;
  /** A wider bound that also counts everything held here. @default none */
  readonly within?: FairShares;
}

/** The holders that an item counts for. No name stands for both a single and a crowd. */
export interface Holders {
  /** Single holders, such as an account. */
  readonly singles: readonly string[];
  /** Holders that stand for many: everything that a component speaks for, or that a datacenter brings. */
  readonly crowds: readonly string[];
}

/** Items and bytes of one holder. */
interface Share {
  items: number;
  bytes: number;
}

/**
 * A bound that many holders share fairly: a holder with little finds room beside a holder with much.
 *
 * Each item counts for one or several holders (its sender, its recipient, the peer that brought it). An
 * item is taken under two conditions. The bound has room for it, and none of its holders would have more
 * than a quarter of what is free (a crowd: more than all that is free). A holder that has nothing needs
 * only room. The cost of an operation does not depend on the number of holders.
 */
export class FairShares {
  readonly maxItems: number;
  #maxBytes: number;
  readonly #within: FairShares | undefined;
  /** False without a bound of its own: then only sums are kept here, and `#within` keeps the shares. */
  readonly #isBound: boolean;
  readonly #shares = new Map<string, Share>();
  #items = 0;
  #bytes = 0;

  constructor({ maxItems = Infinity, maxBytes = Infinity, within }: FairBounds = {}) {
    this.maxItems = maxItems;
    this.#maxBytes = maxBytes;
    this.#within = within;
    this.#isBound = maxItems < Infinity || maxBytes < Infinity;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /**
   * Changes the bound on bytes. What is held above it stays.
   * @throws TypeError without a bound of its own, as it has kept no shares
   */
  resize(maxBytes: number): void {
    if (!this.#isBound) throw new TypeError("Cannot resize: there is no bound of its own");
    this.#maxBytes = maxBytes;
  }

  /** Items held. */
  get items(): number {
    return this.#items;
  }

  /** Bytes held, by all holders together. */
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

  /** True when one more item of `bytes` finds room in the bound and in the share of each of `holders`. */
  mayHold(holders: Holders, bytes: number): boolean {
    return this.#items < this.maxItems && this.#bytes + bytes <= this.maxBytes &&
      this.#areWithin(holders, 1, bytes) &&
      (this.#within === undefined || this.#within.mayHold(holders, bytes));
  }

  /** Counts one more item, even past the bounds. */
  hold(holders: Holders, bytes: number): void {
    this.#items++;
    this.#bytes += bytes;
    this.#change(holders, 1, bytes);
    this.#within?.hold(holders, bytes);
  }

  /** Undoes a `hold` with the same arguments. */
  release(holders: Holders, bytes: number): void {
    this.#items--;
    this.#bytes -= bytes;
    this.#change(holders, -1, -bytes);
    this.#within?.release(holders, bytes);
  }

  /** True when the bound has room for `bytes`, whatever the shares. */
  mayGrow(bytes: number): boolean {
    return this.#bytes + bytes <= this.maxBytes &&
      (this.#within === undefined || this.#within.mayGrow(bytes));
  }

  /** Counts `bytes` that belong to no item, even past the bounds. A negative number takes bytes back. */
  grow(bytes: number): void {
    this.#bytes += bytes;
    this.#within?.grow(bytes);
  }

  /**
   * True when the shares of `holders` allow `bytes` more. Whether the bound has room is `mayGrow`'s
   * answer.
   */
  mayOwe(holders: Holders, bytes: number): boolean {
    return this.#areWithin(holders, 0, bytes) &&
      (this.#within === undefined || this.#within.mayOwe(holders, bytes));
  }

  /**
   * Adds `bytes` to the shares of `holders`; `grow` counts them for the bound. A negative number takes
   * bytes back.
   */
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
 * The bytes that one place (a session's queue, a sender's part of a lane) holds for some holders. It
 * reports them to their shares in steps of 64 KiB, rounded down, so that a place that holds little never
 * looks at the shares. `FairShares.grow` counts every byte for the bound itself.
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

  /** Bytes on the tab. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True when the share allows `bytes` more. */
  mayAdd(bytes: number): boolean {
    const untold = this.#bytes + bytes - this.#toldBytes;
    return untold < TAB_STEP_BYTES || this.#shares.mayOwe(this.#holders, untold);
  }

  /** Counts `bytes` more, even past the bounds. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes - this.#toldBytes >= TAB_STEP_BYTES) this.#tell();
  }

  /** Takes `bytes` off the tab. */
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
