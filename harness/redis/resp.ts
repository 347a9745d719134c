import { Buffer } from "node:buffer";

/**
 * The Redis protocol, both versions of it, as bytes come in.
 *
 * Strings are binary strings (one character a byte), so that keys and values pass unharmed whatever is
 * in them; `toBinary` and `fromBinary` go between those and text.
 */

/** An error as it travels: `WRONGTYPE Operation against …`. */
export class RespError extends Error {
  override readonly name = "RespError";
  /** The first word, such as `WRONGTYPE`. */
  get code(): string {
    return this.message.split(" ", 1)[0]!; // split gives at least one part
  }
}

/** One value. Maps come as flat lists of key, value, key, value. */
export type RespValue = string | number | boolean | null | RespError | readonly RespValue[];

/** A whole value and the bytes that it came as. */
export interface DecodedValue {
  readonly value: RespValue;
  /** Own copy. */
  readonly bytes: Uint8Array;
}

/** Bounds on what the other end may make a decoder hold. */
export interface RespLimits {
  /** Bytes of one bulk string. @default 67108864 */
  readonly maxBulkBytes?: number;
  /** Items of one list. @default 1048576 */
  readonly maxItems?: number;
}

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;
const MAX_LINE_BYTES = 65_536;
/** Returned by the parsing functions when bytes are missing. */
const INCOMPLETE = Symbol("incomplete");

/** Finds values in chunks; what is incomplete waits for the rest. */
export class RespDecoder {
  #buffer: Uint8Array = new Uint8Array(0);
  #at = 0;
  readonly #maxBulkBytes: number;
  readonly #maxItems: number;

  constructor(limits: RespLimits = {}) {
    this.#maxBulkBytes = limits.maxBulkBytes ?? 64 * 1024 * 1024;
    this.#maxItems = limits.maxItems ?? 1024 * 1024;
  }

  /**
   * Takes `chunk` and gives the values that it completes, in order.
   * @throws {RespError} when this is not the protocol; the decoder is of no use after
   */
  push(chunk: Uint8Array): DecodedValue[] {
    const joined = new Uint8Array(this.#buffer.length + chunk.length);
    joined.set(this.#buffer);
    joined.set(chunk, this.#buffer.length);
    this.#buffer = joined;
    this.#at = 0;
    const decoded: DecodedValue[] = [];
    let start = 0;
    while (start < joined.length) {
      const value = this.#value();
      if (value === INCOMPLETE) break;
      decoded.push({ value, bytes: joined.slice(start, this.#at) });
      start = this.#at;
    }
    this.#buffer = joined.slice(start);
    return decoded;
  }

  #value(): RespValue | typeof INCOMPLETE {
    const line = this.#line();
    if (line === INCOMPLETE) return INCOMPLETE;
    const text = line.slice(1);
    switch (line[0]) {
      case "+":
      case "(": // a big number: its digits
        return text;
      case "-":
        return new RespError(text);
      case ":":
        return toInteger(text);
      case ",":
        return Number(text);
      case "#":
        return text === "t";
      case "_":
        return null;
      case "$":
        return this.#bulk(toInteger(text));
      case "=": { // verbatim: three letters and a colon stand before the text
        const bulk = this.#bulk(toInteger(text));
        return typeof bulk === "string" ? bulk.slice(4) : bulk;
      }
      case "!": {
        const bulk = this.#bulk(toInteger(text));
        return typeof bulk === "string" ? new RespError(bulk) : bulk;
      }
      case "*":
      case "~":
      case ">":
        return this.#list(toInteger(text));
      case "%":
        return this.#list(2 * toInteger(text));
      default:
        // Inline commands, as a person types them into a terminal.
        return line.trim() === "" ? [] : line.trim().split(/\s+/);
    }
  }

  #line(): string | typeof INCOMPLETE {
    const end = this.#buffer.indexOf(LINE_FEED, this.#at);
    if (end === -1 || end - this.#at > MAX_LINE_BYTES) {
      if (this.#buffer.length - this.#at > MAX_LINE_BYTES) throw protocolError("too big a line");
      return INCOMPLETE;
    }
    const hasReturn = end > this.#at && this.#buffer[end - 1] === CARRIAGE_RETURN;
    const line = fromBytes(this.#buffer.subarray(this.#at, hasReturn ? end - 1 : end));
    this.#at = end + 1;
    return line;
  }

  #bulk(length: number): string | null | typeof INCOMPLETE {
    if (length === -1) return null;
    if (length < 0 || length > this.#maxBulkBytes) throw protocolError("invalid bulk length");
    const end = this.#at + length;
    if (end + 2 > this.#buffer.length) return INCOMPLETE;
    const text = fromBytes(this.#buffer.subarray(this.#at, end));
    this.#at = end + 2;
    return text;
  }

  #list(count: number): readonly RespValue[] | null | typeof INCOMPLETE {
    if (count === -1) return null;
    if (count < 0 || count > this.#maxItems) throw protocolError("invalid multibulk length");
    const items: RespValue[] = [];
    for (let i = 0; i < count; i++) {
      const item = this.#value();
      if (item === INCOMPLETE) return INCOMPLETE;
      items.push(item);
    }
    return items;
  }
}

/** `+OK` and the like. */
export function encodeSimple(text: string): Uint8Array {
  return toBytes(`+${text}\r\n`);
}

/** An error; `message` begins with its code. */
export function encodeError(message: string): Uint8Array {
  return toBytes(`-${message}\r\n`);
}

/** A command, or a reply: strings as bulk strings, numbers as integers. */
export function encodeValue(value: RespValue): Uint8Array {
  return toBytes(notation(value));
}

function notation(value: RespValue): string {
  if (value === null) return "$-1\r\n";
  if (value instanceof RespError) return `-${value.message}\r\n`;
  switch (typeof value) {
    case "string":
      return `$${value.length}\r\n${value}\r\n`;
    case "number":
      return `:${value}\r\n`;
    case "boolean":
      return `:${value ? 1 : 0}\r\n`;
    default:
      return `*${value.length}\r\n${value.map(notation).join("")}`;
  }
}

/** The UTF-8 bytes of `text` as a binary string. */
export function toBinary(text: string): string {
  return fromBytes(new TextEncoder().encode(text));
}

/** The text whose UTF-8 bytes `binary` holds. */
export function fromBinary(binary: string): string {
  return new TextDecoder().decode(toBytes(binary));
}

function toBytes(binary: string): Uint8Array {
  return Buffer.from(binary, "latin1");
}

function fromBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

function toInteger(text: string): number {
  const value = Number(text);
  if (text === "" || !Number.isInteger(value)) throw protocolError(`"${text}" is no integer`);
  return value;
}

function protocolError(what: string): RespError {
  return new RespError(`ERR Protocol error: ${what}`);
}
