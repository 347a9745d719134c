/** A stock of equal blocks that the whole process reuses. */
interface BlockPool {
  readonly blockBytes: number;
  readonly maxBlocks: number;
  readonly blocks: Uint8Array[];
}

/**
 * Each pool holds at most 4 MiB. The smallest blocks suit a stanza or two, the largest a busy link's
 * turn.
 */
const POOLS: readonly BlockPool[] = [
  { blockBytes: 2048, maxBlocks: 2048, blocks: [] },
  { blockBytes: 16_384, maxBlocks: 256, blocks: [] },
  { blockBytes: 131_072, maxBlocks: 32, blocks: [] },
];

/** Bytes handed to the operating system at once, so that a long queue shows its progress. */
const MAX_PIECE_BYTES = 262_144;

const NO_BYTES: Uint8Array = new Uint8Array(0);

function takeBlock(byteLength: number): Uint8Array {
  for (const pool of POOLS) {
    if (byteLength <= pool.blockBytes) return pool.blocks.pop() ?? new Uint8Array(pool.blockBytes);
  }
  let size = POOLS.at(-1)!.blockBytes * 2;
  while (size < byteLength) size *= 2;
  return new Uint8Array(size);
}

function giveBlock(block: Uint8Array): void {
  for (const pool of POOLS) {
    if (block.length !== pool.blockBytes) continue;
    if (pool.blocks.length < pool.maxBlocks) pool.blocks.push(block);
    return;
  }
}

/**
 * The bytes that a connection still has to write, in two blocks: one being filled and one being written.
 * The operating system may still read from the latter.
 *
 * Blocks come from pools that all connections share; an idle connection holds none. A larger block
 * replaces one that is too small. The next block begins as large as the last one was full, so that a
 * busy connection does not grow anew in each turn.
 */
export class OutputBuffer {
  #filling = NO_BYTES;
  #filled = 0;
  #flying = NO_BYTES;
  #flyingStart = 0;
  #flyingEnd = 0;
  #lastFilled = 0;
  /** Appends in the block that is filled, and in the one that is written. */
  #fillingAppends = 0;
  #flyingAppends = 0;

  /** Appends whose block is not yet reported as written to its end. */
  get pendingAppends(): number {
    return this.#fillingAppends + this.#flyingAppends;
  }

  /** Bytes appended and not yet reported as written. */
  get pendingBytes(): number {
    return this.#filled + this.#flyingEnd - this.#flyingStart;
  }

  /** Appends a copy of `bytes`. */
  append(bytes: Uint8Array): void {
    const end = this.#filled + bytes.length;
    if (end > this.#filling.length) this.#grow(end);
    this.#filling.set(bytes, this.#filled);
    this.#filled = end;
    this.#fillingAppends++;
  }

  /**
   * Returns the next bytes to write, undefined when there are none. They stay untouched until `written`;
   * do not call again before that.
   */
  nextPiece(): Uint8Array | undefined {
    if (this.#flyingStart === this.#flyingEnd) {
      if (this.#filled === 0) return undefined;
      giveBlock(this.#flying);
      this.#flying = this.#filling;
      this.#flyingStart = 0;
      this.#flyingEnd = this.#lastFilled = this.#filled;
      this.#filling = NO_BYTES;
      this.#filled = 0;
      this.#flyingAppends = this.#fillingAppends;
      this.#fillingAppends = 0;
    }
    const end = Math.min(this.#flyingEnd, this.#flyingStart + MAX_PIECE_BYTES);
    return this.#flying.subarray(this.#flyingStart, end);
  }

  /** Reports that the first `byteLength` bytes of the last piece are written. */
  written(byteLength: number): void {
    this.#flyingStart += byteLength;
    if (this.#flyingStart < this.#flyingEnd) return;
    giveBlock(this.#flying);
    this.#flying = NO_BYTES;
    this.#flyingStart = this.#flyingEnd = this.#flyingAppends = 0;
  }

  /** Forgets everything. A block that the system may still read from goes to the garbage collector. */
  clear(): void {
    giveBlock(this.#filling);
    this.#filling = this.#flying = NO_BYTES;
    this.#filled = this.#flyingStart = this.#flyingEnd = 0;
    this.#fillingAppends = this.#flyingAppends = 0;
  }

  #grow(byteLength: number): void {
    const largest = POOLS.at(-1)!.blockBytes;
    const block = takeBlock(Math.max(byteLength, Math.min(this.#lastFilled, largest)));
    block.set(this.#filling.subarray(0, this.#filled));
    giveBlock(this.#filling);
    this.#filling = block;
  }
}
