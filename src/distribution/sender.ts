import type { Jid } from "../xmpp/mod.ts";

/**
 * The sender that a stanza counts for, within which order is kept (`design.md` §1): its full JID at the
 * global host, its domain elsewhere. What a room says for one occupant never overtakes what it says for
 * another.
 */
export function senderKey(from: Jid, globalHost: string): string {
  return from.domainpart === globalHost ? from.text : from.domainpart;
}

/** The name under which a share counts what the datacenter of `localHost` brings: that of no domain. */
export function datacenterHolder(localHost: string): string {
  return `datacenter ${localHost}`;
}
