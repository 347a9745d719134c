import type { Holders } from "../../base/mod.ts";
import { senderHolders } from "../../xmpp/mod.ts";
import { datacenterHolder, isUserHost } from "../mod.ts";
import type { UserHosts } from "../mod.ts";
import type { Envelope } from "../envelope.ts";

/**
 * Whose shares a waiting stanza counts for: its sender's, and that of the datacenter that passed it on. The
 * error by which a node answers counts for whom it answers, who has caused it.
 */
export function holdersOf({ stanza, isOwed, cameFrom }: Envelope, hosts: UserHosts): Holders {
  const sender = isOwed ? stanza.to : stanza.from;
  const holders = senderHolders(sender, isUserHost(sender.domainpart, hosts));
  if (cameFrom === undefined) return holders;
  return { singles: holders.singles, crowds: [...holders.crowds, datacenterHolder(cameFrom)] };
}
