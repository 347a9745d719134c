import type { VcardStore } from "../vcard_store.ts";
import { accountKey } from "./keys.ts";
import type { SqlDatabase } from "./sql_database.ts";

/** The vCards of the accounts of one domain in an SQL database. */
export class SqlVcardStore implements VcardStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;

  constructor(database: SqlDatabase, domainpart: string) {
    this.#database = database;
    this.#domainpart = domainpart;
  }

  async read(localpart: string): Promise<string | undefined> {
    return await this.#database.run("read a vCard from", async (queries) => {
      const row = await queries.selectFrom("vcards").select("content")
        .where("account_key", "=", accountKey(localpart, this.#domainpart)).executeTakeFirst();
      return row && new TextDecoder().decode(row.content);
    });
  }

  async write(localpart: string, xml: string): Promise<void> {
    const account = accountKey(localpart, this.#domainpart);
    const content = new TextEncoder().encode(xml);
    await this.#database.transact("write a vCard to", async (queries) => {
      await queries.deleteFrom("vcards").where("account_key", "=", account).execute();
      await queries.insertInto("vcards").values({ account_key: account, content }).execute();
    });
  }

  async remove(localpart: string): Promise<void> {
    await this.#database.run("remove a vCard from", async (queries) => {
      await queries.deleteFrom("vcards")
        .where("account_key", "=", accountKey(localpart, this.#domainpart)).execute();
    });
  }
}
