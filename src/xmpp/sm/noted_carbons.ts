import { beginPrint, endPrint, mixBytes } from "../../base/mod.ts";
import type { Delivery } from "./delivery.ts";
import { OwnDelivery } from "./delivery.ts";

/** Different carbons that are noted: as many as a session keeps stanzas by default. */
const MAX_CARBONS = 5_000;

/**
 * Carbons (XEP-0280) that have come one way to a session that has moved, by their fingerprints. The
 * nodes of both places may give it one of the same message, and a carbon has no number of its own.
 */
export class NotedCarbons {
  /** Number of times that each carbon has come; the oldest carbon first. */
  readonly #counts = new Map<number, number>();

  /** Notes a stanza that has come, if it is a carbon. */
  note(delivery: Delivery): void {
    if (!isCarbon(delivery)) return;
    const print = printOf(delivery);
    this.#counts.set(print, (this.#counts.get(print) ?? 0) + 1);
    if (this.#counts.size <= MAX_CARBONS) return;
    const [oldest] = this.#counts.keys();
    this.#counts.delete(oldest!);
  }

  /** True for a carbon that is noted, too: once for each time. */
  take(delivery: Delivery): boolean {
    if (this.#counts.size === 0 || !isCarbon(delivery)) return false;
    const print = printOf(delivery);
    const count = this.#counts.get(print) ?? 0;
    if (count > 1) this.#counts.set(print, count - 1);
    else this.#counts.delete(print);
    return count > 0;
  }
}

/** True for a message in the account's own name that no other node keeps. */
function isCarbon(delivery: Delivery): boolean {
  const { kind, from, to } = delivery.stanza;
  return delivery instanceof OwnDelivery && kind === "message" && from === from.bare &&
    from.text === to.bare.text;
}

function printOf({ stanza: { bytes } }: Delivery): number {
  beginPrint(bytes.length);
  mixBytes(bytes, 0, bytes.length);
  return endPrint();
}
