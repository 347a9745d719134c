import type { Holders } from "../../base/mod.ts";
import type { Envelope } from "../envelope.ts";

/**
 * Whose shares a waiting stanza counts for: its sender's account, or the component or host that speaks
 * for its sender, and the datacenter that passed it on. The error by which a node answers counts for whom it
 * answers, who has caused it.
 */
export function holdersOf(
  { stanza, isOwed, cameFrom }: Envelope,
  globalHost: string,
): Holders {
  const { bare, localpart, domainpart } = isOwed ? stanza.to : stanza.from;
  const crowds = cameFrom === undefined ? [] : [datacenterHolder(cameFrom)];
  if (domainpart === globalHost && localpart !== "") return { singles: [bare.text], crowds };
  return { singles: [], crowds: [...crowds, domainpart] };
}

/** The name under which what a datacenter has passed on is counted: no JID has a space in its domain. */
export function datacenterHolder(localHost: string): string {
  return `datacenter ${localHost}`;
}

/** The name under which what waits for one address is counted. */
export function recipientHolder(address: string): string {
  return `to ${address}`;
}
