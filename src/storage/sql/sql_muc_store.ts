import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type {
  ListedMucRoom,
  MucAffiliate,
  MucAffiliation,
  MucRoomChange,
  MucStore,
  NewMucMessage,
  NewMucRoom,
  StoredMucRoom,
} from "../muc_store.ts";
import type { OverdueRooms, RoomMessage, RoomOutbox, UnarchivedMessages } from "../room_outbox.ts";
import type { RoomListPage } from "../room_list_page.ts";
import { storageError } from "../storage_error.ts";
import { keyOf } from "./keys.ts";
import { RoomMessages } from "./room_messages.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";

/** Attempts to read a room that others change all the time. */
const MAX_READS = 16;
/** Rows that one statement writes or removes: SQL Server takes 2100 parameters. */
const ROWS_AT_ONCE = 200;

/** Affiliations by the number that stands for them. */
const AFFILIATIONS: readonly MucAffiliation[] = ["outcast", "member", "admin", "owner"];

/**
 * The Multi-User Chat rooms of one domain in an SQL database. Whoever changes a room, or adds a
 * message to it, first changes its row, and so waits for others who do the same.
 */
export class SqlMucStore implements MucStore {
  readonly #database: SqlDatabase;
  readonly #service: Uint8Array;
  readonly #clock: Clock;
  readonly #messages: RoomMessages;

  /** @param domainpart domain of the rooms */
  constructor(database: SqlDatabase, domainpart: string, clock: Clock = new SystemClock()) {
    this.#database = database;
    this.#service = keyOf(domainpart);
    this.#clock = clock;
    this.#messages = new RoomMessages(database, { rooms: "muc_rooms", messages: "muc_messages" });
  }

  async read(room: string): Promise<StoredMucRoom | undefined> {
    const key = keyOf(room);
    return await this.#read(async (queries) => {
      for (let attempt = 0; attempt < MAX_READS; attempt++) {
        const found = await queries.selectFrom("muc_rooms")
          .select(["version", "config", "subject", "last_number", "created"]).where(
            "room_key",
            "=",
            key,
          )
          .executeTakeFirst();
        if (found === undefined) return undefined;
        const rows = await queries.selectFrom("muc_affiliations")
          .select(["affiliate", "affiliation", "reason"]).where("room_key", "=", key).execute();
        const again = await queries.selectFrom("muc_rooms").select("version")
          .where("room_key", "=", key).executeTakeFirst();
        const version = Number(found.version);
        // The room was changed between the two.
        if (again === undefined || Number(again.version) !== version) continue;
        return {
          version,
          creation: Number(found.created),
          config: decode(found.config),
          subject: decode(found.subject),
          lastNumber: Number(found.last_number),
          affiliates: affiliatesIn(rows),
        };
      }
      throw storageError("conflict", { action: "read rooms from", place: this.#database.place });
    });
  }

  async create(
    room: string,
    { config, isListed, affiliates, creator, maxCreated }: NewMucRoom,
  ): Promise<number | "exists" | "too-many"> {
    const [key, creatorKey] = [keyOf(room), keyOf(creator)];
    return await this.#database.transact("make a room in", async (queries) => {
      const found = await queries.selectFrom("muc_rooms").select("version")
        .where("room_key", "=", key).executeTakeFirst();
      if (found !== undefined) return "exists";
      // For people who may make no more rooms, nothing is changed, and nothing waits.
      if (await this.#countCreated(queries, creatorKey) >= maxCreated) return "too-many";
      await lockCreator(queries, creatorKey);
      if (await this.#countCreated(queries, creatorKey) >= maxCreated) return "too-many";
      // Times as first versions and numbers: a room that is made again has none that it has had
      // before.
      const version = this.#clock.wallMs();
      // A row that another transaction is inserting makes this one fail, and `transact` repeat it.
      await queries.insertInto("muc_rooms").values({
        room_key: key,
        service_key: this.#service,
        creator_key: creatorKey,
        room: encode(room),
        config: encode(config),
        subject: encode(""),
        is_listed: isListed ? 1 : 0,
        version,
        last_number: version,
        created: version,
        archived_number: version,
      }).execute();
      await insertAffiliates(queries, key, affiliates);
      return version;
    });
  }

  async change(
    room: string,
    { expected, config, isListed, set = [], removed = [] }: MucRoomChange,
  ): Promise<number | undefined> {
    const key = keyOf(room);
    return await this.#database.transact("change a room in", async (queries) => {
      const version = expected + 1;
      const { numUpdatedRows } = await queries.updateTable("muc_rooms")
        .set({
          version,
          ...config !== undefined && { config: encode(config) },
          ...isListed !== undefined && { is_listed: isListed ? 1 : 0 },
        })
        .where("room_key", "=", key).where("version", "=", expected).executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return undefined;
      for (const some of portions([...removed, ...set.map(({ jid }) => jid)])) {
        await queries.deleteFrom("muc_affiliations").where("room_key", "=", key)
          .where("user_key", "in", some.map((jid) => keyOf(jid))).execute();
      }
      await insertAffiliates(queries, key, set);
      return version;
    });
  }

  async destroy(room: string, expected: number): Promise<boolean> {
    const key = keyOf(room);
    return await this.#database.transact("remove a room from", async (queries) => {
      const { numDeletedRows } = await queries.deleteFrom("muc_rooms")
        .where("room_key", "=", key).where("version", "=", expected).executeTakeFirstOrThrow();
      if (numDeletedRows === 0n) return false;
      await queries.deleteFrom("muc_affiliations").where("room_key", "=", key).execute();
      await queries.deleteFrom("muc_messages").where("room_key", "=", key).execute();
      return true;
    });
  }

  async post(room: string, message: NewMucMessage): Promise<number | undefined> {
    const key = keyOf(room);
    const { subject } = message;
    return await this.#database.transact("add a message to a room in", async (queries) => {
      // It was added already, and the answer was lost.
      const known = await this.#messages.numberOf(queries, key, message.id);
      if (known !== undefined) return known;
      const { numUpdatedRows } = await queries.updateTable("muc_rooms")
        .set((each) => ({
          last_number: each("last_number", "+", 1),
          ...subject !== undefined && { subject: encode(subject) },
        }))
        .where("room_key", "=", key).executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return undefined;
      const row = await queries.selectFrom("muc_rooms").select("last_number")
        .where("room_key", "=", key).executeTakeFirstOrThrow();
      const number = Number(row.last_number);
      await this.#messages.add(queries, key, number, message);
      return number;
    });
  }

  messages(
    room: string,
    page: Parameters<MucStore["messages"]>[1],
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

  async list(
    { limit, after, before, isLast = before !== undefined }: RoomListPage,
  ): Promise<readonly ListedMucRoom[]> {
    if (limit === 0) return [];
    return await this.#read(async (queries) => {
      let query = queries.selectFrom("muc_rooms").select(["room", "config"])
        .where("service_key", "=", this.#service).where("is_listed", "=", 1)
        .orderBy("room_key", isLast ? "desc" : "asc");
      if (after !== undefined) query = query.where("room_key", ">", keyOf(after));
      if (before !== undefined) query = query.where("room_key", "<", keyOf(before));
      const rows = await this.#database.dialect.limit(query, limit).execute();
      const found = rows.map(({ room, config }) => ({
        room: decode(room),
        config: decode(config),
      }));
      return isLast ? found.toReversed() : found;
    });
  }

  async countListed(): Promise<number> {
    return await this.#read(async (queries) => {
      const found = await queries.selectFrom("muc_rooms")
        .select(({ fn }) => fn.countAll<number | string>().as("rooms"))
        .where("service_key", "=", this.#service).where("is_listed", "=", 1)
        .executeTakeFirst();
      return Number(found?.rooms ?? 0);
    });
  }

  async removeUser(user: string): Promise<void> {
    const own = keyOf(user);
    const rooms = await this.#read((queries) =>
      queries.selectFrom("muc_affiliations").select("room_key").where("user_key", "=", own)
        .execute()
    );
    for (const { room_key: key } of rooms) {
      await this.#database.transact("take a user out of a room in", async (queries) => {
        await queries.updateTable("muc_rooms")
          .set((each) => ({ version: each("version", "+", 1) })).where("room_key", "=", key)
          .execute();
        await queries.deleteFrom("muc_affiliations").where("room_key", "=", key)
          .where("user_key", "=", own).execute();
      });
    }
    await this.#database.transact("forget the creator of rooms in", async (queries) => {
      await queries.deleteFrom("muc_creators").where("creator_key", "=", own).execute();
      await queries.updateTable("muc_rooms").set({ creator_key: null })
        .where("creator_key", "=", own).execute();
    });
  }

  async #countCreated(queries: Queries, creator: Uint8Array): Promise<number> {
    const { rooms } = await queries.selectFrom("muc_rooms")
      .select(({ fn }) => fn.countAll<number | string>().as("rooms"))
      .where("creator_key", "=", creator).where("service_key", "=", this.#service)
      .executeTakeFirstOrThrow();
    return Number(rooms);
  }

  #read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#database.run("read rooms from", work);
  }
}

/** Makes other transactions that make rooms for the same creator wait for this one. */
async function lockCreator(queries: Queries, creator: Uint8Array): Promise<void> {
  const { numUpdatedRows } = await queries.updateTable("muc_creators")
    .set((each) => ({ changes: each("changes", "+", 1) })).where("creator_key", "=", creator)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows > 0n) return;
  // A row that another transaction is inserting makes this one fail, and `transact` repeat it.
  await queries.insertInto("muc_creators").values({ creator_key: creator, changes: 1 }).execute();
}

async function insertAffiliates(
  queries: Queries,
  key: Uint8Array,
  affiliates: readonly MucAffiliate[],
): Promise<void> {
  const values = affiliates.map(({ jid, affiliation, reason }) => ({
    room_key: key,
    user_key: keyOf(jid),
    affiliate: encode(jid),
    affiliation: AFFILIATIONS.indexOf(affiliation),
    reason: encode(reason),
  }));
  for (const some of portions(values)) {
    await queries.insertInto("muc_affiliations").values(some).execute();
  }
}

function affiliatesIn(
  rows: readonly {
    readonly affiliate: Uint8Array;
    readonly affiliation: number;
    readonly reason: Uint8Array;
  }[],
): readonly MucAffiliate[] {
  return rows.map((row) => ({
    jid: decode(row.affiliate),
    affiliation: AFFILIATIONS[Number(row.affiliation)]!, // as this file wrote it
    reason: decode(row.reason),
  })).toSorted((one, other) => one.jid < other.jid ? -1 : 1);
}

function* portions<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += ROWS_AT_ONCE) {
    yield items.slice(start, start + ROWS_AT_ONCE);
  }
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
