import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import { findChild, parseElement, stanzaSource } from "../../xmpp/mod.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";

/** Contacts that are noted for one client at once: a peer could send pushes without end. */
const MAX_NOTED = 1000;

/** Notes the contacts whose roster pushes pass to one client, until it is closed. */
export interface PushWatch extends Disposable {
  /** Bare JIDs of those contacts. Whoever watches may clear it. */
  readonly contacts: Set<string>;
}

/**
 * Roster pushes that pass to clients here while these are told of a state that was read before. The
 * state may be older than such a push.
 */
export class PassedPushes {
  readonly #watches = new Map<string, Set<PushWatch>>();

  /** Begins to note the pushes to a client. */
  watch({ text }: FullJid): PushWatch {
    const ofClient = this.#watches.get(text) ?? new Set();
    this.#watches.set(text, ofClient);
    const watch: PushWatch = {
      contacts: new Set(),
      [Symbol.dispose]: () => {
        ofClient.delete(watch);
        if (ofClient.size === 0) this.#watches.delete(text);
      },
    };
    ofClient.add(watch);
    return watch;
  }

  /** Notes a roster push that is about to be delivered to a client here. Never throws. */
  passed({ to, bytes }: Stanza): void {
    const watches = this.#watches.get(to.text);
    if (watches === undefined) return;
    for (const contact of contactsIn(bytes)) {
      for (const { contacts } of watches) if (contacts.size < MAX_NOTED) contacts.add(contact);
    }
  }
}

/** Returns the contacts that a stanza tells of if it is a roster push, else none. */
function contactsIn(bytes: Uint8Array): readonly string[] {
  try {
    const query = findChild(stanzaSource(bytes), "query", ROSTER_NAMESPACE);
    if (query === undefined) return [];
    const { defaultNamespace, prefixes, start, end } = query;
    const { elements } = parseElement(bytes.subarray(start, end), defaultNamespace, prefixes);
    return elements.flatMap((each) => each.attribute("jid") ?? []);
  } catch {
    return []; // our nodes write pushes that can be read; another datacenter might not
  }
}
