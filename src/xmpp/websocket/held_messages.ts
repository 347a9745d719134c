/** What one read of a socket may bring, twice: as much as comes in after reading was stopped. */
const SLACK_BYTES = 131_072;

/** A stanza takes 30 bytes and more, so that no `SLACK_BYTES` hold this many. */
const MAX_MESSAGES = 4096;

/** Messages that came in while a stream waited, in their order and within bounds. */
export class HeldMessages {
  readonly #maxBytes: number;
  #messages: Uint8Array[] = [];
  #next = 0;
  #byteLength = 0;

  /** Holds what one read brings besides a message of `maxMessageBytes`. */
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

  /** The oldest, which is no longer held then; undefined when there is none. */
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
