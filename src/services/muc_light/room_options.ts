import type { RoomStore } from "../../storage/mod.ts";
import type { BareJid, Jid, XmlElement } from "../../xmpp/mod.ts";
import type { RoomArchives } from "../rooms/mod.ts";
import type { ConfigField } from "./room_config.ts";

/** Options of the rooms of one domain. */
export interface RoomOptions {
  /** True: rooms have no owners, and all their occupants are members. */
  readonly areEqual: boolean;
  /** True: every occupant may add members. */
  readonly canAllInvite: boolean;
  /** True: every occupant may change every field of the configuration. */
  readonly canAllConfigure: boolean;
  /** True: people may block rooms and people from adding them. */
  readonly hasBlocking: boolean;
  /** People in one room; at least 1. */
  readonly maxOccupants: number;
  /** Rooms that one person is in; at least 1. */
  readonly roomsPerUser: number;
  /** Rooms in one answer; at least 1. */
  readonly roomsPerPage: number;
  /** Bytes of a room's configuration; at least 1. */
  readonly maxConfigBytes: number;
  /** Fields that a configuration has. */
  readonly fields: readonly ConfigField[];
}

/** The rooms of one domain. */
export interface RoomService {
  readonly options: RoomOptions;
  readonly store: RoomStore;
  /** Archives of the rooms. @default they have none */
  readonly archives?: Pick<
    RoomArchives,
    "takes" | "posted" | "removed" | "answer" | "searchesText"
  >;
}

/** A request to a room, or to the service itself. */
export interface RoomRequest {
  readonly service: RoomService;
  /** Bare JID of the room, or the domain of the service. */
  readonly to: BareJid;
  readonly from: Jid;
  /** Bare JID of the one who asks. */
  readonly actor: string;
  readonly type: "get" | "set";
  readonly id: string | undefined;
  readonly payload: XmlElement;
}
