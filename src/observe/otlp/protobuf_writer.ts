const ENCODER = new TextEncoder();
/** Longest text whose characters are copied one by one: the length of a longer one takes more bytes. */
const MAX_SHORT_TEXT = 127;
const TWO_32 = 4_294_967_296;

/** Writes a message of Protobuf into a buffer that grows and is used again for the next message. */
export class ProtobufWriter {
  #bytes = new Uint8Array(4_096);
  #at = 0;

  /** Forgets everything. */
  reset(): void {
    this.#at = 0;
  }

  /** Returns a copy of what has been written. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at);
  }

  /** Begins a field whose length is known at its end. @returns what `end` takes */
  begin(tag: number): number {
    this.varint(tag);
    this.#room(1);
    return this.#at++;
  }

  /** Ends the field that began at `start`. */
  end(start: number): void {
    const length = this.#at - start - 1;
    if (length < 0x80) {
      this.#bytes[start] = length;
      return;
    }
    // One byte was left for the length.
    const more = varintBytes(length) - 1;
    this.#room(more);
    this.#bytes.copyWithin(start + 1 + more, start + 1, this.#at);
    this.#at = start;
    this.varint(length);
    this.#at += length;
  }

  /** Writes a whole number from 0 to 2^53 − 1: a value, a length or a tag. */
  varint(value: number): void {
    this.#room(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = rest % 0x80 | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  /** Writes a number that is no whole one, or below 0. */
  double(value: number): void {
    this.#room(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  fixed32(value: number): void {
    this.#room(4);
    this.#u32(value);
  }

  /** Writes microseconds as nanoseconds, which a number does not hold, in a `fixed64`. */
  nanoseconds(us: number): void {
    this.#room(8);
    const high = Math.floor(us / TWO_32);
    const low = (us - high * TWO_32) * 1_000;
    this.#u32(low);
    this.#u32(high * 1_000 + Math.floor(low / TWO_32));
  }

  /** Writes a text behind its length. */
  text(value: string): void {
    const { length } = value;
    if (length <= MAX_SHORT_TEXT) {
      this.#room(1 + length);
      const bytes = this.#bytes;
      const start = this.#at + 1;
      let i = 0;
      for (; i < length; i++) {
        const code = value.charCodeAt(i);
        if (code > 0x7f) break;
        bytes[start + i] = code;
      }
      if (i === length) {
        bytes[start - 1] = length;
        this.#at = start + length;
        return;
      }
    }
    const utf8 = ENCODER.encode(value);
    this.varint(utf8.length);
    this.raw(utf8);
  }

  /** Writes the bytes that hexadecimal digits stand for, behind their length of 127 at most. */
  hex(digits: string): void {
    const length = digits.length >> 1;
    this.#room(1 + length);
    this.#bytes[this.#at++] = length;
    for (let i = 0; i < digits.length; i += 2) {
      this.#bytes[this.#at++] = nibble(digits.charCodeAt(i)) << 4 |
        nibble(digits.charCodeAt(i + 1));
    }
  }

  /** Writes bytes that are encoded already. */
  raw(encoded: Uint8Array): void {
    this.#room(encoded.length);
    const bytes = this.#bytes;
    const at = this.#at;
    for (let i = 0; i < encoded.length; i++) bytes[at + i] = encoded[i]!;
    this.#at = at + encoded.length;
  }

  /** Writes the lowest 32 bits. */
  #u32(value: number): void {
    const word = value >>> 0;
    this.#bytes[this.#at++] = word;
    this.#bytes[this.#at++] = word >>> 8;
    this.#bytes[this.#at++] = word >>> 16;
    this.#bytes[this.#at++] = word >>> 24;
  }

  #room(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#at + count, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

/** Returns the value of one lower-case hexadecimal digit. */
function nibble(code: number): number {
  return code <= 0x39 ? code - 0x30 : code - 0x57;
}
