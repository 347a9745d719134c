import { tryParseJid } from "../../xmpp/mod.ts";

/**
 * True for the address of a room in whatever spelling. Clients compare addresses and not texts, so an
 * occupant's element that names the room in capitals would pass for one of the room itself.
 */
export function namesRoom(address: string | undefined, room: string): boolean {
  return address !== undefined && tryParseJid(address)?.text === room;
}
