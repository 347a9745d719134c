import type { RoomListPage } from "../../storage/mod.ts";
import type { XmlElement } from "../../xmpp/mod.ts";
import { tryParseJid } from "../../xmpp/mod.ts";

/** Namespace of result sets (XEP-0059). */
export const RESULT_SET = "http://jabber.org/protocol/rsm";
const DIGITS = /^\d{1,9}$/;

/** Reads which page of a list of rooms is asked for. An empty `<before/>` asks for the last one. Pure. */
export function readRoomPage(
  set: XmlElement | undefined,
  roomsPerPage: number,
): RoomListPage | "bad-request" | "feature-not-implemented" | "item-not-found" {
  const textOf = (name: string) => set?.child(name)?.text.trim();
  const [max, after, before] = [textOf("max"), textOf("after"), textOf("before")];
  if (set?.child("index") !== undefined) return "feature-not-implemented";
  const isMalformed = max !== undefined && !DIGITS.test(max);
  // XEP-0059 gives a page one end.
  if (isMalformed || (after !== undefined && before !== undefined)) return "bad-request";
  const limit = Math.min(roomsPerPage, Number(max ?? roomsPerPage));
  if (before === "") return { limit, isLast: true };
  const named = after ?? before;
  if (named === undefined) return { limit };
  const room = tryParseJid(named)?.text;
  if (room === undefined) return "item-not-found";
  return after === undefined ? { limit, before: room } : { limit, after: room };
}
