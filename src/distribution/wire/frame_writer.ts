import { checkInteger, writeU16, writeU32, writeU53 } from "./integers.ts";
import { maxTextBytes, writeText } from "./text.ts";

/**
 * Builds one frame in a buffer that grows; for frames that are not written per stanza. Throws
 * RangeError on a number that the frame's reader would refuse, so that no such frame is sent.
 */
export class FrameWriter {
  #bytes: Uint8Array;
  #at = 5;

  constructor(type: number, room = 512) {
    this.#bytes = new Uint8Array(room);
    this.#bytes[4] = type;
  }

  /** Bytes so far, the length and type included. */
  get length(): number {
    return this.#at;
  }

  u8(value: number): void {
    checkInteger(value, 0xff);
    this.#room(1);
    this.#bytes[this.#at++] = value;
  }

  u16(value: number): void {
    checkInteger(value, 0xffff);
    this.#room(2);
    writeU16(this.#bytes, this.#at, value);
    this.#at += 2;
  }

  u32(value: number): void {
    checkInteger(value, 0xffffffff);
    this.#room(4);
    writeU32(this.#bytes, this.#at, value);
    this.#at += 4;
  }

  /** An integer in [0, 2^53) as a `u64`. */
  u53(value: number): void {
    checkInteger(value, Number.MAX_SAFE_INTEGER);
    this.#room(8);
    writeU53(this.#bytes, this.#at, value);
    this.#at += 8;
  }

  /** A `u16` length and the text. @throws RangeError above `maxBytes` */
  text(value: string, maxBytes: number): void {
    this.#room(2 + maxTextBytes(value));
    const start = this.#at + 2;
    const end = writeText(this.#bytes, start, value);
    if (end - start > maxBytes) {
      throw new RangeError(`Cannot encode text of ${end - start} bytes: the limit is ${maxBytes}`);
    }
    writeU16(this.#bytes, this.#at, end - start);
    this.#at = end;
  }

  /** A `u32` length and the bytes. */
  bytes(value: Uint8Array): void {
    this.u32(value.length);
    this.raw(value);
  }

  /** Appends bytes that contain their own length. */
  raw(value: Uint8Array): void {
    this.#room(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  /** Writes a `u16` at `at`: a count that is known only now. */
  patchU16(at: number, value: number): void {
    checkInteger(value, 0xffff);
    writeU16(this.#bytes, at, value);
  }

  /** Returns the whole frame; no field may be added any more. */
  finish(): Uint8Array {
    writeU32(this.#bytes, 0, this.#at - 4);
    return this.#bytes.subarray(0, this.#at);
  }

  #room(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#at + count, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
  }
}
