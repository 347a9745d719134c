/** Random bytes that are drawn at once: a call to the system's source costs as much as many bytes. */
const POOL_BYTES = 1_024;

/** Ids for traces and spans, which must be unique and need not be secret. */
export class TraceIds {
  readonly #pool = new Uint8Array(POOL_BYTES);
  #used = POOL_BYTES;

  /** Returns a new id of so many bytes, as lower-case hexadecimal. */
  next(byteLength: number): string {
    if (this.#used + byteLength > POOL_BYTES) {
      crypto.getRandomValues(this.#pool);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += byteLength;
    return this.#pool.subarray(start, this.#used).toHex();
  }
}
