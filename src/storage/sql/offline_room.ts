import type { OfflineBounds, OfflineMessage } from "../offline_store.ts";
import { keyOf } from "./keys.ts";

/** Returns the key of a sender, in hexadecimal. */
export function senderKey(sender: string): string {
  return keyOf(sender).toString("hex");
}

/** Room that an account has left for messages. */
export class OfflineRoom {
  /** The highest sequence of the account; 0 without messages. */
  readonly last: number;
  readonly #bounds: OfflineBounds;
  /** Messages and bytes of each sender, by its key in hexadecimal. */
  readonly #shares: Map<string, { messages: number; bytes: number }>;
  #messages = 0;
  #bytes = 0;

  constructor(
    last: number,
    shares: Map<string, { messages: number; bytes: number }>,
    bounds: OfflineBounds,
  ) {
    this.last = last;
    this.#shares = shares;
    this.#bounds = bounds;
    for (const { messages, bytes } of shares.values()) {
      this.#messages += messages;
      this.#bytes += bytes;
    }
  }

  /** Counts a message and returns true, or returns false when there is no room for it. */
  take({ sender, stanza }: Pick<OfflineMessage, "sender" | "stanza">): boolean {
    const freeMessages = this.#bounds.maxMessages - this.#messages;
    const freeBytes = this.#bounds.maxBytes - this.#bytes;
    if (freeMessages < 1 || freeBytes < stanza.length) return false;
    const key = senderKey(sender);
    const share = this.#shares.get(key) ?? { messages: 0, bytes: 0 };
    // A sender without a message needs only room.
    if (share.messages > 0) {
      if (share.messages + 1 > freeMessages) return false;
      if (share.bytes + stanza.length > freeBytes) return false;
    }
    share.messages++;
    share.bytes += stanza.length;
    this.#shares.set(key, share);
    this.#messages++;
    this.#bytes += stanza.length;
    return true;
  }
}
