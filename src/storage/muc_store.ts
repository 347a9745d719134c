import type { RoomListPage } from "./room_list_page.ts";
import type { NewRoomMessage, RoomMessage, RoomOutbox } from "./room_outbox.ts";

/** Lasting relation of somebody to a room (XEP-0045 §5.2); without an entry it is `none`. */
export type MucAffiliation = "owner" | "admin" | "member" | "outcast";

/** Somebody with an affiliation. */
export interface MucAffiliate {
  /** Bare JID. */
  readonly jid: string;
  readonly affiliation: MucAffiliation;
  /** Text for people, such as why somebody is banned; may be empty. */
  readonly reason: string;
}

/** A Multi-User Chat room, without its messages and occupants. */
export interface StoredMucRoom {
  /**
   * Grows with each change of the configuration or the affiliations, and not with the subject. A room
   * that is made again has no version of an earlier one, unless the clock of its node is behind.
   */
  readonly version: number;
  /** Wall-clock milliseconds when it was made. They tell the room from earlier ones of its name. */
  readonly creation: number;
  /** Configuration as the service wrote it. */
  readonly config: string;
  /** Subject as the service wrote it; empty when none was set. */
  readonly subject: string;
  /** Number of the last message; of none, the number before the first. */
  readonly lastNumber: number;
  /** In the order of their JIDs. */
  readonly affiliates: readonly MucAffiliate[];
}

/** A room that is to be made. */
export interface NewMucRoom {
  readonly config: string;
  /** True for a room that lists show. */
  readonly isListed: boolean;
  readonly affiliates: readonly MucAffiliate[];
  /** Bare JID of the one who makes it. */
  readonly creator: string;
  /** Rooms that the creator may have made, with this one. */
  readonly maxCreated: number;
}

/** One change of a room. */
export interface MucRoomChange {
  /** Version that the room must have. */
  readonly expected: number;
  /** @default the configuration stays */
  readonly config?: string;
  /** True for a room that lists show. @default it stays as it is */
  readonly isListed?: boolean;
  /** Affiliations that are given or changed. @default none */
  readonly set?: readonly MucAffiliate[];
  /** Bare JIDs that lose their affiliation. @default none */
  readonly removed?: readonly string[];
}

/** A message for a room. */
export interface NewMucMessage extends NewRoomMessage {
  /** The room's new subject, as the service writes it. @default the subject stays */
  readonly subject?: string;
}

/** A room in a list of rooms. */
export interface ListedMucRoom {
  /** Bare JID. */
  readonly room: string;
  readonly config: string;
}

/**
 * The Multi-User Chat rooms of one domain. Rooms and people are given by their normalised bare JIDs.
 * Occupants are not stored.
 *
 * Changes of one room at the same moment take effect one after another, whichever nodes and
 * datacenters make them, and so do its messages. Each change is made whole or not at all.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface MucStore extends RoomOutbox {
  /** Returns a room; undefined when there is none. */
  read(room: string): Promise<StoredMucRoom | undefined>;
  /**
   * Makes a room, and returns its version. `exists`: there is one already. `too-many`: as many rooms of
   * its creator are there as may be, whichever nodes made them. Rooms that earlier versions made are
   * not counted.
   */
  create(room: string, content: NewMucRoom): Promise<number | "exists" | "too-many">;
  /** Changes a room, and returns its new version; undefined when it has not the expected one. */
  change(room: string, change: MucRoomChange): Promise<number | undefined>;
  /** Removes a room with its messages; false when it has not the version `expected`. */
  destroy(room: string, expected: number): Promise<boolean>;
  /**
   * Takes a message, and returns its number; undefined when there is no such room. A room that is made
   * again has no number of an earlier one.
   *
   * @throws CausewayError `storage/overloaded` when its archive lacks `MAX_UNARCHIVED` messages
   */
  post(room: string, message: NewMucMessage): Promise<number | undefined>;
  /**
   * Returns the newest messages of a room that it still keeps, at most `limit`, oldest first.
   * @param after leaves out messages up to this number
   */
  messages(
    room: string,
    page: { readonly limit: number; readonly after?: number },
  ): Promise<readonly RoomMessage[]>;
  /** Returns a page of the rooms that lists show, at most `limit`, in an order that stays. */
  list(page: RoomListPage): Promise<readonly ListedMucRoom[]>;
  /** Returns the number of rooms that lists show. */
  countListed(): Promise<number>;
  /**
   * Takes all affiliations from somebody, in the rooms of other domains too. The rooms that they made
   * count as nobody's: the next owner of the name may make as many.
   */
  removeUser(user: string): Promise<void>;
}
