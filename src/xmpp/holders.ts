import type { Holders } from "../base/mod.ts";
import type { Jid } from "./jid.ts";

/**
 * Whose share a stanza from `from` counts for: its account, with all its resources, at a host whose people
 * log in here; elsewhere the domain that speaks for it.
 */
export function senderHolders(from: Jid, isAtUserHost: boolean): Holders {
  const { bare, localpart, domainpart } = from;
  return isAtUserHost && localpart !== ""
    ? { singles: [bare.text], crowds: [] }
    : { singles: [], crowds: [domainpart] };
}

/** Whose share counts what waits for the account or domain `address`. */
export function recipientHolders(address: string): Holders {
  // No JID has a space before its resource: this is another share than that of what it has sent.
  return { singles: [`to ${address}`], crowds: [] };
}
