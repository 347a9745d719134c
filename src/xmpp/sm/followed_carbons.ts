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

  /** Notes a stanza that has followed, if it is a carbon. */
  note(delivery: Delivery): void {
    if (!isCarbon(delivery)) return;
    const text = textOf(delivery.stanza);
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
  }

  /** True for a carbon that has followed, too: once for each time. */
  take(delivery: Delivery): boolean {
    if (this.#counts.size === 0 || !isCarbon(delivery)) return false;
    const text = textOf(delivery.stanza);
    const count = this.#counts.get(text) ?? 0;
    if (count === 0) return false;
    this.#counts.set(text, count - 1);
    return true;
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
