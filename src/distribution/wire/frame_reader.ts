import { malformed } from "./frame_error.ts";
import { FRAME_HEADER_BYTES } from "./frame_type.ts";
import { readU16, readU32, readU53 } from "./integers.ts";
import { readText } from "./text.ts";

/** Reads one frame field by field; every method throws FrameError when the field is not there. */
export class FrameReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #frame: string;
  #at: number;

  /** @param frame its name, for errors */
  constructor(frame: string, bytes: Uint8Array, range: { start: number; end: number }) {
    this.#frame = frame;
    this.#bytes = bytes;
    this.#at = range.start + FRAME_HEADER_BYTES;
    this.#end = range.end;
  }

  u8(): number {
    return this.#bytes[this.#take(1)]!;
  }

  u16(): number {
    return readU16(this.#bytes, this.#take(2));
  }

  u32(): number {
    return readU32(this.#bytes, this.#take(4));
  }

  /** A `u64` below 2^53, at least `least`. */
  u53(least = 0): number {
    const value = readU53(this.#bytes, this.#take(8));
    if (value === undefined || value < least) {
      throw malformed(this.#frame, `an integer is not from ${least} to below 2^53`);
    }
    return value;
  }

  /** A `u16` length and that many bytes of UTF-8; `least` bytes at least. */
  text(maxBytes: number, least = 0): string {
    const length = this.u16();
    const start = this.#take(length);
    const text = length <= maxBytes && length >= least
      ? readText(this.#bytes, start, start + length)
      : undefined;
    if (text === undefined) {
      throw malformed(this.#frame, `a text of ${length} bytes is empty, too long or not UTF-8`);
    }
    return text;
  }

  /** A `u32` length and that many bytes: a view of the buffer. */
  bytes(): Uint8Array {
    const length = this.u32();
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** `count` bytes: a view of the buffer. */
  raw(count: number): Uint8Array {
    const start = this.#take(count);
    return this.#bytes.subarray(start, start + count);
  }

  /** Position of the next field. */
  get at(): number {
    return this.#at;
  }

  /** True when nothing is left to read. */
  get isAtEnd(): boolean {
    return this.#at === this.#end;
  }

  fail(what: string): never {
    throw malformed(this.#frame, what);
  }

  #take(count: number): number {
    const at = this.#at;
    if (at + count > this.#end) throw malformed(this.#frame, "it is cut short");
    this.#at = at + count;
    return at;
  }
}
