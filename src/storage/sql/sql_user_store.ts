import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import type { Selectable } from "kysely";
import { CausewayError } from "../../base/mod.ts";
import type {
  AccountCredentials,
  CompleteCredentials,
  CountedShape,
  ScramCredentials,
  ScramSecret,
  SecretShape,
} from "../../xmpp/sasl/mod.ts";
import type { ListPage, MeantAccount, UserStore } from "../user_store.ts";
import { DEFAULT_PAGE_LIMIT } from "../user_store.ts";
import type { Key } from "./keys.ts";
import { accountKey } from "./keys.ts";
import { ListStatement } from "./list_statement.ts";
import { bytesOf, textOf } from "./sql_dialect.ts";
import type { SqlDatabase } from "./sql_database.ts";
import type { PlaceOf } from "./statement.ts";
import { Statement } from "./statement.ts";
import type { UsersTable } from "./tables.ts";

const SECRET_COLUMNS = [
  "sha1_salt",
  "sha1_iterations",
  "sha1_stored_key",
  "sha1_server_key",
  "sha256_salt",
  "sha256_iterations",
  "sha256_stored_key",
  "sha256_server_key",
] as const;

type Secrets = Pick<Selectable<UsersTable>, typeof SECRET_COLUMNS[number]>;

/** The account with this key. */
interface KeyValue {
  readonly key: Uint8Array;
}

const ADD = new Statement((tables, place: PlaceOf<Selectable<UsersTable>>) =>
  tables.insertInto("users").values({
    account_key: place("account_key"),
    domainpart: place("domainpart"),
    localpart: place("localpart"),
    ...placesOf(place),
    creation: place("creation"),
  })
);

const REMOVE = new Statement((tables, place: PlaceOf<KeyValue>) =>
  tables.deleteFrom("users").where("account_key", "=", place("key"))
);

const SET_PASSWORD = new Statement((tables, place: PlaceOf<KeyValue & Secrets>) =>
  tables.updateTable("users").set(placesOf(place)).where("account_key", "=", place("key"))
);

const EXISTS = new Statement((tables, place: PlaceOf<KeyValue>) =>
  tables.selectFrom("users").select("account_key").where("account_key", "=", place("key"))
);

const EXISTING = new ListStatement(
  (tables, place: PlaceOf<{ readonly keys: readonly Key[] }>) =>
    tables.selectFrom("users").select(["localpart", "creation"])
      .where("account_key", "in", place("keys")),
  { name: "existing-accounts" },
);

const CREDENTIALS = new Statement((tables, place: PlaceOf<KeyValue>, dialect) =>
  dialect.limit(
    tables.selectFrom("users").select(["account_key", ...SECRET_COLUMNS, "creation"])
      .where("account_key", ">=", place("key")).orderBy("account_key"),
    1,
  )
);

/** Bytes of what tells an account from an earlier one of the same name. */
const CREATION_BYTES = 16;

/** Accounts that are sampled for the shapes of their keys. Reading them takes a few milliseconds. */
const SAMPLE_ACCOUNTS = 10_000;

/** The accounts of one domain in an SQL database. */
export class SqlUserStore implements UserStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;

  constructor(database: SqlDatabase, domainpart: string) {
    this.#database = database;
    this.#domainpart = domainpart;
  }

  async add(
    localpart: string,
    credentials: ScramCredentials,
    options?: { readonly creation: string },
  ): Promise<void> {
    const { dialect } = this.#database;
    const creation = options && Buffer.from(options.creation, "hex");
    const row: Selectable<UsersTable> = {
      account_key: this.#keyOf(localpart),
      domainpart: dialect.text(this.#domainpart),
      localpart: dialect.text(localpart),
      ...secretsOf(credentials),
      creation: creation === undefined
        ? randomBytes(CREATION_BYTES)
        : creation.length === 0
        ? null
        : creation,
    };
    try {
      await this.#database.run("add an account to", async (queries) => {
        await queries.executeQuery(ADD.with(dialect, row));
      });
    } catch (thrown) {
      if (!this.#database.isConstraint(thrown)) throw thrown;
      const jid = `${localpart}@${this.#domainpart}`;
      throw new CausewayError("storage/user-exists", `Cannot add ${jid}: the account exists`, {
        cause: thrown,
      });
    }
  }

  async remove(localpart: string, options?: { readonly creation: string }): Promise<boolean> {
    return await this.#database.run("remove an account from", async (queries) => {
      if (options !== undefined) {
        const account = queries.deleteFrom("users")
          .where("account_key", "=", this.#keyOf(localpart));
        const meant = options.creation === ""
          ? account.where("creation", "is", null)
          : account.where("creation", "=", Buffer.from(options.creation, "hex"));
        return hasChanged(await queries.executeQuery(meant.compile()));
      }
      const removal = REMOVE.with(this.#database.dialect, { key: this.#keyOf(localpart) });
      return hasChanged(await queries.executeQuery(removal));
    });
  }

  async setPassword(
    localpart: string,
    credentials: ScramCredentials,
    meant?: MeantAccount,
  ): Promise<boolean> {
    return await this.#database.run("change an account in", async (queries) => {
      if (meant !== undefined) {
        let account = queries.updateTable("users").set(secretsOf(credentials))
          .where("account_key", "=", this.#keyOf(localpart));
        account = meant.creation === ""
          ? account.where("creation", "is", null)
          : account.where("creation", "=", Buffer.from(meant.creation, "hex"));
        if (meant.credentials !== undefined) {
          const { sha1_server_key: sha1, sha256_server_key: sha256 } = secretsOf(meant.credentials);
          account = account.where("sha1_server_key", sha1 === null ? "is" : "=", sha1)
            .where("sha256_server_key", sha256 === null ? "is" : "=", sha256);
        }
        return hasChanged(await queries.executeQuery(account.compile()));
      }
      const values = { key: this.#keyOf(localpart), ...secretsOf(credentials) };
      const change = SET_PASSWORD.with(this.#database.dialect, values);
      return hasChanged(await queries.executeQuery(change));
    });
  }

  async exists(localpart: string): Promise<boolean> {
    return await this.#database.run("read an account from", async (queries) => {
      const question = EXISTS.with(this.#database.dialect, { key: this.#keyOf(localpart) });
      return (await queries.executeQuery(question)).rows.length > 0;
    });
  }

  async existing(localparts: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (localparts.length === 0) return new Map();
    return await this.#database.run("read accounts from", async (queries) => {
      const keys = localparts.map((each) => this.#keyOf(each));
      const { rows } = await queries.executeQuery(EXISTING.with(this.#database.dialect, { keys }));
      return new Map(rows.map((row) => [textOf(row.localpart), creationIn(row.creation)]));
    });
  }

  /**
   * Selects the account, or else the row with the next key. A row is thus found, read and converted
   * in the same steps whether or not the account exists: a stranger may measure the time. A row that
   * is no account sorts behind all others (`schema/`).
   */
  async credentials(localpart: string): Promise<AccountCredentials | undefined> {
    const key = this.#keyOf(localpart);
    return await this.#database.run("read an account from", async (queries) => {
      const question = CREDENTIALS.with(this.#database.dialect, { key });
      const [row] = (await queries.executeQuery(question)).rows;
      if (row === undefined) {
        throw new CausewayError(
          "storage/corrupt",
          `Cannot read an account from ${this.#database.place}: the last row of users is missing`,
        );
      }
      const credentials = credentialsIn(row);
      const creation = creationIn(row.creation);
      const isAccount = key.equals(row.account_key) && credentials !== undefined;
      return isAccount ? { ...credentials, creation } : undefined;
    });
  }

  async complete(localpart: string, { sha1, sha256 }: CompleteCredentials): Promise<void> {
    await this.#database.run("change an account in", async (queries) => {
      const account = () =>
        queries.updateTable("users")
          .where("account_key", "=", this.#keyOf(localpart));
      // The key that is there proves that the account still has the password.
      await account().set(sha1ColumnsOf(sha1)).where("sha1_stored_key", "is", null)
        .where("sha256_stored_key", "=", sha256.storedKey).execute();
      await account().set(sha256ColumnsOf(sha256)).where("sha256_stored_key", "is", null)
        .where("sha1_stored_key", "=", sha1.storedKey).execute();
    });
  }

  async credentialShapes(): Promise<readonly CountedShape[]> {
    const { dialect } = this.#database;
    return await this.#database.run("read the accounts in", async (queries) => {
      const sample = queries.selectFrom("users")
        .select((each) => [
          "sha1_iterations",
          "sha256_iterations",
          each.fn<number>(dialect.byteLength, ["sha1_salt"]).as("sha1_salt_bytes"),
          each.fn<number>(dialect.byteLength, ["sha256_salt"]).as("sha256_salt_bytes"),
          each.case().whenRef("sha1_salt", "=", "sha256_salt").then(1).else(0).end()
            .as("shares_salt"),
        ])
        .where("domainpart", "=", dialect.text(this.#domainpart));
      const columns = [
        "sha1_iterations",
        "sha256_iterations",
        "sha1_salt_bytes",
        "sha256_salt_bytes",
        "shares_salt",
      ] as const;
      const rows = await queries.selectFrom(dialect.limit(sample, SAMPLE_ACCOUNTS).as("sample"))
        .select([...columns, (each) => each.fn.countAll<number | string>().as("accounts")])
        .groupBy(columns).execute();
      return rows.map((row) => ({
        shape: {
          sha1: secretShapeOf(row.sha1_iterations, row.sha1_salt_bytes),
          sha256: secretShapeOf(row.sha256_iterations, row.sha256_salt_bytes),
          sharesSalt: Number(row.shares_salt) === 1,
        },
        accounts: Number(row.accounts),
      }));
    });
  }

  async list(page: ListPage = {}): Promise<readonly string[]> {
    const { after, limit = DEFAULT_PAGE_LIMIT } = page;
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new RangeError(`Cannot list ${limit} accounts: the limit is at least 1`);
    }
    const { dialect } = this.#database;
    return await this.#database.run("list the accounts in", async (queries) => {
      const query = queries.selectFrom("users").select("localpart")
        .where("domainpart", "=", dialect.text(this.#domainpart))
        // No localpart is empty, so the empty text stands before all of them.
        .where("localpart", ">", dialect.text(after ?? "")).orderBy("localpart");
      const rows = await dialect.limit(query, limit).execute();
      return rows.map((row) => textOf(row.localpart));
    });
  }

  #keyOf(localpart: string): Key {
    return accountKey(localpart, this.#domainpart);
  }
}

/** The place of each part of the credentials, by column. */
function placesOf(place: PlaceOf<Secrets>): Secrets {
  return {
    sha1_salt: place("sha1_salt"),
    sha1_iterations: place("sha1_iterations"),
    sha1_stored_key: place("sha1_stored_key"),
    sha1_server_key: place("sha1_server_key"),
    sha256_salt: place("sha256_salt"),
    sha256_iterations: place("sha256_iterations"),
    sha256_stored_key: place("sha256_stored_key"),
    sha256_server_key: place("sha256_server_key"),
  };
}

function hasChanged({ numAffectedRows = 0n }: { readonly numAffectedRows?: bigint }): boolean {
  return numAffectedRows > 0n;
}

function secretsOf({ sha1, sha256 }: ScramCredentials): Secrets {
  return { ...sha1ColumnsOf(sha1), ...sha256ColumnsOf(sha256) };
}

function sha1ColumnsOf(secret: ScramSecret | undefined) {
  return {
    sha1_salt: secret?.salt ?? null,
    sha1_iterations: secret?.iterations ?? null,
    sha1_stored_key: secret?.storedKey ?? null,
    sha1_server_key: secret?.serverKey ?? null,
  };
}

function sha256ColumnsOf(secret: ScramSecret | undefined) {
  return {
    sha256_salt: secret?.salt ?? null,
    sha256_iterations: secret?.iterations ?? null,
    sha256_stored_key: secret?.storedKey ?? null,
    sha256_server_key: secret?.serverKey ?? null,
  };
}

/** Empty for an account that was made by an earlier version. */
function creationIn(creation: Uint8Array | null): string {
  return creation === null ? "" : Buffer.from(creation).toString("hex");
}

/** Undefined for a row without any key, which nobody of ours writes. */
function credentialsIn(row: Secrets): ScramCredentials | undefined {
  const sha1 = secretIn({
    salt: row.sha1_salt,
    iterations: row.sha1_iterations,
    storedKey: row.sha1_stored_key,
    serverKey: row.sha1_server_key,
  });
  const sha256 = secretIn({
    salt: row.sha256_salt,
    iterations: row.sha256_iterations,
    storedKey: row.sha256_stored_key,
    serverKey: row.sha256_server_key,
  });
  if (sha1 !== undefined) return sha256 === undefined ? { sha1, sha256 } : { sha1, sha256 };
  return sha256 === undefined ? undefined : { sha1, sha256 };
}

function secretIn(
  { salt, iterations, storedKey, serverKey }: {
    readonly [Part in keyof ScramSecret]: ScramSecret[Part] | null;
  },
): ScramSecret | undefined {
  if (salt === null || iterations === null || storedKey === null || serverKey === null) {
    return undefined;
  }
  return {
    salt: bytesOf(salt),
    iterations: Number(iterations),
    storedKey: bytesOf(storedKey),
    serverKey: bytesOf(serverKey),
  };
}

function secretShapeOf(
  iterations: number | null,
  saltBytes: number | null,
): SecretShape | undefined {
  if (iterations === null || saltBytes === null) return undefined;
  return { iterations: Number(iterations), saltBytes: Number(saltBytes) };
}
