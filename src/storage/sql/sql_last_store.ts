import type { AccountLogout, LastLogout, LastStore } from "../last_store.ts";
import type { Key } from "./keys.ts";
import { accountKey } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";

/** The last logouts of the accounts of one domain in an SQL database. */
export class SqlLastStore implements LastStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;

  constructor(database: SqlDatabase, domainpart: string) {
    this.#database = database;
    this.#domainpart = domainpart;
  }

  async read(localpart: string): Promise<LastLogout | undefined> {
    return await this.#database.run("read a last activity from", async (queries) => {
      const row = await queries.selectFrom("last_activity").select(["logged_out_at", "status"])
        .where("account_key", "=", this.#keyOf(localpart)).executeTakeFirst();
      return row && {
        atMs: Number(row.logged_out_at),
        status: new TextDecoder().decode(row.status),
      };
    });
  }

  async note(logouts: readonly AccountLogout[]): Promise<void> {
    const rows = logouts.map(({ localpart, atMs, status }) => ({
      account_key: this.#keyOf(localpart),
      logged_out_at: Math.trunc(atMs),
      status: new TextEncoder().encode(status),
    }));
    // Transactions that lock rows in one order do not wait for each other in a circle.
    rows.sort((one, other) => one.account_key.compare(other.account_key));
    await this.#database.transact("note a last activity in", async (queries) => {
      for (const row of rows) await note(queries, row);
    });
  }

  async remove(localpart: string): Promise<void> {
    await this.#database.run("remove a last activity from", async (queries) => {
      await queries.deleteFrom("last_activity")
        .where("account_key", "=", this.#keyOf(localpart)).execute();
    });
  }

  #keyOf(localpart: string): Key {
    return accountKey(localpart, this.#domainpart);
  }
}

interface Row {
  readonly account_key: Key;
  readonly logged_out_at: number;
  readonly status: Uint8Array;
}

async function note(queries: Queries, row: Row): Promise<void> {
  const { account_key: account, ...logout } = row;
  const found = await queries.selectFrom("last_activity").select("logged_out_at")
    .where("account_key", "=", account).executeTakeFirst();
  if (found === undefined) {
    await queries.insertInto("last_activity").values(row).execute();
    return;
  }
  // The condition holds at the moment of the change, whatever was found before.
  await queries.updateTable("last_activity").set(logout)
    .where("account_key", "=", account).where("logged_out_at", "<=", logout.logged_out_at)
    .execute();
}
