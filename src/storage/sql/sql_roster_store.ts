import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Selectable } from "kysely";
import type { Clock } from "../../base/mod.ts";
import { CausewayError, SystemClock } from "../../base/mod.ts";
import type {
  Roster,
  RosterContact,
  RosterEntry,
  RosterItem,
  RosterStore,
  RosterWrite,
  Subscription,
  VersionedItem,
} from "../roster_store.ts";
import { isSeen, seesPresence, subscriptionOf } from "../roster_store.ts";
import { ListStatement } from "./list_statement.ts";
import { bytesOf, textOf } from "./sql_dialect.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import type { PlaceOf } from "./statement.ts";
import { Statement } from "./statement.ts";
import type { RosterItemsTable } from "./tables.ts";

/** Bits of `roster_items.state`. */
const TO = 1;
const FROM = 2;
const ASKING = 4;
const APPROVED = 8;
const LISTED = 16;

/** Rows of one insertion. */
const FILL_ROWS = 100;

/** States of contacts without a subscription that the owner has not asked for one. */
const UNRELATED: readonly number[] = [0, APPROVED, LISTED, LISTED | APPROVED];

/** Columns of an item in a query that joins other tables. */
const ITEM_COLUMNS = [
  "roster_items.contact",
  "roster_items.state",
  "roster_items.version as item_version",
  "roster_items.details",
  "roster_items.request",
] as const;

/** The roster of one owner. */
interface OwnerValue {
  readonly owner: Uint8Array;
}

/** One query, so that the version and the items belong together. */
const ROSTER = new Statement((tables, place: PlaceOf<OwnerValue>) =>
  tables.selectFrom("rosters")
    .leftJoin("roster_items", "roster_items.owner_key", "rosters.owner_key")
    .select(["rosters.version", "rosters.removed_version", ...ITEM_COLUMNS])
    .where("rosters.owner_key", "=", place("owner"))
    .orderBy("roster_items.contact"), { name: "roster" });

/** The items of several owners for one contact. */
const SUBSCRIPTIONS = new ListStatement(
  (
    tables,
    place: PlaceOf<{ readonly owners: readonly Uint8Array[]; readonly contact: Uint8Array }>,
  ) =>
    tables.selectFrom("roster_items").select(["owner_key", "state"])
      .where("owner_key", "in", place("owners")).where("contact_key", "=", place("contact")),
  { name: "subscriptions" },
);

/** Contacts with a subscription, or one that was asked for, and what their rosters say. */
const RELATED = new Statement(
  (tables, place: PlaceOf<OwnerValue>) =>
    contactsIn(tables, place).where("own.state", "not in", UNRELATED),
  { name: "contacts" },
);

/** Contacts with those who have sent a request, and their requests. */
const RELATED_OR_ASKING = new Statement(
  (tables, place: PlaceOf<OwnerValue>) =>
    contactsIn(tables, place).select("own.request")
      .where((each) =>
        each.or([each("own.state", "not in", UNRELATED), each("own.request", "is not", null)])
      ),
  { name: "contacts-and-requests" },
);

/**
 * Each contact's roster is a lookup by its key. As a join, a database without statistics, such as one
 * that was just filled, may read the items of all rosters instead.
 */
function contactsIn(tables: Queries, place: PlaceOf<OwnerValue>) {
  return tables.selectFrom("roster_items as own")
    .select((each) => [
      "own.contact",
      "own.state",
      each.selectFrom("roster_items as other").select("other.state")
        .whereRef("other.owner_key", "=", "own.contact_key")
        .whereRef("other.contact_key", "=", "own.owner_key")
        .as("other_state"),
    ])
    .where("own.owner_key", "=", place("owner"));
}

/** A row of either statement for contacts. */
interface ContactRow {
  readonly contact: RosterItemsTable["contact"];
  readonly state: number;
  readonly other_state: number | null;
  readonly request?: Uint8Array | null;
}

/** Columns of an item as an outer join returns them: all null where there is none. */
interface JoinedItem {
  readonly contact: RosterItemsTable["contact"] | null;
  readonly state: number | null;
  readonly details: RosterItemsTable["details"] | null;
  readonly request: Uint8Array | null;
  readonly item_version: RosterItemsTable["version"] | null;
}

/**
 * Rosters in an SQL database. A roster's version begins with the time of its first change, so that
 * the roster of an account that is deleted and made again has no version twice.
 */
export class SqlRosterStore implements RosterStore {
  readonly #database: SqlDatabase;
  readonly #clock: Clock;

  constructor(database: SqlDatabase, clock: Clock = new SystemClock()) {
    this.#database = database;
    this.#clock = clock;
  }

  async read(owner: string): Promise<Roster> {
    return await this.#read(async (queries) => {
      const question = ROSTER.with(this.#database.dialect, { owner: keyOf(owner) });
      const { rows } = await queries.executeQuery(question);
      const [first] = rows;
      if (first === undefined) return { version: 0, removedVersion: 0, items: [] };
      return {
        version: Number(first.version),
        removedVersion: Number(first.removed_version),
        items: this.#itemsIn(rows),
      };
    });
  }

  async find(owner: string, contact: string): Promise<RosterEntry> {
    const [ownerKey, contactKey] = [keyOf(owner), keyOf(contact)];
    return await this.#read(async (queries) => {
      const row = await queries.selectFrom("rosters")
        .leftJoin(
          "roster_items",
          (join) =>
            join.onRef("roster_items.owner_key", "=", "rosters.owner_key")
              .on("roster_items.contact_key", "=", contactKey),
        )
        .select(["rosters.version", ...ITEM_COLUMNS])
        .where("rosters.owner_key", "=", ownerKey).executeTakeFirst();
      if (row === undefined) return { version: 0, item: undefined, items: 0, requests: 0 };
      // The version is older than the counts, and `write` compares it.
      const { items, requests } = await queries.selectFrom("roster_items")
        .select((each) => [
          each.fn.countAll<number | string>().as("items"),
          each.fn.count<number | string>("request").as("requests"),
        ])
        .where("owner_key", "=", ownerKey).executeTakeFirstOrThrow();
      return {
        version: Number(row.version),
        item: withoutVersion(this.#itemIn(row)),
        items: Number(items),
        requests: Number(requests),
      };
    });
  }

  async write(
    owner: string,
    { expected, contact, item }: RosterWrite,
  ): Promise<number | undefined> {
    const ownerKey = keyOf(owner);
    return await this.#database.transact("change a roster in", async (queries) => {
      const version = expected === 0 ? this.#clock.wallMs() : expected + 1;
      const isRemoval = item === undefined;
      if (expected === 0) {
        if (!await this.#create(queries, owner, version)) return undefined;
      } else {
        const { numUpdatedRows } = await queries.updateTable("rosters")
          .set(isRemoval ? { version, removed_version: version } : { version })
          .where("owner_key", "=", ownerKey).where("version", "=", expected)
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) return undefined;
      }
      if (isRemoval) await deleteItem(queries, ownerKey, contact);
      else await this.#put(queries, ownerKey, { contact, item, version });
      return version;
    });
  }

  async fill(owner: string, items: readonly RosterItem[]): Promise<ReadonlySet<string>> {
    for (;;) {
      const kept = await this.#database.transact(
        "change a roster in",
        (queries) => this.#fill(queries, owner, items),
      );
      if (kept !== undefined) return kept;
    }
  }

  async readItem(owner: string, contact: string): Promise<RosterItem | undefined> {
    return await this.#read(async (queries) => {
      const row = await queries.selectFrom("roster_items").select(ITEM_COLUMNS)
        .where("owner_key", "=", keyOf(owner)).where("contact_key", "=", keyOf(contact))
        .executeTakeFirst();
      return row && withoutVersion(this.#itemIn(row));
    });
  }

  async subscription(owner: string, contact: string): Promise<Subscription | undefined> {
    return await this.#read(async (queries) => {
      const row = await queries.selectFrom("roster_items").select("state")
        .where("owner_key", "=", keyOf(owner)).where("contact_key", "=", keyOf(contact))
        .executeTakeFirst();
      return row === undefined ? undefined : subscriptionIn(row.state);
    });
  }

  async subscriptions(
    owners: readonly string[],
    contact: string,
  ): Promise<ReadonlyMap<string, Subscription>> {
    if (owners.length === 0) return new Map();
    const names = new Map(owners.map((owner) => [keyOf(owner).toString("hex"), owner]));
    return await this.#read(async (queries) => {
      const keys = { owners: owners.map(keyOf), contact: keyOf(contact) };
      const { rows } = await queries.executeQuery(
        SUBSCRIPTIONS.with(this.#database.dialect, keys),
      );
      return new Map(rows.map(({ owner_key: key, state }) => [
        names.get(Buffer.from(key).toString("hex"))!, // the query asked for these keys alone
        subscriptionIn(state),
      ]));
    });
  }

  async contacts(
    owner: string,
    { withRequests = false }: { readonly withRequests?: boolean } = {},
  ): Promise<readonly RosterContact[]> {
    return await this.#read(async (queries) => {
      const values = { owner: keyOf(owner) };
      const { dialect } = this.#database;
      const { rows }: { readonly rows: readonly ContactRow[] } = withRequests
        ? await queries.executeQuery(RELATED_OR_ASKING.with(dialect, values))
        : await queries.executeQuery(RELATED.with(dialect, values));
      return rows.map((row) => ({
        jid: textOf(row.contact),
        subscription: subscriptionIn(row.state),
        isAsking: (row.state & ASKING) !== 0,
        request: row.request ? bytesOf(row.request) : undefined,
        reverse: row.other_state === null ? undefined : subscriptionIn(row.other_state),
      }));
    });
  }

  async part(owner: string, contact: string): Promise<void> {
    for (;;) {
      const { version: expected, item: before } = await this.find(owner, contact);
      if (before === undefined) return;
      const parted: RosterItem = {
        ...before,
        subscription: "none",
        isAsking: false,
        isApproved: false,
        request: undefined,
      };
      const item = before.isListed ? parted : undefined;
      if (await this.write(owner, { expected, contact, item }) !== undefined) return;
    }
  }

  async removeAll(owner: string): Promise<void> {
    const ownerKey = keyOf(owner);
    for (const { jid } of await this.contacts(owner, { withRequests: true })) {
      await this.part(jid, owner);
    }
    await this.#database.transact("remove a roster from", async (queries) => {
      await queries.deleteFrom("rosters").where("owner_key", "=", ownerKey).execute();
      await queries.deleteFrom("roster_items").where("owner_key", "=", ownerKey).execute();
    });
  }

  /** Returns undefined when another node has changed the roster meanwhile. */
  async #fill(
    queries: Queries,
    owner: string,
    items: readonly RosterItem[],
  ): Promise<ReadonlySet<string> | undefined> {
    const ownerKey = keyOf(owner);
    const roster = await queries.selectFrom("rosters").select("version")
      .where("owner_key", "=", ownerKey).executeTakeFirst();
    const found = await queries.selectFrom("roster_items").select("contact")
      .where("owner_key", "=", ownerKey).execute();
    const contacts = new Set(found.map(({ contact }) => textOf(contact)));
    const added = items.filter(({ jid }) => !contacts.has(jid));
    const kept = new Set(items.map(({ jid }) => jid).filter((jid) => contacts.has(jid)));
    if (added.length === 0) return kept;
    const expected = roster && Number(roster.version);
    const version = expected === undefined ? this.#clock.wallMs() : expected + 1;
    if (expected === undefined) {
      if (!await this.#create(queries, owner, version)) return undefined;
    } else {
      const { numUpdatedRows } = await queries.updateTable("rosters").set({ version })
        .where("owner_key", "=", ownerKey).where("version", "=", expected)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return undefined;
    }
    for (let at = 0; at < added.length; at += FILL_ROWS) {
      const rows = added.slice(at, at + FILL_ROWS)
        .map((item) => this.#rowOf(ownerKey, { contact: item.jid, item, version }));
      await queries.insertInto("roster_items").values(rows).execute();
    }
    return kept;
  }

  /** Makes an empty roster; false when another node has made it meanwhile. */
  async #create(queries: Queries, owner: string, version: number): Promise<boolean> {
    const ownerKey = keyOf(owner);
    const found = await queries.selectFrom("rosters").select("version")
      .where("owner_key", "=", ownerKey).executeTakeFirst();
    if (found !== undefined) return false;
    // A row that another transaction is inserting makes this one fail, and `transact` repeat it.
    await queries.insertInto("rosters").values({
      owner_key: ownerKey,
      owner: this.#database.dialect.text(owner),
      version,
      removed_version: version,
    }).execute();
    return true;
  }

  async #put(
    queries: Queries,
    ownerKey: Uint8Array,
    { contact, item, version }: {
      readonly contact: string;
      readonly item: RosterItem;
      readonly version: number;
    },
  ): Promise<void> {
    // The roster's own row is locked, so nobody else changes its items.
    await deleteItem(queries, ownerKey, contact);
    const row = this.#rowOf(ownerKey, { contact, item, version });
    await queries.insertInto("roster_items").values(row).execute();
  }

  #rowOf(
    ownerKey: Uint8Array,
    { contact, item, version }: {
      readonly contact: string;
      readonly item: RosterItem;
      readonly version: number;
    },
  ) {
    const { text } = this.#database.dialect;
    return {
      owner_key: ownerKey,
      contact_key: keyOf(contact),
      contact: text(contact),
      state: stateOf(item),
      version,
      details: text(JSON.stringify([item.name, ...item.groups])),
      request: item.request ?? null,
    };
  }

  #itemsIn(rows: readonly JoinedItem[]): VersionedItem[] {
    return rows.map((row) => this.#itemIn(row)).filter((item) => item !== undefined);
  }

  #itemIn(
    { contact, state, details, request, item_version }: JoinedItem,
  ): VersionedItem | undefined {
    if (contact === null || state === null || details === null) return undefined;
    const texts = this.#detailsIn(textOf(details));
    return {
      version: Number(item_version),
      jid: textOf(contact),
      name: texts[0] ?? "",
      groups: texts.slice(1),
      subscription: subscriptionIn(state),
      isAsking: (state & ASKING) !== 0,
      isApproved: (state & APPROVED) !== 0,
      isListed: (state & LISTED) !== 0,
      request: request === null ? undefined : bytesOf(request),
    };
  }

  #detailsIn(text: string): readonly string[] {
    const value = tryParseJson(text);
    if (Array.isArray(value) && value.every(isText)) return value;
    throw new CausewayError(
      "storage/corrupt",
      `Cannot read a roster from ${this.#database.place}: the details of an item are damaged`,
    );
  }

  #read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#database.run("read a roster from", work);
  }
}

async function deleteItem(
  queries: Queries,
  ownerKey: Uint8Array,
  contact: string,
): Promise<void> {
  await queries.deleteFrom("roster_items")
    .where("owner_key", "=", ownerKey).where("contact_key", "=", keyOf(contact)).execute();
}

function stateOf({ subscription, isAsking, isApproved, isListed }: RosterItem): number {
  return (isSeen(subscription) ? TO : 0) | (seesPresence(subscription) ? FROM : 0) |
    (isAsking ? ASKING : 0) | (isApproved ? APPROVED : 0) | (isListed ? LISTED : 0);
}

function subscriptionIn(state: Selectable<RosterItemsTable>["state"]): Subscription {
  return subscriptionOf({ hasTo: (state & TO) !== 0, hasFrom: (state & FROM) !== 0 });
}

function keyOf(jid: string): Buffer {
  return createHash("sha256").update(jid).digest();
}

function withoutVersion(versioned: VersionedItem | undefined): RosterItem | undefined {
  if (versioned === undefined) return undefined;
  const { version: _, ...item } = versioned;
  return item;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not ours: the caller says so
  }
}
