import { beginPrint, endPrint, mixBytes } from "../../base/mod.ts";
import type { Delivery } from "./delivery.ts";
import { OwnDelivery } from "./delivery.ts";

/** Different stanzas that are noted: as many as a session keeps stanzas by default. */
const MAX_NOTED = 5_000;

/** Kind of a stanza that two nodes may give a session under different ids. */
type Kind = "carbon" | "room-message" | "read-message";

/** Kind under which the other node has the same stanza. */
const TWIN: Readonly<Record<Kind, Kind>> = {
  carbon: "carbon",
  "room-message": "read-message",
  "read-message": "room-message",
};

/**
 * Carbons (XEP-0280) and messages of rooms that have come one way to a session that has moved, by their
 * fingerprints. The nodes of both places may give it a carbon of the same message, and a carbon has no
 * number of its own. A message that one node has read from the database of its room has not the id by
 * which the other one gives it.
 */
export class NotedCarbons {
  /** Number of times that each stanza has come, by kind and fingerprint; the oldest one first. */
  readonly #counts = new Map<string, number>();

  /** Notes a stanza that has come, if it is of these kinds. */
  note(delivery: Delivery): void {
    const kind = kindOf(delivery);
    if (kind === undefined) return;
    const key = keyOf(kind, delivery);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    if (this.#counts.size <= MAX_NOTED) return;
    const [oldest] = this.#counts.keys();
    this.#counts.delete(oldest!);
  }

  /** True for a stanza that is noted, too: once for each time. */
  take(delivery: Delivery): boolean {
    if (this.#counts.size === 0) return false;
    const kind = kindOf(delivery);
    if (kind === undefined) return false;
    const key = keyOf(TWIN[kind], delivery);
    const count = this.#counts.get(key) ?? 0;
    if (count > 1) this.#counts.set(key, count - 1);
    else this.#counts.delete(key);
    return count > 0;
  }
}

/** Returns the kind of a stanza; undefined for one that has the same id everywhere. */
function kindOf(delivery: Delivery): Kind | undefined {
  const { kind, type, from, to } = delivery.stanza;
  if (kind !== "message") return undefined;
  if (delivery.isRead === true) return "read-message";
  const isOwn = delivery instanceof OwnDelivery;
  // A message in the account's own name that no other node keeps is a carbon.
  if (isOwn && from === from.bare && from.text === to.bare.text) return "carbon";
  return !isOwn && type === "groupchat" ? "room-message" : undefined;
}

function keyOf(kind: Kind, { stanza: { bytes } }: Delivery): string {
  beginPrint(bytes.length);
  mixBytes(bytes, 0, bytes.length);
  return `${kind} ${endPrint()}`;
}
