/** Bytes in one slab: large enough that its own cost is small beside what it holds. */
export const SLAB_BYTES = 65_536;

/**
 * Hands out consecutive pieces of shared blocks, for many small byte strings that live about
 * equally long.
 *
 * A `Uint8Array` of its own for a 300-byte stanza costs about 850 bytes; a view of a slab costs its
 * length and a view object. A slab lives as long as anything in it does, so what is kept for long
 * (bounce) is copied out on its own.
 */
export class SlabAllocator {
  #slab: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #used = 0;

  /** A view of `byteLength` writable bytes; its content is undefined. */
  allocate(byteLength: number): Uint8Array<ArrayBuffer> {
    if (byteLength > SLAB_BYTES >> 2) return new Uint8Array(byteLength);
    if (this.#used + byteLength > this.#slab.length) {
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used = start + byteLength;
    return this.#slab.subarray(start, start + byteLength);
  }

  /** A copy of `bytes` in a slab. */
  copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const piece = this.allocate(bytes.length);
    piece.set(bytes);
    return piece;
  }
}
