/** Bytes of one slab, large enough that its own cost is small beside its content. */
export const SLAB_BYTES = 65_536;

/**
 * Hands out consecutive pieces of shared blocks, for many small byte strings that live about equally
 * long.
 *
 * A `Uint8Array` of its own for a 300-byte stanza costs about 850 bytes. A view of a slab costs its
 * length and a view object. A slab lives as long as any of its pieces, so a stanza that is kept for long
 * (a bounce) is copied out of the slab.
 */
export class SlabAllocator {
  #slab: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #used = 0;

  /** Returns a view of `byteLength` writable bytes with undefined content. */
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

  /** Copies `bytes` into a slab. */
  copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const piece = this.allocate(bytes.length);
    piece.set(bytes);
    return piece;
  }
}
