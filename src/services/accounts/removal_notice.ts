import type { BareJid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, FullJid, onlyChild, stanzaSource } from "../../xmpp/mod.ts";

/** Namespace in which nodes tell one another of accounts. Only a node of 0.1.0 lets its client see it. */
const NAMESPACE = "urn:causeway:account:0";

/** Returns the notice, for the node of a session, that the session's account was deleted. */
export function removalNotice(account: BareJid, to: FullJid): Stanza {
  const removed = element("removed", { xmlns: NAMESPACE });
  // Links refuse a request without an id, although nobody answers this one.
  const notice = element("iq", { type: "set", id: "removed" }, removed);
  return buildStanza(notice, { from: account, to });
}

/** True for a notice that comes in the name of the session's own account. */
export function isRemovalNotice({ kind, type, from, to, bytes }: Stanza): boolean {
  if (kind !== "iq" || type !== "set" || from.text !== to.bare.text) return false;
  if (!(to instanceof FullJid) || to.localpart === "") return false;
  const child = onlyChild(stanzaSource(bytes));
  return child?.namespace === NAMESPACE && child.name === "removed";
}
