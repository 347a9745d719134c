import type { RoomKind, RoomNames } from "../room_outbox.ts";
import { keyOf } from "./keys.ts";
import type { SqlDatabase } from "./sql_database.ts";

/** Names of the rooms of one kind in an SQL database. */
export class SqlRoomNames implements RoomNames {
  readonly #database: SqlDatabase;
  /** The columns that are used here are the same in both tables: one type stands for both. */
  readonly #rooms: "muc_rooms";

  constructor(database: SqlDatabase, kind: RoomKind) {
    this.#database = database;
    this.#rooms = (kind === "muc" ? "muc_rooms" : "muc_light_rooms") as "muc_rooms";
  }

  async list(
    { limit, after }: Parameters<RoomNames["list"]>[0],
  ): Promise<readonly string[]> {
    return await this.#database.run("list the rooms in", async (queries) => {
      let query = queries.selectFrom(this.#rooms).select("room").orderBy("room_key");
      if (after !== undefined) query = query.where("room_key", ">", keyOf(after));
      const rows = await this.#database.dialect.limit(query, limit).execute();
      return rows.map(({ room }) => decode(room));
    });
  }

  async existing(rooms: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (rooms.length === 0) return new Map();
    return await this.#database.run("read rooms from", async (queries) => {
      const rows = await queries.selectFrom(this.#rooms).select(["room", "created"])
        .where("room_key", "in", rooms.map(keyOf)).execute();
      return new Map(rows.map(({ room, created }) => [decode(room), Number(created)]));
    });
  }
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
