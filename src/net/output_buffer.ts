/** Bytes of a pooled block: what most turns of most connections fit into. */
const BLOCK_BYTES = 16_384;

/** Blocks kept for reuse by the whole process (4 MiB). */
const MAX_POOLED_BLOCKS = 256;

/** Bytes handed to the operating system at once, so that a long queue shows its progress. */
const MAX_PIECE_BYTES = 262_144;

const NO_BYTES: Uint8Array = new Uint8Array(0);

const pool: Uint8Array[] = [];

function takeBlock(byteLength: number): Uint8Array {
  if (byteLength <= BLOCK_BYTES) return pool.pop() ?? new Uint8Array(BLOCK_BYTES);
  let size = BLOCK_BYTES * 2;
  while (size < byteLength) size *= 2;
  return new Uint8Array(size);
}

function giveBlock(block: Uint8Array): void {
  if (block.length === BLOCK_BYTES && pool.length < MAX_POOLED_BLOCKS) pool.push(block);
}

/**
 * The bytes that a connection still has to write: one block that is being filled and one that is
 * being written, because the operating system may still read from the latter.
 *
 * Blocks come from a pool that all connections share; an idle connection holds none. A block that
 * is too small is replaced by one of at least twice its size, so a queue allocates less than three
 * times what it holds.
 */
export class OutputBuffer {
  #filling = NO_BYTES;
  #filled = 0;
  #flying = NO_BYTES;
  #flyingStart = 0;
  #flyingEnd = 0;

  /** Bytes appended and not yet reported as written. */
  get pendingBytes(): number {
    return this.#filled + this.#flyingEnd - this.#flyingStart;
  }

  /** Copies `bytes` behind what is there. */
  append(bytes: Uint8Array): void {
    const end = this.#filled + bytes.length;
    if (end > this.#filling.length) this.#grow(end);
    this.#filling.set(bytes, this.#filled);
    this.#filled = end;
  }

  /**
   * The next bytes to write, undefined when there are none. They stay untouched until `written`;
   * before that it must not be called again.
   */
  nextPiece(): Uint8Array | undefined {
    if (this.#flyingStart === this.#flyingEnd) {
      if (this.#filled === 0) return undefined;
      giveBlock(this.#flying);
      this.#flying = this.#filling;
      this.#flyingStart = 0;
      this.#flyingEnd = this.#filled;
      this.#filling = NO_BYTES;
      this.#filled = 0;
    }
    const end = Math.min(this.#flyingEnd, this.#flyingStart + MAX_PIECE_BYTES);
    return this.#flying.subarray(this.#flyingStart, end);
  }

  /** Tells that the first `byteLength` bytes of the last piece are gone. */
  written(byteLength: number): void {
    this.#flyingStart += byteLength;
    if (this.#flyingStart < this.#flyingEnd) return;
    giveBlock(this.#flying);
    this.#flying = NO_BYTES;
    this.#flyingStart = this.#flyingEnd = 0;
  }

  /** Forgets everything. A block that may still be read from is left to the garbage collector. */
  clear(): void {
    giveBlock(this.#filling);
    this.#filling = this.#flying = NO_BYTES;
    this.#filled = this.#flyingStart = this.#flyingEnd = 0;
  }

  #grow(byteLength: number): void {
    const block = takeBlock(byteLength);
    block.set(this.#filling.subarray(0, this.#filled));
    giveBlock(this.#filling);
    this.#filling = block;
  }
}
