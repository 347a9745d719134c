import { buildStanza, element, FullJid } from "../xmpp/mod.ts";
import type { Stanza } from "../xmpp/mod.ts";

/**
 * Asks the account's resources on the datacenter's other nodes for their presence, on behalf of a
 * resource that has become available here (RFC 6121 §4.2.2, §4.3). A client's own probe is sent in
 * the name of its account, a bare JID. The sender address tells the two apart.
 */
export function accountProbe(jid: FullJid): Stanza {
  return buildStanza(element("presence", { type: "probe" }), { from: jid, to: jid.bare });
}

export function isAccountProbe({ kind, type, from, to }: Stanza): boolean {
  return kind === "presence" && type === "probe" && from instanceof FullJid &&
    from.bare.text === to.text;
}
