import { failScan } from "./scan_failure.ts";

const LT = 0x3c;
const GT = 0x3e;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;

/**
 * Searches the end of a tag that came in pieces. It looks at each byte once, so that a peer that sends a
 * long tag byte by byte does not make us read it again and again. The scanner checks the whole tag
 * later.
 */
export class TagEndFinder {
  #from = -1;
  #quote = 0;

  /** True between `begin` and the `find` that succeeds. */
  get isActive(): boolean {
    return this.#from !== -1;
  }

  /** Starts after the `<`; `from` counts from the base that `find` gets. */
  begin(from: number): void {
    this.#from = from;
    this.#quote = 0;
  }

  reset(): void {
    this.#from = -1;
  }

  /** True when the tag's `>` lies before `end`. */
  find(bytes: Uint8Array, base: number, end: number): boolean {
    let quote = this.#quote;
    let p = base + this.#from;
    for (; p < end; p++) {
      const byte = bytes[p]!;
      if (byte === LT) failScan("not-well-formed", "a < inside a tag");
      if (quote !== 0) {
        if (byte === quote) quote = 0;
      } else if (byte === GT) {
        this.#from = -1;
        return true;
      } else if (byte === DOUBLE_QUOTE || byte === SINGLE_QUOTE) {
        quote = byte;
      }
    }
    this.#quote = quote;
    this.#from = p - base;
    return false;
  }
}
