import { MAX_UNARCHIVED } from "../room_outbox.ts";
import type {
  NewRoomMessage,
  OverdueRooms,
  RoomMessage,
  RoomOutbox,
  UnarchivedMessage,
  UnarchivedMessages,
} from "../room_outbox.ts";
import { storageError } from "../storage_error.ts";
import { keyOf } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";

/** Old messages go together, when a message comes whose number is a multiple of this. */
const PRUNING = 16;
/** Rooms whose messages one statement looks for. */
const ROOMS_AT_ONCE = 500;
/** Attempts to read a room that is made again meanwhile. */
const MAX_READS = 4;

/** Tables of rooms of one kind. The columns that are used here are the same in both. */
type RoomTables =
  | { readonly rooms: "muc_rooms"; readonly messages: "muc_messages" }
  | { readonly rooms: "muc_light_rooms"; readonly messages: "muc_light_messages" };

/** Messages of the rooms of one kind in an SQL database: the last ones, and those that archives lack. */
export class RoomMessages implements RoomOutbox {
  readonly #database: SqlDatabase;
  readonly #rooms: "muc_rooms";
  readonly #messages: "muc_messages";

  constructor(database: SqlDatabase, { rooms, messages }: RoomTables) {
    this.#database = database;
    // Types of one kind stand for both: queries are the same text but for these names.
    this.#rooms = rooms as "muc_rooms";
    this.#messages = messages as "muc_messages";
  }

  /** Returns the number that a message has already. */
  async numberOf(queries: Queries, room: Uint8Array, id: string): Promise<number | undefined> {
    const known = await queries.selectFrom(this.#messages).select("number")
      .where("room_key", "=", room).where("message_key", "=", keyOf(id)).executeTakeFirst();
    return known === undefined ? undefined : Number(known.number);
  }

  /**
   * Adds a message to a room whose last number it has got, in the same transaction.
   *
   * @throws CausewayError `storage/overloaded` when the archive lacks too many
   */
  async add(
    queries: Queries,
    room: Uint8Array,
    number: number,
    { id, sentAtMs, sender, stanza, keep, isArchived = false }: NewRoomMessage,
  ): Promise<void> {
    const state = isArchived ? await this.#stateOf(queries, room) : undefined;
    const archived = state?.archived ?? Infinity;
    // Nothing is known of the archives of rooms that earlier versions made, until they get a message.
    const isKnown = state !== undefined && state.creation + archived > 0;
    if (
      isKnown && number - archived > MAX_UNARCHIVED &&
      // Numbers of messages that were not to be kept are no messages that the archive lacks.
      number - await this.#oldestAfter(queries, room, archived) >= MAX_UNARCHIVED
    ) {
      throw storageError("overloaded", {
        action: "add a message to a room in",
        place: this.#database.place,
      });
    }
    await queries.insertInto(this.#messages).values({
      room_key: room,
      number,
      message_key: keyOf(id),
      message_id: encode(id),
      sent_at: sentAtMs,
      sender: sender === undefined ? null : encode(sender),
      stanza: encode(stanza),
    }).execute();
    const last = Math.min(number - keep, archived);
    if (number % PRUNING !== 0 || last <= 0) return;
    await queries.deleteFrom(this.#messages).where("room_key", "=", room)
      .where("number", "<=", last).execute();
  }

  /** Returns the newest messages of a room, at most `limit`, oldest first. */
  async newest(
    room: string,
    { limit, after, before }: {
      readonly limit: number;
      readonly after?: number;
      readonly before?: number;
    },
  ): Promise<readonly RoomMessage[]> {
    if (limit === 0) return [];
    return await this.#read(async (queries) => {
      let query = queries.selectFrom(this.#messages)
        .select(["number", "message_id", "sent_at", "stanza"])
        .where("room_key", "=", keyOf(room)).orderBy("number", "desc");
      if (after !== undefined) query = query.where("number", ">", after);
      if (before !== undefined) query = query.where("number", "<", before);
      const rows = await this.#database.dialect.limit(query, limit).execute();
      return rows.map(messageIn).toReversed();
    });
  }

  async unarchived(room: string, limit: number): Promise<UnarchivedMessages | undefined> {
    const key = keyOf(room);
    return await this.#read(async (queries) => {
      for (let attempt = 0; attempt < MAX_READS; attempt++) {
        const found = await this.#stateOf(queries, key);
        if (found === undefined) return undefined;
        const query = queries.selectFrom(this.#messages)
          .select(["number", "message_id", "sent_at", "sender", "stanza"])
          .where("room_key", "=", key).where("number", ">", found.archived).orderBy("number");
        const rows = await this.#database.dialect.limit(query, limit).execute();
        const again = await this.#stateOf(queries, key);
        if (again?.creation !== found.creation) continue; // it was made again between the two
        const messages = rows.map((row): UnarchivedMessage => ({
          ...messageIn(row),
          sender: row.sender === null ? undefined : decode(row.sender),
        }));
        return { creation: found.creation, messages };
      }
      throw storageError("conflict", { action: "read rooms from", place: this.#database.place });
    });
  }

  async markArchived(
    room: string,
    { creation, number }: Parameters<RoomOutbox["markArchived"]>[1],
  ): Promise<boolean> {
    const key = keyOf(room);
    return await this.#database.transact("note archived messages in", async (queries) => {
      const { numUpdatedRows } = await queries.updateTable(this.#rooms)
        .set({ archived_number: number })
        .where("room_key", "=", key).where("created", "=", creation)
        .where("archived_number", "<", number).executeTakeFirstOrThrow();
      if (numUpdatedRows !== 0n) return true;
      return (await this.#stateOf(queries, key))?.creation === creation;
    });
  }

  async overdue(
    { limit, after, sentBeforeMs }: Parameters<RoomOutbox["overdue"]>[0],
  ): Promise<OverdueRooms> {
    return await this.#read(async (queries) => {
      let query = queries.selectFrom(this.#rooms)
        .select(["room_key", "room", "last_number", "archived_number"]).orderBy("room_key");
      if (after !== undefined) query = query.where("room_key", ">", keyOf(after));
      const page = await this.#database.dialect.limit(query, limit).execute();
      const last = page.length < limit ? undefined : page.at(-1);
      const next = last && decode(last.room);
      // Few of them: others may have given numbers alone, to messages that are not kept.
      const keys = page
        .filter((row) => Number(row.archived_number) < Number(row.last_number))
        .map((row) => row.room_key);
      const found: string[] = [];
      for (let i = 0; i < keys.length; i += ROOMS_AT_ONCE) {
        const rows = await queries.selectFrom(this.#rooms).select("room")
          .where("room_key", "in", keys.slice(i, i + ROOMS_AT_ONCE))
          .where((each) =>
            each.exists(
              each.selectFrom(this.#messages).select("number")
                .whereRef(`${this.#messages}.room_key`, "=", `${this.#rooms}.room_key`)
                .whereRef("number", ">", "archived_number")
                .where("sent_at", "<", Math.trunc(sentBeforeMs)),
            )
          ).execute();
        found.push(...rows.map(({ room }) => decode(room)));
      }
      return { rooms: found, next };
    });
  }

  /** Returns the number of the oldest message behind a number; Infinity when there is none. */
  async #oldestAfter(queries: Queries, room: Uint8Array, number: number): Promise<number> {
    const query = queries.selectFrom(this.#messages).select("number")
      .where("room_key", "=", room).where("number", ">", number).orderBy("number");
    const row = await this.#database.dialect.limit(query, 1).executeTakeFirst();
    return row === undefined ? Infinity : Number(row.number);
  }

  async #stateOf(
    queries: Queries,
    room: Uint8Array,
  ): Promise<{ readonly creation: number; readonly archived: number } | undefined> {
    const row = await queries.selectFrom(this.#rooms).select(["created", "archived_number"])
      .where("room_key", "=", room).executeTakeFirst();
    return row && { creation: Number(row.created), archived: Number(row.archived_number) };
  }

  #read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#database.run("read rooms from", work);
  }
}

function messageIn(
  row: {
    readonly number: number;
    readonly message_id: Uint8Array;
    readonly sent_at: number;
    readonly stanza: Uint8Array;
  },
): RoomMessage {
  return {
    number: Number(row.number),
    id: decode(row.message_id),
    sentAtMs: Number(row.sent_at),
    stanza: decode(row.stanza),
  };
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
