import type { Jid } from "../xmpp/mod.ts";

/** The domains whose people log in at this datacenter. */
export interface UserHosts {
  readonly globalHost: string;
  /** Every domain in the configuration's `hosts`, `globalHost` among them. */
  readonly hosts: ReadonlySet<string>;
}

/** True for a domain whose people log in at this datacenter; the global host is asked for first. */
export function isUserHost(domain: string, { globalHost, hosts }: UserHosts): boolean {
  return domain === globalHost || hosts.has(domain);
}

/**
 * The sender that a stanza counts for, within which order is kept (docs/promises.md, "Order"): its full JID at the
 * hosts of this datacenter, its domain elsewhere. What a room says for one occupant never overtakes what
 * it says for another.
 */
export function senderKey(from: Jid, hosts: UserHosts): string {
  return isUserHost(from.domainpart, hosts) ? from.text : from.domainpart;
}

/** The name under which a share counts what the datacenter of `localHost` brings: that of no domain. */
export function datacenterHolder(localHost: string): string {
  return `datacenter ${localHost}`;
}
