import { Buffer } from "node:buffer";
import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { PrivacyStore, PrivacyWrite, StoredPrivacy } from "../privacy_store.ts";
import type { Key } from "./keys.ts";
import { accountKey, keyOf } from "./keys.ts";
import { ListStatement } from "./list_statement.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import type { PlaceOf } from "./statement.ts";

/** The versions of several accounts' lists. */
const VERSIONS = new ListStatement(
  (tables, place: PlaceOf<{ readonly keys: readonly Key[] }>) =>
    tables.selectFrom("privacy").select(["account_key", "version"])
      .where("account_key", "in", place("keys")),
  { name: "privacy-versions" },
);

/**
 * The privacy lists of the accounts of one domain in an SQL database. Their version begins with the
 * time of the first change, so that the lists of an account that is deleted and made again have no
 * version twice.
 */
export class SqlPrivacyStore implements PrivacyStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;
  readonly #clock: Clock;

  constructor(database: SqlDatabase, domainpart: string, clock: Clock = new SystemClock()) {
    this.#database = database;
    this.#domainpart = domainpart;
    this.#clock = clock;
  }

  /** One query, so that the version and the lists belong together. */
  async read(localpart: string): Promise<StoredPrivacy> {
    return await this.#database.run("read privacy lists from", async (queries) => {
      const rows = await queries.selectFrom("privacy")
        .leftJoin("privacy_lists", "privacy_lists.account_key", "privacy.account_key")
        .select([
          "privacy.version",
          "privacy.default_list",
          "privacy_lists.name",
          "privacy_lists.content",
        ])
        .where("privacy.account_key", "=", this.#key(localpart)).execute();
      const [first] = rows;
      if (first === undefined) return { version: 0, defaultName: undefined, lists: [] };
      return {
        version: Number(first.version),
        defaultName: first.default_list === null ? undefined : decode(first.default_list),
        lists: rows.flatMap(({ name, content }) =>
          name === null || content === null ? [] : [{ name: decode(name), xml: decode(content) }]
        ),
      };
    });
  }

  async write(
    localpart: string,
    { expected, defaultName, list }: PrivacyWrite,
  ): Promise<number | undefined> {
    const account = this.#key(localpart);
    return await this.#database.transact("change privacy lists in", async (queries) => {
      const version = expected === 0 ? this.#clock.wallMs() : expected + 1;
      const row = {
        version,
        default_list: defaultName === undefined ? null : encode(defaultName),
      };
      if (expected === 0) {
        const found = await queries.selectFrom("privacy").select("version")
          .where("account_key", "=", account).executeTakeFirst();
        if (found !== undefined) return undefined;
        // A row that another transaction is inserting makes this one fail, and `transact` repeat it.
        await queries.insertInto("privacy").values({ account_key: account, ...row }).execute();
      } else {
        const { numUpdatedRows } = await queries.updateTable("privacy").set(row)
          .where("account_key", "=", account).where("version", "=", expected)
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) return undefined;
      }
      // The account's own row is locked, so nobody else changes its lists.
      if (list !== undefined) await put(queries, account, list);
      return version;
    });
  }

  async versions(localparts: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (localparts.length === 0) return new Map();
    const keys = localparts.map((localpart) => this.#key(localpart));
    const names = new Map(keys.map((key, i) => [key.toString("hex"), localparts[i]!]));
    return await this.#database.run("read privacy lists from", async (queries) => {
      const { rows } = await queries.executeQuery(VERSIONS.with(this.#database.dialect, { keys }));
      return new Map(rows.map(({ account_key: key, version }) => [
        names.get(Buffer.from(key).toString("hex"))!, // the query asked for these keys alone
        Number(version),
      ]));
    });
  }

  async removeAll(localpart: string): Promise<void> {
    const account = this.#key(localpart);
    await this.#database.transact("remove privacy lists from", async (queries) => {
      await queries.deleteFrom("privacy").where("account_key", "=", account).execute();
      await queries.deleteFrom("privacy_lists").where("account_key", "=", account).execute();
    });
  }

  #key(localpart: string) {
    return accountKey(localpart, this.#domainpart);
  }
}

async function put(
  queries: Queries,
  account: Uint8Array,
  { name, xml }: NonNullable<PrivacyWrite["list"]>,
): Promise<void> {
  const key = keyOf(name);
  await queries.deleteFrom("privacy_lists").where("account_key", "=", account)
    .where("list_key", "=", key).execute();
  if (xml === undefined) return;
  await queries.insertInto("privacy_lists").values({
    account_key: account,
    list_key: key,
    name: encode(name),
    content: encode(xml),
  }).execute();
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
