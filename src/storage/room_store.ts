import type { RoomListPage } from "./room_list_page.ts";
import type { NewRoomMessage, RoomMessage, RoomOutbox } from "./room_outbox.ts";

/** Standing of somebody in a room. */
export type RoomAffiliation = "owner" | "member";

/** Somebody who is in a room. */
export interface RoomOccupant {
  /** Bare JID. */
  readonly jid: string;
  readonly affiliation: RoomAffiliation;
}

/** A MUC Light room. */
export interface StoredRoom {
  /**
   * Grows with each change. A room that is made again has no version of an earlier one, unless the
   * clock of its node is behind.
   */
  readonly version: number;
  /** Tells the room from earlier ones of its name. */
  readonly creation: number;
  /** Configuration as the service wrote it. */
  readonly config: string;
  /** In the order in which they came; those who came together by their JIDs. */
  readonly occupants: readonly RoomOccupant[];
}

/** One change of a room. */
export interface RoomChange {
  /** Version that the room must have. */
  readonly expected: number;
  /** @default the configuration stays */
  readonly config?: string;
  /** Occupants that come, or whose affiliation changes. @default none */
  readonly set?: readonly RoomOccupant[];
  /** Bare JIDs of occupants that go. @default none */
  readonly removed?: readonly string[];
}

/** A room in a list of rooms. */
export interface ListedRoom {
  /** Bare JID. */
  readonly room: string;
  readonly version: number;
  readonly config: string;
}

/** A room, or a person, by whom somebody does not want to be added to rooms. */
export interface RoomBlock {
  readonly kind: "room" | "user";
  /** Bare JID. */
  readonly jid: string;
}

/** A message's place in the order of its room. */
export interface NumberedMessage {
  /** Grows by one with each message. A room that is made again has no number of an earlier one. */
  readonly number: number;
  /** People who are in the room at that number. */
  readonly occupants: readonly RoomOccupant[];
}

/**
 * The MUC Light rooms of one domain. Rooms and people are given by their normalised bare JIDs.
 *
 * Changes of one room at the same moment take effect one after another, whichever nodes and
 * datacenters make them, and so do its messages. Each change is made whole or not at all.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface RoomStore extends RoomOutbox {
  /** Returns a room; undefined when there is none. */
  read(room: string): Promise<StoredRoom | undefined>;
  /** Makes a room, with at least one occupant, and returns its version; undefined when there is one already. */
  create(
    room: string,
    content: { readonly config: string; readonly occupants: readonly RoomOccupant[] },
  ): Promise<number | undefined>;
  /** Changes a room, and returns its new version; undefined when it has not the expected one. */
  change(room: string, change: RoomChange): Promise<number | undefined>;
  /** Removes a room with its occupants; false when it has not the version `expected`. */
  destroy(room: string, expected: number): Promise<boolean>;
  /**
   * Gives the next message of a room its number; undefined when there is no such room, or `sender` is
   * not in it.
   *
   * @param message is kept for the archive. The same one gets the same number again. @default nothing
   * is kept
   * @throws CausewayError `storage/overloaded` when the archive lacks `MAX_UNARCHIVED` messages
   */
  takeNumber(
    room: string,
    sender: string,
    message?: NewRoomMessage,
  ): Promise<NumberedMessage | undefined>;
  /**
   * Returns the newest messages of a room that it still keeps, at most `limit`, oldest first.
   * @param after leaves out messages up to this number
   * @param before leaves out messages from this number on
   */
  messages(
    room: string,
    page: { readonly limit: number; readonly after?: number; readonly before?: number },
  ): Promise<readonly RoomMessage[]>;
  /** Returns a page of the rooms that somebody is in, at most `limit`, in an order that stays. */
  roomsOf(user: string, page: RoomListPage): Promise<readonly ListedRoom[]>;
  /** Returns the number of rooms that each of these people is in; at most 500 people. */
  countRoomsOf(users: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Returns by whom somebody does not want to be added. */
  blocks(user: string): Promise<readonly RoomBlock[]>;
  /**
   * Adds and removes blocks of somebody. False, and nothing is changed, when there would be more than
   * `max`. Changes at the same moment may together exceed it.
   */
  changeBlocks(
    user: string,
    changes: { readonly added: readonly RoomBlock[]; readonly removed: readonly RoomBlock[] },
    max: number,
  ): Promise<boolean>;
  /** Returns those of `users`, at most 500, who block any of `by`, at most 10. */
  blocking(users: readonly string[], by: readonly RoomBlock[]): Promise<ReadonlySet<string>>;
  /**
   * Takes somebody out of all rooms, of other domains too, and removes their blocks. Whoever has been
   * there for the longest time becomes the owner in their place. Empty rooms go.
   *
   * @returns the rooms that have gone
   */
  removeUser(user: string): Promise<readonly string[]>;
}

/** Returns the one who becomes the owner of a room that has lost its own. */
export function successorIn(occupants: readonly RoomOccupant[]): RoomOccupant | undefined {
  return occupants[0];
}
