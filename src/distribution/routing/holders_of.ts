import { RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { Holders } from "../../base/mod.ts";
import { senderHolders } from "../../xmpp/mod.ts";
import { datacenterHolder, isUserHost } from "../mod.ts";
import type { UserHosts } from "../mod.ts";
import type { Envelope } from "../envelope.ts";

/**
 * Returns the holders whose shares a waiting stanza counts for: its sender, and the datacenter that
 * passed it on. An owed error counts for its recipient, whose stanza has caused it.
 */
export function holdersOf({ stanza, isOwed, cameFrom }: Envelope, hosts: UserHosts): Holders {
  const sender = isOwed ? stanza.to : stanza.from;
  const holders = senderHolders(sender, isUserHost(sender.domainpart, hosts));
  if (cameFrom === undefined) return holders;
  return { singles: holders.singles, crowds: [...holders.crowds, datacenterHolder(cameFrom)] };
}

/** Returns the bytes that a waiting stanza counts for. */
export function costOf({ stanza }: Envelope): number {
  return stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
}
