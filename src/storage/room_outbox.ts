/** A message that a room has taken. */
export interface RoomMessage {
  /** Its place in the order of the room. Each number is one more than the one before. */
  readonly number: number;
  readonly id: string;
  readonly sentAtMs: number;
  /** Text of the stanza, as occupants get it. */
  readonly stanza: string;
}

/** A message for a room. */
export interface NewRoomMessage extends Omit<RoomMessage, "number"> {
  /** Id that no other message has. Taking a message twice gives it one number. */
  readonly id: string;
  /** Bare JID of its sender, which occupants may not know. */
  readonly sender?: string | undefined;
  /** Messages that the room keeps at least; at least 1. Older ones go, sooner or later. */
  readonly keep: number;
  /** True: messages stay until the archive has them, however many the room keeps. @default false */
  readonly isArchived?: boolean;
}

/** A message that the archive of its room may lack. */
export interface UnarchivedMessage extends RoomMessage {
  /** Bare JID of its sender; undefined in messages of earlier versions. */
  readonly sender: string | undefined;
}

/** The oldest messages of a room that its archive may lack. */
export interface UnarchivedMessages {
  /** Tells the room from earlier ones of its name. */
  readonly creation: number;
  /** In their order. None: the archive has all. */
  readonly messages: readonly UnarchivedMessage[];
}

/** Rooms that a look through all of them has found. */
export interface OverdueRooms {
  /** Bare JIDs of rooms. */
  readonly rooms: readonly string[];
  /** The room behind which the next page begins; undefined behind the last page. */
  readonly next: string | undefined;
}

/** Messages that a room may have taken without its archive, until it takes no more. */
export const MAX_UNARCHIVED = 5_000;

/**
 * Messages of rooms on their way into archives. A room keeps a message until it is noted that the
 * archive has it.
 */
export interface RoomOutbox {
  /** Returns the first messages that the archive may lack, at most `limit`; undefined when there is no such room. */
  unarchived(room: string, limit: number): Promise<UnarchivedMessages | undefined>;
  /**
   * Notes that the archive has all messages up to a number. False when there is no such room, or
   * another one of its name.
   */
  markArchived(
    room: string,
    upTo: { readonly creation: number; readonly number: number },
  ): Promise<boolean>;
  /**
   * Looks at `limit` rooms of all domains, in an order that stays, and returns those whose archives may
   * lack a message that was sent before `sentBeforeMs`. A page begins behind the room `after`.
   */
  overdue(
    page: { readonly limit: number; readonly after?: string; readonly sentBeforeMs: number },
  ): Promise<OverdueRooms>;
}

/** Kinds of rooms, as `DataKind` names them. */
export type RoomKind = "muc" | "muc_light";

/** Names of the rooms of one kind in a database, of all domains. */
export interface RoomNames {
  /**
   * Returns bare JIDs of rooms, at most `limit`, in an order that stays. A page begins behind the room
   * `after`.
   */
  list(
    page: { readonly limit: number; readonly after?: string },
  ): Promise<readonly string[]>;
  /** Returns those of at most 500 rooms that there are, each with what tells it from earlier ones. */
  existing(rooms: readonly string[]): Promise<ReadonlyMap<string, number>>;
}
