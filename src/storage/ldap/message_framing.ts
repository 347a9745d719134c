import { Buffer } from "node:buffer";

/** Tag of a BER sequence, with which each message of LDAP begins (RFC 4511 §4.1.1). */
const SEQUENCE = 0x30;
/** Fewest bytes in a message: its number and an operation without content. */
const LEAST_BYTES = 5;
/** Most bytes by which a length is written. */
const MAX_LENGTH_BYTES = 4;

/** A server that sends something that is no LDAP, or more of it than is taken. */
export class FramingError extends Error {
  readonly kind: "garbled" | "too-large";

  constructor(kind: FramingError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * Cuts the bytes of a server into messages. A message begins with its length, which is checked before
 * anything is kept of it.
 */
export class MessageFraming {
  readonly #maxBytes: number;
  #header: number[] = [];
  /** The message that arrives, with its header. */
  #message: Buffer | undefined;
  #filled = 0;

  /** @param maxBytes bytes of a message without its header */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Returns the messages that are whole now, each in bytes of its own.
   *
   * @throws FramingError
   */
  push(chunk: Uint8Array): readonly Buffer[] {
    const whole: Buffer[] = [];
    for (let at = 0; at < chunk.length;) {
      if (this.#message === undefined) {
        this.#header.push(chunk[at++]!);
        this.#begin();
        continue;
      }
      const part = chunk.subarray(at, at + this.#message.length - this.#filled);
      this.#message.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled < this.#message.length) continue;
      whole.push(this.#message);
      this.#message = undefined;
    }
    return whole;
  }

  #begin(): void {
    const header = this.#header;
    const bytes = contentBytesOf(header);
    if (bytes === undefined) return;
    if (bytes > this.#maxBytes) {
      throw new FramingError("too-large", `a message of ${bytes} bytes, above ${this.#maxBytes}`);
    }
    this.#message = Buffer.alloc(header.length + bytes);
    this.#message.set(header);
    this.#filled = header.length;
    this.#header = [];
  }
}

/** Returns the length that a header announces; undefined while more of it is to come. */
function contentBytesOf([tag, first, ...others]: readonly number[]): number | undefined {
  if (tag !== SEQUENCE) throw new FramingError("garbled", "its answer is no LDAP message");
  if (first === undefined) return undefined;
  let bytes = first;
  if (first >= 0x80) {
    const count = first - 0x80;
    if (count < 1 || count > MAX_LENGTH_BYTES) {
      throw new FramingError("garbled", "its answer has no length");
    }
    if (others.length < count) return undefined;
    bytes = others.reduce((sum, each) => sum * 256 + each, 0);
  }
  if (bytes < LEAST_BYTES) throw new FramingError("garbled", "its answer is no LDAP message");
  return bytes;
}
