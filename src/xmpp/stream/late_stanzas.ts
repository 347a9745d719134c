import type { StanzaFate } from "./stanza_sink.ts";

/**
 * Stanzas that a peer wrote before it learned that its stream ends, until each is settled or held by
 * another node. A peer that reconnects elsewhere before that could overtake them.
 */
export class LateStanzas implements StanzaFate {
  readonly isSentOnce = true;
  readonly #open = new Set<number>();
  #last = 0;
  #onSeenTo: (() => void) | undefined;

  /** Counts one more stanza and returns its number. */
  next(): number {
    this.#open.add(++this.#last);
    return this.#last;
  }

  held(number: number): void {
    this.settle(number);
  }

  settle(number: number): void {
    this.#open.delete(number);
    if (this.#open.size > 0) return;
    const seenTo = this.#onSeenTo;
    this.#onSeenTo = undefined;
    seenTo?.();
  }

  /** Calls `go` once, when every counted stanza is held or settled; at once if that is so already. */
  whenSeenTo(go: () => void): void {
    if (this.#open.size === 0) go();
    else this.#onSeenTo = go;
  }
}
