import type { FairShares, Holders } from "../../base/mod.ts";
import { RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { FullJid } from "../jid/jid.ts";
import { recipientHolders } from "../stanza/holders.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { findChild, stanzaSource } from "../xml/child_elements.ts";

/** Namespace of client state indication (XEP-0352). */
export const CSI_NAMESPACE = "urn:xmpp:csi:0";

/** Default number of presence stanzas that a session of an inactive client holds back. */
export const DEFAULT_MAX_HELD_PRESENCE = 200;

/** Bytes of presence that a session of an inactive client holds back. */
const MAX_HELD_BYTES = 65_536;

/** Options of `HeldPresence`. */
export interface HeldPresenceOptions {
  /** Presence stanzas that it holds. */
  readonly maxItems: number;
  /** Budget that all sessions of the process share. */
  readonly budget: FairShares;
  /** Session whose account's share of the budget it counts against. */
  readonly jid: FullJid;
}

const ROOM_NAMESPACE = "http://jabber.org/protocol/muc#user";

/**
 * Presence that a session holds back while its client says that it is inactive (XEP-0352). Of a
 * contact's resource the newest presence is held. That of a room's occupant may tell of events, so all
 * of it is held. Whoever ends it calls `takeAll`, which gives its part of the budget back.
 */
export class HeldPresence {
  readonly #maxItems: number;
  readonly #budget: FairShares;
  readonly #holders: Holders;
  /** In the order in which it goes to the client. */
  readonly #held = new Map<string, Stanza>();
  #bytes = 0;
  #rooms = 0;

  constructor({ maxItems, budget, jid }: HeldPresenceOptions) {
    this.#maxItems = maxItems;
    this.#budget = budget;
    this.#holders = recipientHolders(jid.bare.text);
  }

  /** Holds a copy of a stanza. Returns false for one that is no presence, or finds no room. */
  hold(stanza: Stanza): boolean {
    const { kind, type, from, bytes } = stanza;
    if (kind !== "presence" || (type !== "available" && type !== "unavailable")) return false;
    const isOfRoom = findChild(stanzaSource(bytes), "x", ROOM_NAMESPACE) !== undefined;
    // No JID begins with a space.
    const key = isOfRoom ? ` ${this.#rooms++}` : from.text;
    const older = this.#held.get(key);
    const heldBytes = this.#bytes + bytes.length - (older?.bytes.length ?? 0);
    const items = this.#held.size + (older === undefined ? 1 : 0);
    if (items > this.#maxItems || heldBytes > MAX_HELD_BYTES) return false;
    if (older !== undefined) this.#budget.release(this.#holders, costOf(older));
    const hasRoom = this.#budget.mayHold(this.#holders, costOf(stanza));
    const kept = hasRoom ? stanza : older;
    if (kept !== undefined) this.#budget.hold(this.#holders, costOf(kept));
    if (!hasRoom) return false;
    this.#held.delete(key);
    this.#held.set(key, { ...stanza, bytes: bytes.slice() });
    this.#bytes = heldBytes;
    return true;
  }

  /** Gives up all that is held, in its order. */
  takeAll(): Stanza[] {
    const all = [...this.#held.values()];
    for (const each of all) this.#budget.release(this.#holders, costOf(each));
    this.#held.clear();
    this.#bytes = 0;
    return all;
  }
}

/** Returns the bytes that a held stanza takes. */
function costOf({ bytes }: Stanza): number {
  return bytes.length + RETAINED_OVERHEAD_BYTES;
}
