import { Buffer } from "node:buffer";
import { joinBytes } from "../../../src/base/mod.ts";

/** Reads the little-endian numbers and texts of a message. Reading past its end throws. */
export class ByteReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#data.length;
  }

  skip(count: number): void {
    this.#at += count;
  }

  u8(): number {
    return this.#data.readUInt8(this.#step(1));
  }

  u16(): number {
    return this.#data.readUInt16LE(this.#step(2));
  }

  u32(): number {
    return this.#data.readUInt32LE(this.#step(4));
  }

  i32(): number {
    return this.#data.readInt32LE(this.#step(4));
  }

  u64(): bigint {
    return this.#data.readBigUInt64LE(this.#step(8));
  }

  i64(): bigint {
    return this.#data.readBigInt64LE(this.#step(8));
  }

  f64(): number {
    return this.#data.readDoubleLE(this.#step(8));
  }

  bytes(count: number): Uint8Array {
    const at = this.#step(count);
    return new Uint8Array(this.#data.subarray(at, at + count));
  }

  /** Reads UTF-16 text of so many code units. */
  text(units: number): string {
    return Buffer.from(this.bytes(2 * units)).toString("utf16le");
  }

  /** Reads what is left as UTF-16 text. */
  restAsText(): string {
    return this.text((this.#data.length - this.#at) >> 1);
  }

  #step(count: number): number {
    const at = this.#at;
    if (at + count > this.#data.length) throw new RangeError("Cannot read past a message's end");
    this.#at += count;
    return at;
  }
}

/** Writes the little-endian numbers and texts of a message. */
export class ByteWriter {
  readonly #parts: Uint8Array[] = [];

  u8(...values: readonly number[]): this {
    return this.raw(Uint8Array.from(values));
  }

  u16(value: number): this {
    return this.#number(2, (buffer) => buffer.writeUInt16LE(value));
  }

  u32(value: number): this {
    return this.#number(4, (buffer) => buffer.writeUInt32LE(value));
  }

  i32(value: number): this {
    return this.#number(4, (buffer) => buffer.writeInt32LE(value));
  }

  i64(value: bigint): this {
    return this.#number(8, (buffer) => buffer.writeBigInt64LE(value));
  }

  f64(value: number): this {
    return this.#number(8, (buffer) => buffer.writeDoubleLE(value));
  }

  raw(bytes: Uint8Array): this {
    this.#parts.push(bytes);
    return this;
  }

  /** Writes a text behind its length in one byte. */
  shortText(text: string): this {
    return this.u8(text.length).raw(utf16(text));
  }

  /** Writes a text behind its length in two bytes. */
  longText(text: string): this {
    return this.u16(text.length).raw(utf16(text));
  }

  done(): Uint8Array {
    return joinBytes(this.#parts);
  }

  #number(bytes: number, write: (buffer: Buffer) => void): this {
    const buffer = Buffer.alloc(bytes);
    write(buffer);
    return this.raw(buffer);
  }
}

/** Encodes a text as the protocol has it. */
export function utf16(text: string): Uint8Array {
  return Buffer.from(text, "utf16le");
}
