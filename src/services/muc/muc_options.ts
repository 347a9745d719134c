import type { MucStore } from "../../storage/mod.ts";
import type { RoomArchives } from "../rooms/mod.ts";
import type { RoomSettings, SettingsBounds } from "./room_settings.ts";

/** Options of the Multi-User Chat rooms of one domain. */
export interface MucOptions extends SettingsBounds {
  /** Messages that a newcomer gets at most. */
  readonly historySize: number;
  /** Bytes of a room's localpart. */
  readonly maxRoomId: number;
  /** Rooms that one person has made, and that are still there. */
  readonly maxCreatedRooms: number;
  /** Rooms that one person is in at once. */
  readonly maxUserConferences: number;
  /** Rooms in one answer of service discovery. */
  readonly roomsPerPage: number;
  /** Messages that one person writes to rooms in a second, at one node. */
  readonly messagesPerSec: number;
  /** People with an affiliation in one room. */
  readonly maxAffiliations: number;
  /** Settings of new rooms. */
  readonly defaultRoom: Omit<RoomSettings, "isLocked" | "secret">;
}

/** The rooms of one domain. */
export interface MucService {
  readonly domain: string;
  readonly options: MucOptions;
  readonly store: MucStore;
  /** Archives of the rooms. @default they have none */
  readonly archives?: Pick<
    RoomArchives,
    "takes" | "posted" | "removed" | "answer" | "searchesText" | "oldestMs"
  >;
}
