import type { XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";
import { DISCO_ITEMS } from "../disco_items.ts";
import type { IqAnswer } from "../iq_service.ts";
import { readRoomPage, RESULT_SET } from "../rooms/mod.ts";
import type { MucService } from "./muc_options.ts";
import type { RoomRecords } from "./room_records.ts";

/** Collaborators of a list. */
export interface RoomListDeps {
  readonly service: {
    readonly options: Pick<MucService["options"], "roomsPerPage">;
    readonly store: Pick<MucService["store"], "list" | "countListed">;
  };
  readonly records: Pick<RoomRecords, "settingsOf">;
}

/**
 * Lists the public rooms, a page at a time (XEP-0045 §6.3, XEP-0059). Rooms that are not unlocked yet are
 * counted, and not shown.
 *
 * @throws CausewayError `storage/…`
 */
export async function listRooms(
  { service: { options, store }, records }: RoomListDeps,
  query: XmlElement,
): Promise<IqAnswer> {
  const set = query.child("set", RESULT_SET);
  const asked = readRoomPage(set, options.roomsPerPage);
  if (typeof asked === "string") return { error: asked };
  const rooms = await store.list(asked);
  const items = rooms.flatMap(({ room, config }) => {
    const { title, isLocked } = records.settingsOf({ config });
    if (isLocked) return []; // its owner has not said yet whether to show it
    const name = title === "" ? room.slice(0, room.indexOf("@")) : title;
    return element("item", { jid: room, name });
  });
  const isWhole = set === undefined && rooms.length < asked.limit;
  const page = isWhole ? undefined : element(
    "set",
    { xmlns: RESULT_SET },
    ...rooms.length === 0
      ? []
      : [element("first", {}, rooms[0]!.room), element("last", {}, rooms.at(-1)!.room)],
    element("count", {}, `${await store.countListed()}`),
  );
  return { payload: element("query", { xmlns: DISCO_ITEMS }, ...items, page) };
}
