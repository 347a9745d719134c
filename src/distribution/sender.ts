import type { Jid, Stanza } from "../xmpp/mod.ts";

/** The domains whose users log in at this datacenter. */
export interface UserHosts {
  readonly globalHost: string;
  /** Every domain in the configuration's `hosts`, including `globalHost`. */
  readonly hosts: ReadonlySet<string>;
  /** Domains of rooms, which every datacenter serves itself. @default none */
  readonly roomDomains?: ReadonlySet<string>;
}

/** True for a domain whose users log in at this datacenter; the global host is compared first. */
export function isUserHost(domain: string, { globalHost, hosts }: UserHosts): boolean {
  return domain === globalHost || hosts.has(domain);
}

/** True for a domain of rooms, which every datacenter serves itself. */
export function isRoomDomain(domain: string, { roomDomains }: UserHosts): boolean {
  return roomDomains?.has(domain) === true;
}

/** True for a message of a room to an occupant, who is an account and not one of its resources. */
export function isFromRoom({ kind, type, from, to }: Stanza, hosts: UserHosts): boolean {
  return kind === "message" && type === "groupchat" && to === to.bare &&
    isRoomDomain(from.domainpart, hosts);
}

/**
 * True for what a node tells all others of the occupants of rooms: a headline of its datacenter to
 * the domain of the rooms. No client or component can write one.
 */
export function isRoomNews({ kind, type, from, to }: Stanza, hosts: UserHosts): boolean {
  return kind === "message" && type === "headline" && from === from.bare && from.localpart === "" &&
    to === to.bare && to.localpart === "" && isRoomDomain(to.domainpart, hosts);
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
