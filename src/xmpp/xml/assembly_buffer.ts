import { failScan } from "./scan_failure.ts";

const FIRST_BYTES = 1024;
/** A larger buffer is released as soon as it is empty, so that idle streams hold little. */
const KEPT_BYTES = 4096;

/** A bounded buffer for the pieces of one element that no chunk held whole. */
export class AssemblyBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #length = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Bytes that may still be appended. */
  get room(): number {
    return this.#maxBytes - this.#length;
  }

  /** Appends `chunk` from `start` to `end`. @throws StreamFailure `policy-violation` beyond the bound */
  append(chunk: Uint8Array, start: number, end: number): void {
    const needed = this.#length + end - start;
    if (needed > this.#maxBytes) failTooLarge(this.#maxBytes);
    if (needed > this.#bytes.length) {
      const size = Math.min(this.#maxBytes, Math.max(FIRST_BYTES, needed, this.#bytes.length * 2));
      const larger = new Uint8Array(size);
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(chunk.subarray(start, end), this.#length);
    this.#length = needed;
  }

  /** Empties the buffer; its content stays readable until the next `append`. */
  clear(): void {
    this.#length = 0;
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = new Uint8Array(0);
  }
}

/** Refuses an element or header above the bound. */
export function failTooLarge(maxBytes: number): never {
  failScan("policy-violation", `an element of more than ${maxBytes} bytes`);
}
