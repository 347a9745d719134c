import { parseJid } from "../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { isUserHost, senderKey } from "../mod.ts";
import type { UserHosts } from "../mod.ts";

/** True for the address of a user who would log in at this datacenter, existing or not. */
export function isUser({ localpart, domainpart }: Jid, hosts: UserHosts): boolean {
  return localpart !== "" && isUserHost(domainpart, hosts);
}

/** True for a user at a host that this datacenter serves, other than the global host. */
export function isLocalUser({ localpart, domainpart }: Jid, hosts: UserHosts): boolean {
  return localpart !== "" && domainpart !== hosts.globalHost && hosts.hosts.has(domainpart);
}

/** Returns the address to look up in the table: users by JID, everything else by domain. */
export function lookupKey(to: Jid, hosts: UserHosts): Jid {
  if (to.localpart === "") return to.bare;
  return isUserHost(to.domainpart, hosts) ? to : parseJid(to.domainpart);
}

/**
 * Returns the key of the queue in which a stanza waits: one for each sender. A host of ours answers
 * everybody, so its own stanzas have a queue for each recipient. An answer that waits for a lookup
 * then does not hold up the others.
 */
export function queueKey({ from, to }: Pick<Stanza, "from" | "to">, hosts: UserHosts): string {
  const sender = senderKey(from, hosts);
  const isOurs = from.localpart === "" && isUserHost(from.domainpart, hosts);
  return isOurs ? `${sender} ${to.text}` : sender;
}
