import { GaplessCount } from "../../base/mod.ts";
import type { Fate } from "../stanza/fate.ts";

/**
 * Stanzas that a peer wrote before it learned that its stream ends, until each is settled or held by
 * another node. A peer that reconnects elsewhere before that could overtake them.
 */
export class LateStanzas implements Fate {
  readonly isSentOnce = true;
  readonly #seenTo = new GaplessCount();
  #last = 0;
  #onSeenTo: (() => void) | undefined;

  /** Counts one more stanza and returns its number. */
  next(): number {
    return ++this.#last;
  }

  held(number: number): void {
    this.settle(number);
  }

  settle(number: number): void {
    this.#seenTo.add(number);
    if (!this.#areSeenTo) return;
    const go = this.#onSeenTo;
    this.#onSeenTo = undefined;
    go?.();
  }

  /** Calls `go` once, when every counted stanza is held or settled; at once if that is so already. */
  whenSeenTo(go: () => void): void {
    if (this.#areSeenTo) go();
    else this.#onSeenTo = go;
  }

  get #areSeenTo(): boolean {
    return this.#seenTo.done === this.#last;
  }
}
