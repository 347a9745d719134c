import type { Holders } from "../../base/mod.ts";
import type { Jid } from "../jid/jid.ts";

/**
 * Returns the holder that a stanza from `from` counts for: its account with all resources at a host whose
 * users log in here, elsewhere the domain that speaks for it.
 */
export function senderHolders(from: Jid, isAtUserHost: boolean): Holders {
  const { bare, localpart, domainpart } = from;
  return isAtUserHost && localpart !== ""
    ? { singles: [bare.text], crowds: [] }
    : { singles: [], crowds: [domainpart] };
}

/** Returns the holder for everything that waits for the account or domain `address`. */
export function recipientHolders(address: string): Holders {
  // No JID has a space before its resource, so this share differs from that of the account's sent
  // stanzas.
  return { singles: [`to ${address}`], crowds: [] };
}
