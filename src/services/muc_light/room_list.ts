import { element, tryParseJid } from "../../xmpp/mod.ts";
import { DISCO_ITEMS } from "../disco_items.ts";
import type { IqAnswer } from "../iq_service.ts";
import { readConfig, ROOM_NAME } from "./room_config.ts";
import type { RoomRequest } from "./room_options.ts";

/** Namespace of result sets (XEP-0059). */
export const RESULT_SET = "http://jabber.org/protocol/rsm";
const DIGITS = /^\d{1,9}$/;

/**
 * Lists the rooms that somebody is in, a page at a time (XEP-0030, XEP-0059). Pages are read forwards
 * alone.
 */
export async function listRooms(
  { service: { options, store }, actor, payload }: RoomRequest,
): Promise<IqAnswer> {
  if (payload.attribute("node") !== undefined) return { error: "item-not-found" };
  const set = payload.child("set", RESULT_SET);
  if (set?.child("before") !== undefined || set?.child("index") !== undefined) {
    return { error: "feature-not-implemented" };
  }
  const asked = set?.child("max")?.text.trim();
  if (asked !== undefined && !DIGITS.test(asked)) return { error: "bad-request" };
  const limit = Math.min(options.roomsPerPage, Number(asked ?? options.roomsPerPage));
  const after = set?.child("after")?.text;
  const behind = after === undefined ? undefined : tryParseJid(after.trim())?.text;
  if (after !== undefined && behind === undefined) return { error: "item-not-found" };
  const count = (await store.countRoomsOf([actor])).get(actor) ?? 0;
  const rooms = limit === 0 ? [] : await store.roomsOf(actor, {
    limit,
    ...behind !== undefined && { after: behind },
  });
  const items = rooms.map(({ room, version, config }) =>
    element("item", {
      jid: room,
      name: readConfig(config, options.fields).get(ROOM_NAME) ?? room.slice(0, room.indexOf("@")),
      version: `${version}`,
    })
  );
  const isWhole = set === undefined && rooms.length === count;
  const page = isWhole ? undefined : element(
    "set",
    { xmlns: RESULT_SET },
    ...rooms.length === 0
      ? []
      : [element("first", {}, rooms[0]!.room), element("last", {}, rooms.at(-1)!.room)],
    element("count", {}, `${count}`),
  );
  return { payload: element("query", { xmlns: DISCO_ITEMS }, ...items, page) };
}
