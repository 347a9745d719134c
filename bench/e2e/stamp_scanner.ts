/** The byte that announces a stamp: it stands nowhere else in what the bench sends. */
export const STAMP_MARK = 0x7e; // ~
/** Decimal digits of a stamp. */
export const STAMP_DIGITS = 12;

const ZERO = 0x30;

/**
 * Finds the stamps in a byte stream, however it is cut into chunks: this, and not a parser, is how
 * the load generator counts what arrives, so that the machine's time goes to the nodes.
 */
export class StampScanner {
  readonly #onStamp: (stamp: number) => void;
  /** Digits still to come of a stamp that a chunk ended in. */
  #missing = 0;
  #value = 0;

  constructor(onStamp: (stamp: number) => void) {
    this.#onStamp = onStamp;
  }

  push(chunk: Uint8Array): void {
    let at = this.#missing > 0 ? this.#digits(chunk, 0) : 0;
    while ((at = chunk.indexOf(STAMP_MARK, at)) >= 0) {
      this.#missing = STAMP_DIGITS;
      this.#value = 0;
      at = this.#digits(chunk, at + 1);
    }
  }

  #digits(chunk: Uint8Array, start: number): number {
    const end = Math.min(chunk.length, start + this.#missing);
    let value = this.#value;
    for (let at = start; at < end; at++) value = value * 10 + chunk[at]! - ZERO;
    this.#value = value;
    this.#missing -= end - start;
    if (this.#missing === 0) this.#onStamp(value);
    return end;
  }
}

/** Writes `value` as `STAMP_DIGITS` digits at `offset`. */
export function writeStamp(target: Uint8Array, offset: number, value: number): void {
  let rest = value;
  for (let at = offset + STAMP_DIGITS - 1; at >= offset; at--) {
    const shorter = Math.floor(rest / 10);
    target[at] = ZERO + rest - shorter * 10;
    rest = shorter;
  }
}
