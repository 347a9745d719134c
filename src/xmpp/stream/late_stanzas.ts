import type { StanzaFate } from "./stanza_sink.ts";

/**
 * What a peer had written before it learned that its stream ends, until it is seen to: has met its fate,
 * or is held by another node. A peer that comes back elsewhere before that could overtake it.
 */
export class LateStanzas implements StanzaFate {
  readonly isSentOnce = true;
  readonly #open = new Set<number>();
  #last = 0;
  #onSeenTo: (() => void) | undefined;

  /** Counts one more; gives its number. */
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

  /** Calls `go` once, when all that came is seen to; at once if it is. */
  whenSeenTo(go: () => void): void {
    if (this.#open.size === 0) go();
    else this.#onSeenTo = go;
  }
}
