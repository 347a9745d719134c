import type { Stanza } from "../stanza/stanza.ts";
import type { Delivery } from "./delivery.ts";
import { OwnDelivery } from "./delivery.ts";

const DECODER = new TextDecoder();

/**
 * Carbons (XEP-0280) that have followed a session from its old node, by their text. The nodes of both
 * places may give it one of the same message, and a carbon has no number of its own.
 */
export class FollowedCarbons {
  readonly #counts = new Map<string, number>();
  /** Those that are not counted yet: a second one is rare, and texts cost memory. */
  #uncounted: Stanza[] = [];

  /** Notes a stanza that has followed, if it is a carbon. */
  note(delivery: Delivery): void {
    if (isCarbon(delivery)) this.#uncounted.push(delivery.stanza);
  }

  /** True for a carbon that has followed, too: once for each time. */
  take(delivery: Delivery): boolean {
    if (!isCarbon(delivery)) return false;
    this.#count();
    const text = textOf(delivery.stanza);
    const count = this.#counts.get(text) ?? 0;
    if (count === 0) return false;
    this.#counts.set(text, count - 1);
    return true;
  }

  #count(): void {
    for (const stanza of this.#uncounted) {
      const text = textOf(stanza);
      this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
    }
    this.#uncounted = [];
  }
}

/** True for a message in the account's own name that no other node keeps. */
function isCarbon(delivery: Delivery): boolean {
  const { kind, from, to } = delivery.stanza;
  return delivery instanceof OwnDelivery && kind === "message" && from === from.bare &&
    from.text === to.bare.text;
}

function textOf({ bytes }: Stanza): string {
  return DECODER.decode(bytes);
}
