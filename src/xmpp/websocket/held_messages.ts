/** Twice the bytes of one socket read: as much as can arrive after reading was stopped. */
const SLACK_BYTES = 131_072;

/**
 * Largest number of messages. A stanza takes 30 bytes or more, so that `SLACK_BYTES` never hold this
 * many.
 */
const MAX_MESSAGES = 4096;

/** Messages that came in while a stream waited, in their order and within bounds. */
export class HeldMessages {
  readonly #maxBytes: number;
  #messages: Uint8Array[] = [];
  #next = 0;
  #byteLength = 0;

  /** Makes room for one read besides a message of `maxMessageBytes`. */
  constructor(maxMessageBytes: number) {
    this.#maxBytes = maxMessageBytes + SLACK_BYTES;
  }

  /** Keeps a copy of `message`; false when that would pass a bound. */
  add(message: Uint8Array): boolean {
    if (this.#messages.length - this.#next >= MAX_MESSAGES) return false;
    if (this.#byteLength + message.length > this.#maxBytes) return false;
    this.#byteLength += message.length;
    this.#messages.push(message.slice());
    return true;
  }

  /** Removes and returns the oldest message; undefined when there is none. */
  take(): Uint8Array | undefined {
    const message = this.#messages[this.#next];
    if (message === undefined) return undefined;
    this.#next++;
    this.#byteLength -= message.length;
    if (this.#next === this.#messages.length) this.clear();
    return message;
  }

  clear(): void {
    this.#messages = [];
    this.#next = 0;
    this.#byteLength = 0;
  }
}
