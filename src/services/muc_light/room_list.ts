import { element } from "../../xmpp/mod.ts";
import { DISCO_ITEMS } from "../disco_items.ts";
import type { IqAnswer } from "../iq_service.ts";
import { readRoomPage, RESULT_SET } from "../rooms/mod.ts";
import { readConfig, ROOM_NAME } from "./room_config.ts";
import type { RoomRequest } from "./room_options.ts";

/** Lists the rooms that somebody is in, a page at a time (XEP-0030, XEP-0059). */
export async function listRooms(
  { service: { options, store }, actor, payload }: RoomRequest,
): Promise<IqAnswer> {
  if (payload.attribute("node") !== undefined) return { error: "item-not-found" };
  const set = payload.child("set", RESULT_SET);
  const asked = readRoomPage(set, options.roomsPerPage);
  if (typeof asked === "string") return { error: asked };
  const count = (await store.countRoomsOf([actor])).get(actor) ?? 0;
  const rooms = asked.limit === 0 ? [] : await store.roomsOf(actor, asked);
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
