import { CausewayError } from "../base/mod.ts";
import { BareJid, tryMakeJid } from "../xmpp/mod.ts";
import { AccountParts } from "./account_parts.ts";
import type { AccountSource, PlacedItem } from "./account_source.ts";
import {
  NEW_NODE_OWNERS,
  NEW_NODE_TABLES,
  NODE_TABLES,
  nodeOwners,
  takeNewNodesOf,
  takeNodesOf,
} from "./mongooseim_nodes.ts";
import { tablesLeft } from "./mongooseim_left.ts";
import { PRIVACY_TABLES, requirePrivacyTables, takePrivacyOf } from "./mongooseim_privacy.ts";
import type { MongooseimDatabase } from "./mongooseim_rows.ts";
import { cut, MAX_XML_BYTES, textOf, tryRead } from "./mongooseim_rows.ts";
import type { SourceItem } from "./moved_account.ts";
import { shown } from "./shown.ts";

/** Names of accounts that are read at once. */
const PAGE = 1_000;
/** Rows of one account; more are not read. */
const MAX_CONTACTS = 11_000;
const MAX_GROUP_ROWS = 100_000;
const MAX_PRIVATE_ROWS = 1000;
/** Bytes of all elements of an account's private storage that are read. */
const MAX_ELEMENTS_BYTES = 16_777_216;

/** Messages of an account that are read, and their bytes. */
const MAX_MESSAGES = 10_000;
const MAX_MESSAGES_BYTES = 16_777_216;
/** The year 1973 in microseconds; as seconds, it is further away than any date. */
const LEAST_MICROSECONDS = 1e14;
/** The last millisecond that is a date (ECMA-262 §21.4.1.1). */
const MAX_DATE_MS = 8.64e15;

/** Tables that are read, with the columns that must be there. All but `users` may be missing. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  users: ["server", "username", "password", "pass_details"],
  rosterusers: ["server", "username", "jid", "nick", "subscription", "ask", "askmessage"],
  rostergroups: ["server", "username", "jid", "grp"],
  vcard: ["server", "username", "vcard"],
  private_storage: ["server", "username", "namespace", "data"],
  last: ["server", "username", "seconds", "state"],
  ...PRIVACY_TABLES,
  offline_message: ["id", "timestamp", "expire", "server", "username", "from_jid", "packet"],
};

/** Tables that name accounts: where another program checks passwords, `users` has none of them. */
const OWNED_TABLES = Object.keys(TABLES).filter((table) => TABLES[table]!.includes("username"));

/**
 * Order of the rows of an account, for tables that have many of them. Of rows beyond a limit it is always
 * the same ones that are left.
 */
const ORDERS: Readonly<Record<string, string>> = {
  rosterusers: "jid",
  rostergroups: "jid, grp",
  private_storage: "namespace",
  offline_message: "id",
};

/** A position: an account, or behind all of them a table that the report names. */
type Place = readonly [server: string, username: string] | { readonly table: string };

/** A table with data that is not taken. */
interface LeftTable {
  /** Columns that name the account: its domain and its name. */
  readonly key: readonly [string, string];
  /** Reason in the report. */
  readonly reason: string;
}

/** Tables with data of accounts that is not taken. A table without these columns is not looked at. */
const LEFT_TABLES: Readonly<Record<string, LeftTable>> = {
  mam_server_user: { key: ["server", "user_name"], reason: "message archives are not taken" },
};

const SUBSCRIPTIONS: Readonly<Record<string, string>> = {
  B: "both",
  T: "to",
  F: "from",
  N: "none",
};

/** The accounts in the SQL tables of MongooseIM 5.0 or newer. */
export class MongooseimSql implements AccountSource {
  readonly id: string;
  readonly #database: MongooseimDatabase;
  readonly #tables: ReadonlySet<string>;

  private constructor(database: MongooseimDatabase, tables: ReadonlySet<string>) {
    this.id = `mongooseim ${database.place}`;
    this.#database = database;
    this.#tables = tables;
  }

  /**
   * Looks for the tables.
   *
   * @throws CausewayError `migration/no-tables` when they are not those of MongooseIM; `storage/…`
   */
  static async open(database: MongooseimDatabase): Promise<MongooseimSql> {
    const schema = database.driver === "pgsql" ? "current_schema()" : "DATABASE()";
    const rows = await database.query(
      "SELECT lower(table_name) AS t, lower(column_name) AS c FROM information_schema.columns " +
        `WHERE table_schema = ${schema}`,
    );
    const columns = new Map<string, Set<string>>();
    for (const { t, c } of rows) {
      const table = columns.get(textOf(t)) ?? new Set();
      columns.set(textOf(t), table.add(textOf(c)));
    }
    for (const [table, needed] of Object.entries(TABLES)) {
      const found = columns.get(table);
      if (found === undefined && table !== "users") continue;
      const missing = needed.filter((column) => found?.has(column) !== true);
      if (missing.length === 0) continue;
      throw new CausewayError(
        "migration/no-tables",
        `Cannot read ${database.place}: ` +
          (found === undefined
            ? `it has no table ${table}`
            : `its table ${table} has no column ${
              missing.join(", ")
            }, as MongooseIM has it since 5.0`),
      );
    }
    requirePrivacyTables(database.place, new Set(columns.keys()));
    const tables = Object.keys(TABLES).filter((table) => columns.has(table));
    const left = Object.entries(LEFT_TABLES)
      .filter(([table, { key }]) => key.every((column) => columns.get(table)?.has(column) === true))
      .map(([table]) => table);
    const nodes = [NODE_TABLES, NEW_NODE_TABLES].filter((tables) =>
      Object.entries(tables).every(([table, needed]) =>
        needed.every((column) => columns.get(table)?.has(column) === true)
      )
    ).flatMap((tables) => Object.keys(tables));
    return new MongooseimSql(database, new Set([...tables, ...left, ...nodes]));
  }

  async *items(after: string | undefined): AsyncGenerator<PlacedItem, void> {
    const place: Place = after === undefined ? ["", ""] : JSON.parse(after);
    if (!("table" in place)) yield* this.#accounts(place);
    const taken = new Set([...this.#tables].filter((table) => LEFT_TABLES[table] === undefined));
    yield* tablesLeft(this.#database, taken, "table" in place ? place.table : "");
  }

  async *#accounts(after: readonly [string, string]): AsyncGenerator<PlacedItem, void> {
    let [server, username] = after;
    for (;;) {
      const rows = await this.#namesAfter(server, username);
      for (const row of rows) {
        server = textOf(row["server"]);
        username = textOf(row["username"]);
        const item = await this.#itemOf(server, username);
        yield { position: JSON.stringify([server, username]), item };
      }
      if (rows.length < PAGE) return;
    }
  }

  /** Returns the first `PAGE` names of accounts behind one, in their order, from all tables. */
  async #namesAfter(
    server: string,
    username: string,
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const owners = OWNED_TABLES.filter((table) => this.#tables.has(table))
      .map((table) => ({ from: table, server: "server", username: "username" }));
    if (this.#tables.has("pubsub_nodes")) owners.push(nodeOwners(this.#database.driver));
    if (this.#tables.has("pubsub_node")) owners.push(NEW_NODE_OWNERS);
    const each = owners.map((owner) =>
      `SELECT server, username FROM (SELECT DISTINCT ${owner.server} AS server, ` +
      `${owner.username} AS username FROM ${owner.from} WHERE ${this.#behind(owner)} ` +
      `ORDER BY server, username LIMIT ${PAGE}) AS owners`
    );
    const values = this.#database.driver === "pgsql"
      ? [server, username]
      : [server, server, username];
    return await this.#database.query(
      `${each.join(" UNION ")} ORDER BY server, username LIMIT ${PAGE}`,
      owners.flatMap(() => values),
    );
  }

  /** Returns the condition for names behind one, as the engine finds them by an index. */
  #behind({ server, username }: { readonly server: string; readonly username: string }): string {
    return this.#database.driver === "pgsql"
      ? `(${server}, ${username}) > (?, ?)`
      : `${server} > ? OR (${server} = ? AND ${username} > ?)`;
  }

  async #itemOf(server: string, username: string): Promise<SourceItem> {
    const jid = username === "" ? undefined : tryMakeJid(username, server);
    if (!(jid instanceof BareJid)) {
      const account = `${username}@${server}`;
      const reason = "the address is malformed";
      return { kind: "finding", finding: { account, kind: "account", reason } };
    }
    const parts = new AccountParts(jid);
    const key = [server, username] as const;
    await this.#login(parts, key);
    await this.#roster(parts, key);
    await this.#vcard(parts, key);
    await this.#private(parts, key);
    if (this.#tables.has("privacy_list")) await takePrivacyOf(parts, key, this.#database);
    await this.#last(parts, key);
    await this.#offline(parts, key);
    if (this.#tables.has("pubsub_nodes")) await takeNodesOf(parts, this.#database);
    // An account with nodes in both forms has used these last.
    if (this.#tables.has("pubsub_node")) await takeNewNodesOf(parts, key, this.#database);
    await this.#noteLeft(parts, key);
    return { kind: "account", account: parts.account(), findings: parts.findings };
  }

  async #login(parts: AccountParts, key: readonly [string, string]): Promise<void> {
    const [row] = await this.#rows("users", "password, pass_details", key, 1);
    if (row === undefined) return parts.loginElsewhere();
    const details = textOf(row["pass_details"]);
    if (details !== "") takeDetails(parts, details);
    else parts.password(textOf(row["password"]));
  }

  async #roster(parts: AccountParts, key: readonly [string, string]): Promise<void> {
    const groups = new Map<string, string[]>();
    const groupColumns = `jid, ${cut("grp")}`;
    const groupRows = await this.#rows("rostergroups", groupColumns, key, MAX_GROUP_ROWS + 1);
    for (const row of groupRows.slice(0, MAX_GROUP_ROWS)) {
      const jid = textOf(row["jid"]);
      const some = groups.get(jid);
      if (some === undefined) groups.set(jid, [textOf(row["grp"])]);
      else some.push(textOf(row["grp"]));
    }
    if (groupRows.length > MAX_GROUP_ROWS) {
      parts.note("roster", `groups of contacts after the first ${MAX_GROUP_ROWS} are not read`);
    }
    const columns = `jid, ${cut("nick")}, subscription, ask, ${cut("askmessage")}`;
    const rows = await this.#rows("rosterusers", columns, key, MAX_CONTACTS + 1);
    if (rows.length > MAX_CONTACTS) {
      parts.note("roster", `contacts after the first ${MAX_CONTACTS} are not read`);
    }
    for (const row of rows.slice(0, MAX_CONTACTS)) {
      const jid = textOf(row["jid"]);
      const written = textOf(row["subscription"]).trim();
      const subscription = SUBSCRIPTIONS[written] ?? written;
      const ask = textOf(row["ask"]).trim();
      const isAsked = ask === "I" || ask === "B";
      // A contact that has only sent a request is not part of what clients see.
      if (!(ask === "I" && subscription === "none")) {
        parts.item({
          jid,
          name: textOf(row["nick"]),
          groups: groups.get(jid) ?? [],
          subscription,
          isAsking: ask === "O" || ask === "B" || ask === "S",
          isApproved: false,
        });
      }
      if (isAsked) parts.request(jid, textOf(row["askmessage"]));
    }
  }

  async #vcard(parts: AccountParts, key: readonly [string, string]): Promise<void> {
    const [size] = await this.#rows("vcard", "octet_length(vcard) AS bytes", key, 1);
    if (size === undefined) return;
    if (Number(size["bytes"]) > MAX_XML_BYTES) {
      return parts.note("vcard", `it has more than ${MAX_XML_BYTES} bytes`);
    }
    const [row] = await this.#rows("vcard", "vcard", key, 1);
    const text = textOf(row?.["vcard"]);
    if (text === "") return;
    const card = tryRead(text);
    if (card?.name === "vCard" && card.namespace === "vcard-temp") parts.vcard(card);
    else parts.note("vcard", "it is not a vCard");
  }

  async #private(parts: AccountParts, key: readonly [string, string]): Promise<void> {
    const columns = "namespace, octet_length(data) AS bytes";
    const rows = await this.#rows("private_storage", columns, key, MAX_PRIVATE_ROWS + 1);
    let room = MAX_ELEMENTS_BYTES;
    for (const row of rows.slice(0, MAX_PRIVATE_ROWS)) {
      const namespace = textOf(row["namespace"]);
      if (Number(row["bytes"]) > MAX_XML_BYTES) {
        parts.note("private", `${shown(namespace)} has more than ${MAX_XML_BYTES} bytes`);
        continue;
      }
      room -= Number(row["bytes"]);
      if (room < 0) {
        const reason = `elements after the first ${MAX_ELEMENTS_BYTES} bytes are not read`;
        return parts.note("private", reason);
      }
      const [found] = await this.#database.query(
        "SELECT data FROM private_storage WHERE server = ? AND username = ? AND namespace = ?",
        [...key, namespace],
      );
      const stored = tryRead(textOf(found?.["data"]));
      if (stored === undefined) parts.note("private", `${shown(namespace)} is not an element`);
      else parts.privateElement(stored);
    }
    if (rows.length > MAX_PRIVATE_ROWS) {
      parts.note("private", `elements after the first ${MAX_PRIVATE_ROWS} are not read`);
    }
  }

  async #last(parts: AccountParts, key: readonly [string, string]): Promise<void> {
    const [row] = await this.#rows("last", `seconds, ${cut("state")}`, key, 1);
    if (row !== undefined) parts.lastLogout(Number(row["seconds"]) * 1000, textOf(row["state"]));
  }

  async #offline(parts: AccountParts, key: readonly [string, string]): Promise<void> {
    const columns = "id, octet_length(packet) AS bytes";
    const rows = await this.#rows("offline_message", columns, key, MAX_MESSAGES + 1);
    let room = MAX_MESSAGES_BYTES;
    for (const { id, bytes } of rows.slice(0, MAX_MESSAGES)) {
      room -= Number(bytes);
      if (room < 0) {
        return parts.note(
          "offline",
          `messages that wait have more than ${MAX_MESSAGES_BYTES} bytes`,
        );
      }
      const [row] = await this.#database.query(
        "SELECT timestamp, expire, from_jid, packet FROM offline_message WHERE id = ?",
        [Number(id)],
      );
      if (row === undefined) continue; // delivered meanwhile
      const expiresAtMs = msOf(row["expire"]);
      parts.message(tryRead(textOf(row["packet"])), {
        from: textOf(row["from_jid"]),
        ...(msOf(row["timestamp"]) === undefined ? {} : { sentAtMs: msOf(row["timestamp"])! }),
        ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
      });
    }
    if (rows.length > MAX_MESSAGES) {
      parts.note("offline", `messages after the first ${MAX_MESSAGES} are not read`);
    }
  }

  /** Notes the data that the account has and that is not taken. */
  async #noteLeft(parts: AccountParts, account: readonly [string, string]) {
    for (const [table, { key, reason }] of Object.entries(LEFT_TABLES)) {
      if (!this.#tables.has(table)) continue;
      const rows = await this.#database.query(
        `SELECT 1 AS is_there FROM ${table} WHERE ${
          key.map((column) => `${column} = ?`).join(" AND ")
        } LIMIT 1`,
        account,
      );
      if (rows.length > 0) parts.note("other", reason);
    }
  }

  /** Reads the first `limit` rows of an account; none where the table is missing. */
  async #rows(
    table: string,
    columns: string,
    key: readonly [string, string],
    limit: number,
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    if (!this.#tables.has(table)) return [];
    const order = ORDERS[table] === undefined ? "" : `ORDER BY ${ORDERS[table]} `;
    return await this.#database.query(
      `SELECT ${columns} FROM ${table} WHERE server = ? AND username = ? ${order}LIMIT ${limit}`,
      key,
    );
  }
}

/**
 * Takes keys as MongooseIM serializes them: for several hash functions, each with a salt of its own or, in
 * early builds of that form, all with the one before the iterations; or for SHA-1 alone, up to 3.6.
 */
function takeDetails(parts: AccountParts, details: string): void {
  const [form, ...fields] = details.split(",");
  if (form === "==SCRAM==") {
    const [storedKey = "", serverKey = "", salt = "", iterations = ""] = fields;
    return parts.secret("SHA-1", { salt, iterations, storedKey, serverKey });
  }
  if (form !== "==MULTI_SCRAM==") {
    return parts.note("password", "the form of its keys is not known");
  }
  const count = fields.findIndex((field) => field.startsWith("==")); // no Base64 begins so
  const [iterations = "", shared] = fields.slice(0, count).reverse();
  for (const field of fields.slice(count)) {
    const [, hash, key = ""] = /^={2,3}SHA(1|256)={2,3}(.*)$/.exec(field) ?? [];
    if (hash === undefined) continue; // for a hash function that no mechanism of ours uses
    const written = key.split("|");
    const [salt = "", storedKey = "", serverKey = ""] = shared === undefined
      ? written
      : [shared, ...written];
    parts.secret(hash === "1" ? "SHA-1" : "SHA-256", { salt, iterations, storedKey, serverKey });
  }
}

/** Returns the milliseconds of a time in microseconds, as MongooseIM stores it, or in seconds. */
function msOf(value: unknown): number | undefined {
  const time = Number(textOf(value));
  const ms = Math.trunc(time >= LEAST_MICROSECONDS ? time / 1000 : time * 1000);
  return ms > 0 && ms <= MAX_DATE_MS ? ms : undefined;
}
