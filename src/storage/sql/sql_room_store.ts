import { Buffer } from "node:buffer";
import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import { successorIn } from "../room_store.ts";
import type {
  ListedRoom,
  NumberedMessage,
  RoomBlock,
  RoomChange,
  RoomOccupant,
  RoomStore,
  StoredRoom,
} from "../room_store.ts";
import type {
  NewRoomMessage,
  OverdueRooms,
  RoomMessage,
  RoomOutbox,
  UnarchivedMessages,
} from "../room_outbox.ts";
import type { RoomListPage } from "../room_list_page.ts";
import { storageError } from "../storage_error.ts";
import { keyOf } from "./keys.ts";
import { RoomMessages } from "./room_messages.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";

/** Attempts to read a room that others change all the time. */
const MAX_READS = 16;
/** Rows that one statement writes or removes: SQL Server takes 2100 parameters. */
const ROWS_AT_ONCE = 200;

/**
 * The MUC Light rooms of one domain in an SQL database. Whoever changes a room first changes its row,
 * and so waits for others who do the same.
 */
export class SqlRoomStore implements RoomStore {
  readonly #database: SqlDatabase;
  readonly #service: Uint8Array;
  readonly #clock: Clock;
  readonly #messages: RoomMessages;

  /** @param domainpart domain of the rooms */
  constructor(database: SqlDatabase, domainpart: string, clock: Clock = new SystemClock()) {
    this.#database = database;
    this.#service = keyOf(domainpart);
    this.#clock = clock;
    this.#messages = new RoomMessages(database, {
      rooms: "muc_light_rooms",
      messages: "muc_light_messages",
    });
  }

  async read(room: string): Promise<StoredRoom | undefined> {
    const key = keyOf(room);
    return await this.#read(async (queries) => {
      for (let attempt = 0; attempt < MAX_READS; attempt++) {
        const found = await queries.selectFrom("muc_light_rooms")
          .select(["version", "config", "created"])
          .where("room_key", "=", key).executeTakeFirst();
        if (found === undefined) return undefined;
        // The configuration may be large, so it is not read with each occupant.
        const rows = await queries.selectFrom("muc_light_rooms as room")
          .innerJoin("muc_light_occupants as one", "one.room_key", "room.room_key")
          .select(["room.version", "one.occupant", "one.affiliation", "one.joined"])
          .where("room.room_key", "=", key).execute();
        const version = Number(found.version);
        // The room was changed between the two.
        if (rows.length === 0 || Number(rows[0]!.version) !== version) continue;
        return {
          version,
          creation: Number(found.created),
          config: decode(found.config),
          occupants: occupantsIn(rows),
        };
      }
      throw storageError("conflict", { action: "read rooms from", place: this.#database.place });
    });
  }

  async create(
    room: string,
    { config, occupants }: Parameters<RoomStore["create"]>[1],
  ): Promise<number | undefined> {
    const key = keyOf(room);
    return await this.#database.transact("make a room in", async (queries) => {
      const found = await queries.selectFrom("muc_light_rooms").select("version")
        .where("room_key", "=", key).executeTakeFirst();
      if (found !== undefined) return undefined;
      // Times as first versions and numbers: a room that is made again has none that it has had
      // before.
      const version = this.#clock.wallMs();
      // A program of an earlier version leaves them when it removes a room.
      await queries.deleteFrom("muc_light_messages").where("room_key", "=", key).execute();
      // A row that another transaction is inserting makes this one fail, and `transact` repeat it.
      await queries.insertInto("muc_light_rooms").values({
        room_key: key,
        room: encode(room),
        config: encode(config),
        version,
        last_number: version,
        created: version,
        archived_number: version,
      }).execute();
      await this.#insert(queries, key, occupants.map((each) => ({ ...each, joined: version })));
      return version;
    });
  }

  async change(
    room: string,
    { expected, config, set = [], removed = [] }: RoomChange,
  ): Promise<number | undefined> {
    const key = keyOf(room);
    return await this.#database.transact("change a room in", async (queries) => {
      const version = expected + 1;
      const { numUpdatedRows } = await queries.updateTable("muc_light_rooms")
        .set({ version, ...config !== undefined && { config: encode(config) } })
        .where("room_key", "=", key).where("version", "=", expected).executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return undefined;
      // The room's row is locked, so nobody else changes its occupants.
      const before = await joinedIn(queries, key);
      await removeOccupants(queries, key, [...removed, ...set.map(({ jid }) => jid)]);
      await this.#insert(
        queries,
        key,
        set.map((each) => ({ ...each, joined: before.get(each.jid) ?? version })),
      );
      return version;
    });
  }

  async destroy(room: string, expected: number): Promise<boolean> {
    const key = keyOf(room);
    return await this.#database.transact("remove a room from", async (queries) => {
      const { numDeletedRows } = await queries.deleteFrom("muc_light_rooms")
        .where("room_key", "=", key).where("version", "=", expected).executeTakeFirstOrThrow();
      if (numDeletedRows === 0n) return false;
      await queries.deleteFrom("muc_light_occupants").where("room_key", "=", key).execute();
      await queries.deleteFrom("muc_light_messages").where("room_key", "=", key).execute();
      return true;
    });
  }

  async takeNumber(
    room: string,
    sender: string,
    message?: NewRoomMessage,
  ): Promise<NumberedMessage | undefined> {
    const key = keyOf(room);
    return await this.#database.transact("number a message in", async (queries) => {
      // For people who are not in the room, nothing is changed, and nothing waits.
      const found = await queries.selectFrom("muc_light_occupants").select("affiliation")
        .where("room_key", "=", key).where("user_key", "=", keyOf(sender)).executeTakeFirst();
      if (found === undefined) return undefined;
      // It was added already, and the answer was lost.
      const known = message && await this.#messages.numberOf(queries, key, message.id);
      const number = known ?? await this.#nextNumber(queries, key);
      const rows = await queries.selectFrom("muc_light_occupants")
        .select(["occupant", "affiliation", "joined"]).where("room_key", "=", key).execute();
      const occupants = occupantsIn(rows);
      // Gone since the first look. Nobody has seen the number: the room's row is locked.
      if (!occupants.some(({ jid }) => jid === sender)) {
        if (known === undefined) await this.#addToLast(queries, key, -1);
        return undefined;
      }
      if (message !== undefined && known === undefined) {
        await this.#messages.add(queries, key, number, message);
      }
      return { number, occupants };
    });
  }

  async #nextNumber(queries: Queries, room: Uint8Array): Promise<number> {
    await this.#addToLast(queries, room, 1);
    const row = await queries.selectFrom("muc_light_rooms").select("last_number")
      .where("room_key", "=", room).executeTakeFirst();
    return Number(row?.last_number ?? 0);
  }

  async #addToLast(queries: Queries, room: Uint8Array, count: 1 | -1): Promise<void> {
    await queries.updateTable("muc_light_rooms")
      .set((each) => ({ last_number: each("last_number", "+", count) }))
      .where("room_key", "=", room).execute();
  }

  messages(
    room: string,
    page: Parameters<RoomStore["messages"]>[1],
  ): Promise<readonly RoomMessage[]> {
    return this.#messages.newest(room, page);
  }

  unarchived(room: string, limit: number): Promise<UnarchivedMessages | undefined> {
    return this.#messages.unarchived(room, limit);
  }

  markArchived(room: string, upTo: Parameters<RoomOutbox["markArchived"]>[1]): Promise<boolean> {
    return this.#messages.markArchived(room, upTo);
  }

  overdue(page: Parameters<RoomOutbox["overdue"]>[0]): Promise<OverdueRooms> {
    return this.#messages.overdue(page);
  }

  async roomsOf(
    user: string,
    { limit, after, before, isLast = before !== undefined }: RoomListPage,
  ): Promise<readonly ListedRoom[]> {
    return await this.#read(async (queries) => {
      let query = queries.selectFrom("muc_light_occupants as one")
        .innerJoin("muc_light_rooms as room", "room.room_key", "one.room_key")
        .select(["room.room", "room.version", "room.config"])
        .where("one.user_key", "=", keyOf(user)).where("one.service_key", "=", this.#service)
        .orderBy("one.room_key", isLast ? "desc" : "asc");
      if (after !== undefined) query = query.where("one.room_key", ">", keyOf(after));
      if (before !== undefined) query = query.where("one.room_key", "<", keyOf(before));
      const rows = await this.#database.dialect.limit(query, limit).execute();
      const found = rows.map(({ room, version, config }) => ({
        room: decode(room),
        version: Number(version),
        config: decode(config),
      }));
      return isLast ? found.toReversed() : found;
    });
  }

  async countRoomsOf(users: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (users.length === 0) return new Map();
    const names = new Map(users.map((user) => [hex(keyOf(user)), user]));
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("muc_light_occupants")
        .select(({ fn }) => ["user_key", fn.countAll<number | string>().as("rooms")])
        .where("user_key", "in", users.map((user) => keyOf(user)))
        .where("service_key", "=", this.#service)
        .groupBy("user_key").execute();
      // The query asked for these keys alone.
      return new Map(rows.map((row) => [names.get(hex(row.user_key))!, Number(row.rooms)]));
    });
  }

  async blocks(user: string): Promise<readonly RoomBlock[]> {
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("muc_light_blocks").select(["is_room", "blocked"])
        .where("user_key", "=", keyOf(user)).where("service_key", "=", this.#service).execute();
      return rows.map((row): RoomBlock => ({
        kind: Number(row.is_room) === 1 ? "room" : "user",
        jid: decode(row.blocked),
      })).toSorted((one, other) => textOfBlock(one) < textOfBlock(other) ? -1 : 1);
    });
  }

  async changeBlocks(
    user: string,
    { added, removed }: Parameters<RoomStore["changeBlocks"]>[1],
    max: number,
  ): Promise<boolean> {
    const own = keyOf(user);
    return await this.#database.transact("change blocks in", async (queries) => {
      const rows = await queries.selectFrom("muc_light_blocks").select(["is_room", "blocked"])
        .where("user_key", "=", own).where("service_key", "=", this.#service).execute();
      const before = new Set(rows.map((row) => `${Number(row.is_room)} ${decode(row.blocked)}`));
      const gone = removed.filter((each) => before.has(textOfBlock(each)));
      const fresh = new Map(
        added.filter((each) => !before.has(textOfBlock(each))).map((each) => [
          textOfBlock(each),
          each,
        ]),
      );
      if (fresh.size > 0 && before.size - gone.length + fresh.size > max) return false;
      for (const { kind, jid } of gone) {
        await queries.deleteFrom("muc_light_blocks")
          .where("user_key", "=", own).where("service_key", "=", this.#service)
          .where("blocked_key", "=", keyOf(jid)).where("is_room", "=", kind === "room" ? 1 : 0)
          .execute();
      }
      const values = [...fresh.values()].map(({ kind, jid }) => ({
        user_key: own,
        service_key: this.#service,
        blocked_key: keyOf(jid),
        is_room: kind === "room" ? 1 : 0,
        blocked: encode(jid),
      }));
      for (const some of portions(values)) {
        await queries.insertInto("muc_light_blocks").values(some).execute();
      }
      return true;
    });
  }

  async blocking(
    users: readonly string[],
    by: readonly RoomBlock[],
  ): Promise<ReadonlySet<string>> {
    if (users.length === 0 || by.length === 0) return new Set();
    const names = new Map(users.map((user) => [hex(keyOf(user)), user]));
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("muc_light_blocks")
        .select(["user_key", "is_room", "blocked"])
        .where("user_key", "in", users.map((user) => keyOf(user)))
        .where("service_key", "=", this.#service)
        .where("blocked_key", "in", by.map(({ jid }) => keyOf(jid))).execute();
      const wanted = new Set(by.map(textOfBlock));
      return new Set(
        rows.filter((row) => wanted.has(`${Number(row.is_room)} ${decode(row.blocked)}`))
          .map((row) => names.get(hex(row.user_key))!), // the query asked for these keys alone
      );
    });
  }

  async removeUser(user: string): Promise<readonly string[]> {
    const own = keyOf(user);
    const rooms = await this.#read((queries) =>
      queries.selectFrom("muc_light_occupants as one")
        .innerJoin("muc_light_rooms as room", "room.room_key", "one.room_key")
        .select(["one.room_key", "room.room"]).where("one.user_key", "=", own).execute()
    );
    const gone: string[] = [];
    for (const { room_key: key, room } of rooms) {
      const isGone = await this.#database.transact(
        "take an occupant out of a room in",
        (queries) => this.#takeOut(queries, key, user),
      );
      if (isGone) gone.push(decode(room));
    }
    await this.#database.transact("remove blocks from", async (queries) => {
      await queries.deleteFrom("muc_light_blocks").where("user_key", "=", own).execute();
    });
    return gone;
  }

  /** Returns true when the room has gone. */
  async #takeOut(queries: Queries, room: Uint8Array, user: string): Promise<boolean> {
    await queries.updateTable("muc_light_rooms")
      .set((each) => ({ version: each("version", "+", 1) })).where("room_key", "=", room).execute();
    const rows = await queries.selectFrom("muc_light_occupants")
      .select(["occupant", "affiliation", "joined"]).where("room_key", "=", room).execute();
    const occupants = occupantsIn(rows);
    const left = occupants.filter(({ jid }) => jid !== user);
    await removeOccupants(queries, room, [user]);
    const successor = successorIn(left);
    if (successor === undefined) {
      await queries.deleteFrom("muc_light_rooms").where("room_key", "=", room).execute();
      await queries.deleteFrom("muc_light_messages").where("room_key", "=", room).execute();
      return true;
    }
    const isOwned = occupants.some(({ affiliation }) => affiliation === "owner");
    if (!isOwned || left.some(({ affiliation }) => affiliation === "owner")) return false;
    await queries.updateTable("muc_light_occupants").set({ affiliation: 1 })
      .where("room_key", "=", room).where("user_key", "=", keyOf(successor.jid)).execute();
    return false;
  }

  async #insert(
    queries: Queries,
    room: Uint8Array,
    occupants: readonly (RoomOccupant & { readonly joined: number })[],
  ): Promise<void> {
    const values = occupants.map(({ jid, affiliation, joined }) => ({
      room_key: room,
      user_key: keyOf(jid),
      service_key: this.#service,
      occupant: encode(jid),
      affiliation: affiliation === "owner" ? 1 : 0,
      joined,
    }));
    for (const some of portions(values)) {
      await queries.insertInto("muc_light_occupants").values(some).execute();
    }
  }

  #read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#database.run("read rooms from", work);
  }
}

/** Returns the versions with which the occupants of a room came. */
async function joinedIn(queries: Queries, room: Uint8Array): Promise<ReadonlyMap<string, number>> {
  const rows = await queries.selectFrom("muc_light_occupants").select(["occupant", "joined"])
    .where("room_key", "=", room).execute();
  return new Map(rows.map(({ occupant, joined }) => [decode(occupant), Number(joined)]));
}

async function removeOccupants(
  queries: Queries,
  room: Uint8Array,
  jids: readonly string[],
): Promise<void> {
  for (const some of portions(jids)) {
    await queries.deleteFrom("muc_light_occupants").where("room_key", "=", room)
      .where("user_key", "in", some.map((jid) => keyOf(jid))).execute();
  }
}

function occupantsIn(
  rows: readonly {
    readonly occupant: Uint8Array;
    readonly affiliation: number;
    readonly joined: number;
  }[],
): readonly RoomOccupant[] {
  return rows.map(({ occupant, affiliation, joined }) => ({
    occupant: {
      jid: decode(occupant),
      affiliation: Number(affiliation) === 1 ? "owner" as const : "member" as const,
    },
    joined: Number(joined),
  })).toSorted((one, other) =>
    one.joined - other.joined || (one.occupant.jid < other.occupant.jid ? -1 : 1)
  ).map(({ occupant }) => occupant);
}

function* portions<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += ROWS_AT_ONCE) {
    yield items.slice(start, start + ROWS_AT_ONCE);
  }
}

function textOfBlock({ kind, jid }: RoomBlock): string {
  return `${kind === "room" ? 1 : 0} ${jid}`;
}

function hex(key: Uint8Array): string {
  return Buffer.from(key).toString("hex");
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
