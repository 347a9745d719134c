import { joinBytes } from "../../../src/base/mod.ts";

/** Kinds of messages of the protocol (MS-TDS 2.2.3.1.1). */
export const MESSAGE = {
  batch: 0x01,
  rpc: 0x03,
  response: 0x04,
  attention: 0x06,
  transaction: 0x0e,
  login: 0x10,
  prelogin: 0x12,
} as const;

/** A message of a client, put together from its packets. */
export interface ClientMessage {
  readonly type: number;
  readonly data: Uint8Array;
  /** True when the session is to be made as new before the message is carried out. */
  readonly resetsSession: boolean;
}

const HEADER_BYTES = 8;
const [END_OF_MESSAGE, RESET_CONNECTION] = [0x01, 0x08];
/** Most bytes of a client's message. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Puts messages together from bytes as they come. */
export class MessageReader {
  #bytes = new Uint8Array();
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #resets = false;

  /**
   * Returns the messages that are whole now.
   *
   * @throws Error for what is no packet
   */
  push(chunk: Uint8Array): readonly ClientMessage[] {
    this.#bytes = joinBytes([this.#bytes, chunk]);
    const messages: ClientMessage[] = [];
    while (this.#bytes.length >= HEADER_BYTES) {
      const length = (this.#bytes[2]! << 8) | this.#bytes[3]!;
      if (length < HEADER_BYTES) throw new Error(`Cannot read a packet of ${length} bytes`);
      if (this.#bytes.length < length) break;
      const [type, status] = [this.#bytes[0]!, this.#bytes[1]!];
      this.#parts.push(this.#bytes.slice(HEADER_BYTES, length));
      this.#partBytes += length;
      if (this.#partBytes > MAX_MESSAGE_BYTES) throw new Error("Cannot read so long a message");
      this.#resets ||= (status & RESET_CONNECTION) !== 0;
      this.#bytes = this.#bytes.slice(length);
      if ((status & END_OF_MESSAGE) === 0) continue;
      messages.push({ type, data: joinBytes(this.#parts), resetsSession: this.#resets });
      this.#parts = [];
      this.#partBytes = 0;
      this.#resets = false;
    }
    return messages;
  }

  /** Returns the bytes that belong to no whole packet, and forgets them. */
  takeRest(): Uint8Array {
    const rest = this.#bytes;
    this.#bytes = new Uint8Array();
    return rest;
  }
}

/** Cuts a message of the server into packets. */
export function packetsOf(type: number, data: Uint8Array, packetBytes = 4096): Uint8Array {
  const room = packetBytes - HEADER_BYTES;
  const packets: Uint8Array[] = [];
  for (let start = 0, id = 1; start === 0 || start < data.length; start += room, id++) {
    const part = data.subarray(start, start + room);
    const isLast = start + room >= data.length;
    const length = part.length + HEADER_BYTES;
    packets.push(
      Uint8Array.of(
        type,
        isLast ? END_OF_MESSAGE : 0,
        length >> 8,
        length & 0xff,
        0,
        0,
        id & 0xff,
        0,
      ),
      part,
    );
  }
  return joinBytes(packets);
}
