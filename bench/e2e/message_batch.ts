import { STAMP_DIGITS, writeStamp } from "./stamp_scanner.ts";

const BLANK = "0".repeat(STAMP_DIGITS);
const FILLER = "The quick brown fox jumps over the lazy dog. ";

/** Up to `capacity` equal chat messages in one buffer, told apart by id and stamp. */
export class MessageBatch {
  readonly capacity: number;
  /** Bytes of one message. */
  readonly messageBytes: number;
  readonly #bytes: Uint8Array;
  readonly #idOffset: number;
  readonly #stampOffset: number;

  /** Messages to `to` of `messageBytes` each, or as short as they get when that is less. */
  constructor(to: string, options: { readonly capacity: number; readonly messageBytes: number }) {
    const head = `<message type='chat' to='${to}' id='m${BLANK}'><body>~${BLANK} `;
    const tail = "</body></message>";
    const fillerLength = Math.max(0, options.messageBytes - head.length - tail.length);
    const filler = FILLER.repeat(Math.ceil(fillerLength / FILLER.length)).slice(0, fillerLength);
    const message = head + filler + tail;
    this.capacity = options.capacity;
    this.#bytes = new TextEncoder().encode(message.repeat(options.capacity));
    this.messageBytes = this.#bytes.length / options.capacity;
    this.#idOffset = head.indexOf("id='m") + "id='m".length;
    this.#stampOffset = head.indexOf("~") + 1;
  }

  /** The first `count` messages with ids from `firstId` on, stamped; valid until the next call. */
  stamped(count: number, firstId: number, stamp: number): Uint8Array {
    for (let i = 0; i < count; i++) {
      const start = i * this.messageBytes;
      writeStamp(this.#bytes, start + this.#idOffset, firstId + i);
      writeStamp(this.#bytes, start + this.#stampOffset, stamp);
    }
    return this.#bytes.subarray(0, count * this.messageBytes);
  }
}
