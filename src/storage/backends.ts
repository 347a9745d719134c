import { DatabaseSync } from "node:sqlite";
import { describeError } from "../base/mod.ts";
import type { CausewayError } from "../base/mod.ts";
import type { ServerProductId } from "./catalogue/catalogue.ts";
import type { Backend, BackendCheckOptions, BackendReport, PrepareOptions } from "./backend.ts";
import { SERVER_SCHEMAS, serverKindOf } from "./server_kinds.ts";
import type { LdapUses } from "./ldap/ldap_check.ts";
import { checkLdap } from "./ldap/ldap_check.ts";
import type { LdapPoolOptions } from "./ldap/ldap_directory.ts";
import { LdapDirectory } from "./ldap/ldap_directory.ts";
import { MSSQL, SNAPSHOT_ON } from "./sql/engines/mssql.ts";
import { MYSQL } from "./sql/engines/mysql.ts";
import { POSTGRES } from "./sql/engines/postgres.ts";
import { openSqlite, SQLITE, SqliteConnection } from "./sql/engines/sqlite.ts";
import {
  checkSchema,
  lostIndexes,
  newestVersionIn,
  planSchema,
  prepareSchema,
  readSchema,
  versionOf,
} from "./sql/schema.ts";
import type { SqlConnection } from "./sql/sql_connection.ts";
import { sqlError } from "./sql/sql_database.ts";
import type { SchemaFile, ServerVersion, SqlDialect } from "./sql/sql_dialect.ts";
import type { Tables } from "./sql/tables.ts";
import { connectToServer, placeOf } from "./sql/sql_server.ts";
import { storageError } from "./storage_error.ts";
import type { StoresOptions } from "./stores.ts";
import { sqlServerOf } from "./database_pools.ts";

/** Milliseconds that one statement of a preparation may take: it may copy a large table. */
const PREPARE_STATEMENT_MS = 3_600_000;

/** A column of each table, for a statement that changes no row. */
const COLUMNS = {
  causeway_schema: "done",
  causeway_schema_floor: "lowest",
  users: "localpart",
  secrets: "value",
  subscription_requests: "stanza",
  rosters: "owner",
  roster_items: "details",
  private_storage: "content",
  vcards: "content",
  last_activity: "status",
  privacy: "default_list",
  privacy_lists: "content",
  offline_messages: "stanza",
  vcard_search: "shown",
  pep_nodes: "version",
  pep_items: "sequence",
  archives: "last_position",
  archive_messages: "sent_at",
  archive_texts: "position",
  muc_light_rooms: "version",
  muc_light_occupants: "joined",
  muc_light_blocks: "is_room",
  muc_light_messages: "sent_at",
  muc_rooms: "version",
  muc_creators: "changes",
  muc_affiliations: "affiliation",
  muc_messages: "sent_at",
} as const satisfies Record<keyof Tables | "causeway_schema" | "causeway_schema_floor", string>;

const SCHEMAS: ReadonlyMap<string, SqlDialect> = new Map([
  ["internal", SQLITE],
  ["pgsql", POSTGRES.dialect],
  ["mysql", MYSQL.dialect],
  ["mssql", MSSQL.dialect],
]);

/** Names that `schemaFiles` knows. */
export const SCHEMA_NAMES: readonly string[] = [
  ...SCHEMAS.keys(),
  ...SERVER_SCHEMAS.keys(),
];

/** Returns the schema files of a backend as shipped, in their order; undefined for other names. */
export function schemaFiles(name: string): readonly SchemaFile[] | undefined {
  return SCHEMAS.get(name)?.schema ?? SERVER_SCHEMAS.get(name);
}

/** Kinds of servers that a dump for SQL Server is for: one of one's own, or the cloud's service. */
export const DUMP_VARIANTS = ["server", "cloud"] as const;

/**
 * Returns the batches that make an empty database of SQL Server whole, for import with other
 * programs. The cloud's databases have READ_COMMITTED_SNAPSHOT on from the beginning.
 */
export function mssqlDump(variant: (typeof DUMP_VARIANTS)[number]): readonly string[] {
  const { dialect, name } = MSSQL;
  const empty = {
    applied: [],
    tables: new Set<string>(),
    earlierDone: undefined,
    lowest: undefined,
  };
  const statements = planSchema(dialect, empty, name);
  return variant === "cloud" ? statements : [SNAPSHOT_ON, ...statements];
}

/** Returns the databases that a configuration uses: the built-in store first, then the pools. */
export function backendsOf(options: StoresOptions): readonly Backend[] {
  const pools = [...options.pools].map(([tag, pool]) => {
    const server = sqlServerOf(tag, pool);
    return new SqlBackend({
      name: server.pool,
      place: (product) => placeOf(server, product),
      dialect: server.engine.dialect,
      connect: () => connectToServer(server),
      connectToPrepare: () =>
        connectToServer({
          ...server,
          bounds: { ...server.bounds, statementTimeoutMs: PREPARE_STATEMENT_MS },
        }),
    });
  });
  const directories = [...options.ldapPools ?? []].map(([tag, pool]) =>
    new LdapBackend(tag, pool, ldapUsesOf(tag, options))
  );
  const servers = [...options.serverPools ?? []].map(([name, pool]) =>
    serverKindOf(pool).backend({ name, options: pool })
  );
  return [builtInBackend(options.internal.path), ...pools, ...directories, ...servers];
}

/** A directory, in which there is nothing to prepare. */
class LdapBackend implements Backend {
  readonly name: string;
  readonly place: string;
  readonly #options: LdapPoolOptions;
  readonly #uses: LdapUses;

  constructor(tag: string, options: LdapPoolOptions, uses: LdapUses) {
    this.name = `ldap.${tag}`;
    this.place = `the directory at ${options.servers.join(", ")}, port ${options.port}`;
    this.#options = options;
    this.#uses = uses;
  }

  plan(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  async prepare(): Promise<readonly string[]> {
    const directory = new LdapDirectory({
      pool: this.name,
      options: this.#options,
      use: "searches",
    });
    try {
      await directory.probe(); // it is not ready while it cannot be reached
      return [];
    } finally {
      await directory.close();
    }
  }

  async check({ user }: BackendCheckOptions = {}): Promise<BackendReport> {
    const { isReached, problems, facts } = await checkLdap({
      pool: this.name,
      options: this.#options,
      uses: this.#uses,
      user,
    });
    const server = isReached ? { product: "ldap", version: "3" } as const : undefined;
    return { server, schemaVersion: undefined, problems, facts };
  }
}

/** Returns what the hosts of a configuration keep in one directory. */
function ldapUsesOf(tag: string, { users, data, sharedRosters }: StoresOptions): LdapUses {
  const placesOf = (kind: "users" | "vcard") =>
    [...(kind === "users" ? users : data?.get(kind)) ?? []].flatMap(([host, place]) =>
      place.backend === "ldap" && place.pool === tag ? [{ kind, host, place }] : []
    );
  return {
    accounts: [...placesOf("users"), ...placesOf("vcard")],
    sharedRosters: [...sharedRosters ?? []].filter(([, { pool }]) => pool === tag)
      .map(([host, place]) => {
        const own = users.get(host);
        return { host, place, users: own?.backend === "ldap" ? own : undefined };
      }),
  };
}

/** SQL Server wants the columns named where one of them counts by itself. */
function insertionOfNothing({ name }: SqlDialect, table: string, column: string): string {
  const [list, columns] = name === "mssql" ? [` (${column})`, column] : ["", "*"];
  return `INSERT INTO ${table}${list} SELECT ${columns} FROM ${table} WHERE 1 = 0`;
}

function builtInBackend(path: string): Backend {
  const place = `the built-in store ${path}`;
  return new SqlBackend({
    name: "internal",
    place: () => place,
    dialect: SQLITE,
    // A file that is not there yet is like an empty one. To look at a file must not change it.
    connect: () => Promise.try(() => new SqliteConnection(openToRead(path, place))),
    connectToPrepare: () => Promise.resolve(openSqlite({ path, busyTimeoutMs: 10_000 }, place)),
  });
}

function openToRead(path: string, place: string): DatabaseSync {
  let hasContent = false;
  try {
    const { isDirectory, size } = Deno.statSync(path);
    if (isDirectory) throw new Error("it is a folder");
    hasContent = size > 0;
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) {
      const reason = describeError(cause);
      throw storageError("cannot-open", { action: "open", place }, { reason, cause });
    }
  }
  return hasContent ? new DatabaseSync(path, { readOnly: true }) : new DatabaseSync(":memory:");
}

interface SqlBackendDeps {
  readonly name: string;
  /** Name in messages of a server that has said which product it is, or has not yet. */
  place(product?: ServerProductId): string;
  readonly dialect: SqlDialect;
  connect(): Promise<SqlConnection>;
  /** As `connect`, with the rights and the time to change the schema. */
  connectToPrepare(): Promise<SqlConnection>;
}

class SqlBackend implements Backend {
  readonly name: string;
  readonly #options: SqlBackendDeps;
  #place: string;

  constructor(options: SqlBackendDeps) {
    this.name = options.name;
    this.#place = options.place();
    this.#options = options;
  }

  get place(): string {
    return this.#place;
  }

  plan(): Promise<readonly string[]> {
    const { dialect, connect } = this.#options;
    return this.#with(
      connect,
      "plan",
      async (connection) => planSchema(dialect, await readSchema(dialect, connection), this.place),
    );
  }

  prepare({ fixesIsolation = false, progress }: PrepareOptions = {}): Promise<readonly string[]> {
    const { dialect, connectToPrepare } = this.#options;
    return this.#with(connectToPrepare, "prepare", async (connection) => {
      const fixes = fixesIsolation ? await dialect.isolationFix?.(connection) ?? [] : [];
      // They take part in no transaction.
      for (const [done, statement] of fixes.entries()) {
        progress?.({ done, total: fixes.length, statement });
        await connection.execute(statement);
      }
      return [...fixes, ...await prepareSchema(dialect, connection, this.place, progress)];
    });
  }

  async check(): Promise<BackendReport> {
    const { dialect, connect } = this.#options;
    const schemaVersion = versionOf(dialect);
    let server: ServerVersion | undefined;
    let foundVersion: number | undefined;
    const problems: string[] = [];
    try {
      await this.#with(connect, "check", async (connection) => {
        server = await dialect.serverVersion(connection);
        const state = await readSchema(dialect, connection);
        foundVersion = newestVersionIn(state);
        problems.push(...await dialect.settingProblems(connection));
        if (dialect.name === "sqlite") {
          // The node prepares its own file, so only a file that it would refuse is a problem. The
          // file was opened to be read alone.
          const plan = planSchema(dialect, state, this.place);
          if (plan.length === 0) problems.push(...await this.#lostIndexes(connection));
          return;
        }
        await checkSchema(dialect, connection, this.place);
        // A newer program may do without some of ours.
        if (foundVersion === schemaVersion) problems.push(...await this.#lostIndexes(connection));
        problems.push(...await this.#deniedRights(connection));
      });
    } catch (thrown) {
      problems.push(describeError(thrown));
    }
    return { server, schemaVersion, foundVersion, problems };
  }

  /**
   * Names indexes that are gone. Nothing else tells of them: queries take longer, and messages can be
   * there twice.
   */
  async #lostIndexes(connection: SqlConnection): Promise<readonly string[]> {
    const { dialect } = this.#options;
    const lost = await lostIndexes(dialect, connection);
    if (lost.length === 0) return [];
    const [index, them] = lost.length === 1 ? ["index", "it"] : ["indexes", "them"];
    const schema = dialect.name === "sqlite" ? "internal" : dialect.name;
    return [
      `${this.place} has lost the ${index} ${lost.join(", ")}, and prepare does not make ${them} ` +
      `again: \`causeway backends schema ${schema}\` shows ${them}`,
    ];
  }

  /** Tries what the stores do, on no row at all. Returns one text for each right that is missing. */
  async #deniedRights(connection: SqlConnection): Promise<readonly string[]> {
    const { place } = this;
    const { dialect } = this.#options;
    const denied = new Map<string, { readonly tables: string[]; readonly first: unknown }>();
    const problems = () =>
      Array.from(denied, ([right, { tables, first }]) => {
        const action = `${right} the table${tables.length > 1 ? "s" : ""} ${tables.join(", ")} of`;
        return sqlError(dialect, first, { action, place }).message;
      });
    for (const [table, column] of Object.entries(COLUMNS)) {
      if (table === "archive_texts" && dialect.textSearch === undefined) continue;
      for (
        const [right, sql] of [
          ["read", `SELECT ${column} FROM ${table} WHERE 1 = 0`],
          ["add to", insertionOfNothing(dialect, table, column)],
          ["change", `UPDATE ${table} SET ${column} = ${column} WHERE 1 = 0`],
          ["delete from", `DELETE FROM ${table} WHERE 1 = 0`],
        ] as const
      ) {
        try {
          await connection.execute(sql);
        } catch (thrown) {
          const action = `${right} the table ${table} of`;
          const error = sqlError(dialect, thrown, { action, place });
          if (error.code === "storage/schema-missing") {
            // The schema is complete by its own notes, so `prepare` would find nothing to do.
            const lost =
              `Cannot use ${place}: its table ${table} is lost, and prepare makes none ` +
              "a second time; restore the database from a backup";
            return [...problems(), lost];
          }
          // Rights alone differ by table. A server that is read-only refuses all alike.
          if (error.code !== "storage/denied") return [...problems(), error.message];
          const known = denied.get(right);
          if (known === undefined) denied.set(right, { tables: [table], first: thrown });
          else known.tables.push(table);
        }
      }
    }
    return problems();
  }

  /** @throws CausewayError with a code `storage/…` */
  async #with<T>(
    connect: () => Promise<SqlConnection>,
    action: string,
    work: (connection: SqlConnection) => Promise<T>,
  ): Promise<T> {
    const { dialect } = this.#options;
    const named = (thrown: unknown, what: string): CausewayError =>
      sqlError(dialect, thrown, { action: what, place: this.place });
    let connection: SqlConnection;
    try {
      connection = await connect();
    } catch (thrown) {
      throw named(thrown, dialect.name === "sqlite" ? "open" : "connect to");
    }
    try {
      this.#place = this.#options.place((await dialect.serverVersion(connection)).product);
      return await work(connection);
    } catch (thrown) {
      throw named(thrown, action);
    } finally {
      await connection.close();
    }
  }
}
