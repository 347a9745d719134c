import type { Jid } from "../xmpp/mod.ts";

/** The domains whose users log in at this datacenter. */
export interface UserHosts {
  readonly globalHost: string;
  /** Every domain in the configuration's `hosts`, including `globalHost`. */
  readonly hosts: ReadonlySet<string>;
}

/** True for a domain whose users log in at this datacenter; the global host is compared first. */
export function isUserHost(domain: string, { globalHost, hosts }: UserHosts): boolean {
  return domain === globalHost || hosts.has(domain);
}

/**
 * Returns the sender that a stanza counts for, within which order is kept (docs/promises.md,
 * "Order"): its full JID at the hosts of this datacenter, its domain elsewhere. So a room's stanza
 * for one occupant never overtakes one for another.
 */
export function senderKey(from: Jid, hosts: UserHosts): string {
  return isUserHost(from.domainpart, hosts) ? from.text : from.domainpart;
}

/**
 * Returns the name under which the datacenter of `localHost` holds shares; it is no domain's name.
 */
export function datacenterHolder(localHost: string): string {
  return `datacenter ${localHost}`;
}
