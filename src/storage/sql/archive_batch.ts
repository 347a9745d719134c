import { sql as raw } from "kysely";
import type { CompiledQuery } from "kysely";
import type { ArchivedMessage, ArchiveOutcome } from "../archive_store.ts";
import { isArchiveWanted } from "../archive_store.ts";
import type { ArchiveState } from "./archive_places.ts";
import { bufferOf, lockArchive, lockArchives, NO_MESSAGES } from "./archive_places.ts";
import { insertionPortions } from "./insertion_portions.ts";
import type { Key } from "./keys.ts";
import { keyOf } from "./keys.ts";
import { wordOfArchive, wordsOf } from "./search_words.ts";
import type { SqlDialect } from "./sql_dialect.ts";
import type { Queries } from "./sql_database.ts";
import { Statement } from "./statement.ts";
import type { TextRow } from "./text_search.ts";

/** Most values in one list: SQL Server takes 2100 parameters. */
const MAX_VALUES = 500;
/**
 * Rows of one insertion: nine values each. SQL Server takes 2100 values, MySQL prepares each size anew.
 * SQLite is within the process: it gains nothing by large ones.
 */
const MAX_ROWS = { sqlite: 1, pgsql: 256, mysql: 64, mssql: 64 } as const;
/** Most sequences between two of one run, and fewest sequences of a run: a run takes a statement. */
const [MAX_GAP, FEWEST_OF_RUN] = [32, 8];
/** Archives that one statement changes, with four values each. */
const ARCHIVES_AT_ONCE = 200;

/** Outcomes of messages, and their archives as they were found, by the archives' keys. */
export interface AppendedBatch {
  readonly outcomes: readonly ArchiveOutcome[];
  readonly archives: ReadonlyMap<string, ArchiveState>;
}

/**
 * Adds messages to archives within a transaction, as `ArchiveStore.append` says.
 *
 * The transaction locks the rows of its archives first, in the order of their keys, and gives
 * positions last. Whoever adds to one of these archives meanwhile waits for its end. So the positions
 * of an archive become visible in their order, and nobody can read one before those below it.
 */
export async function appendBatch(
  queries: Queries,
  dialect: SqlDialect,
  messages: readonly ArchivedMessage[],
  nowMs: number,
): Promise<AppendedBatch> {
  const wanted = [...new Set(messages.map(({ archive }) => archive))];
  const archives = await lockArchives(queries, dialect, wanted);
  // Stored messages are looked for behind the lock: the transactions that stored them have held it.
  const there = await idsThere(queries, dialect, messages);
  const fresh = [...archives.values()].filter(({ lastPosition }) => lastPosition === 0);
  const rows: Row[] = [];
  const texts: TextRow[] = [];
  const outcomes = messages.map((message): ArchiveOutcome => {
    const archive = archives.get(message.archive)!; // all of them are locked
    const id = idOf(archive.key, message);
    if (there.has(id)) return "stored";
    const wanted = isArchiveWanted(archive.preferences, message);
    if (wanted !== true) return wanted === false ? "unwanted" : "ask-roster";
    there.add(id);
    const row = rowOf(archive, message, nowMs);
    rows.push(row);
    if (message.text !== undefined) texts.push(...textRowsOf(row, message.text));
    return "stored";
  });
  for (const some of insertionPortions(rows, MAX_ROWS[dialect.name], bytesOf)) {
    await queries.executeQuery(insertion(some.length).with(dialect, valuesOf(some)));
  }
  await addTexts(queries, dialect, texts, fresh.filter(({ hasNews }) => hasNews));
  await noteNews(queries, [...archives.values()].filter(({ hasNews }) => hasNews));
  return { outcomes, archives };
}

/** Returns the row of a message by which a search finds it; none for a text without words. */
function textRowsOf(
  { account_key: key, position }: Row,
  text: string,
): readonly TextRow[] {
  const words = wordsOf(text);
  return words.length === 0 ? [] : [{
    account_key: key,
    position,
    words: [wordOfArchive(key), ...words],
  }];
}

/**
 * Adds words of messages.
 *
 * @param fresh archives that have had no message until now
 */
async function addTexts(
  queries: Queries,
  { textSearch }: SqlDialect,
  rows: readonly TextRow[],
  fresh: readonly ArchiveState[],
): Promise<void> {
  if (textSearch === undefined) return;
  // Programs of earlier versions that removed an archive of this key have left its words.
  for (const some of portions(fresh.map(({ key }) => key), MAX_VALUES)) {
    await queries.deleteFrom("archive_texts").where("account_key", "in", some).execute();
  }
  for (const query of textSearch.insertions(rows)) await queries.executeQuery(query);
}

/**
 * Locks the row of an archive, if there is one, and removes what it has: within a transaction, so
 * that nobody adds to an archive without a row.
 */
export async function dropArchive(
  queries: Queries,
  dialect: SqlDialect,
  key: Key,
): Promise<void> {
  const state = await lockArchive(queries, dialect, key);
  await queries.deleteFrom("archive_messages").where("account_key", "=", key).execute();
  await dropTexts(queries, dialect, key, { behind: 0, upTo: Number.MAX_SAFE_INTEGER });
  // A row that came meanwhile is that of messages that this transaction may not have seen.
  if (state === undefined) return;
  await queries.deleteFrom("archives").where("account_key", "=", key).execute();
}

/** Removes the words of an archive's messages that are gone, behind a position and up to another. */
export async function dropTexts(
  queries: Queries,
  { textSearch }: SqlDialect,
  key: Key,
  { behind, upTo }: { readonly behind: number; readonly upTo: number },
): Promise<void> {
  if (textSearch === undefined) return;
  await queries.deleteFrom("archive_texts").where("account_key", "=", key)
    .where("position", ">", behind).where("position", "<=", upTo)
    .where((each) =>
      each.not(each.exists(
        each.selectFrom("archive_messages").select("archive_messages.position")
          .where("archive_messages.account_key", "=", key)
          .whereRef("archive_messages.position", "=", "archive_texts.position"),
      ))
    ).execute();
}

/** Place of a message in both orders of its archive. */
export interface MessagePlace {
  readonly position: number;
  readonly visibleAtMs: number;
}

/** Place before all messages. */
const BEFORE_ALL: MessagePlace = { position: 0, visibleAtMs: Number.MIN_SAFE_INTEGER };

/** Messages that one step of a removal by age has removed. */
export interface DroppedMessages {
  /** With fewer than the step's limit, no more are left. */
  readonly count: number;
  /** Place of the last one. Undefined: there was none. */
  readonly last: MessagePlace | undefined;
}

/**
 * Removes at most `limit` messages of an archive that were sent before a time, within a transaction.
 *
 * @param behind place up to which they were removed already. PostgreSQL leaves removed rows in an index
 * until it cleans it, and would read all of them again with each step.
 */
export async function dropOld(
  queries: Queries,
  dialect: SqlDialect,
  key: Key,
  { sentBeforeMs, limit, behind = BEFORE_ALL }: {
    readonly sentBeforeMs: number;
    readonly limit: number;
    readonly behind?: MessagePlace | undefined;
  },
): Promise<DroppedMessages> {
  const state = await lockArchive(queries, dialect, key);
  if (state === undefined) return { count: 0, last: undefined };
  const beforeMs = Math.trunc(sentBeforeMs);
  const messages = queries.selectFrom("archive_messages").where("account_key", "=", key);
  // Nothing became visible later than `mostLate` after it was sent.
  const old = messages.select(["position", "visible_at"])
    .where("visible_at", "<", beforeMs + state.mostLate).where("sent_at", "<", beforeMs)
    .where("visible_at", ">=", behind.visibleAtMs).where("position", ">", behind.position)
    .orderBy("visible_at").orderBy("position");
  const rows = await dialect.limit(old, limit).execute();
  const found = rows.at(-1);
  const last = found &&
    { position: Number(found.position), visibleAtMs: Number(found.visible_at) };
  if (last !== undefined) {
    // `visible_at` grows with `position`: these are the messages that were found.
    await queries.deleteFrom("archive_messages").where("account_key", "=", key)
      .where("position", ">", behind.position).where("position", "<=", last.position)
      .where("sent_at", "<", beforeMs).execute();
    await dropTexts(queries, dialect, key, { behind: behind.position, upTo: last.position });
  }
  if (rows.length === limit) return { count: limit, last };
  const [first] = await dialect.limit(messages.select("visible_at").orderBy("position"), 1)
    .execute();
  const oldest = first === undefined
    ? NO_MESSAGES
    : Math.max(beforeMs, Number(first.visible_at) - state.mostLate);
  await queries.updateTable("archives").set({ oldest_sent_at: oldest })
    .where("account_key", "=", key).execute();
  return { count: rows.length, last };
}

function idOf(key: Key, { process, sequence }: ArchivedMessage): string {
  return `${key.toString("hex")} ${process} ${sequence}`;
}

/** Returns which of the messages, by `idOf`, archives have. They may have others of these, too. */
async function idsThere(
  queries: Queries,
  dialect: SqlDialect,
  messages: readonly ArchivedMessage[],
): Promise<Set<string>> {
  const there = new Set<string>();
  for (const [process, ofProcess] of Map.groupBy(messages, (each) => each.process)) {
    const note = (rows: readonly IdRow[]) => {
      for (const { account_key: key, sequence } of rows) {
        there.add(`${bufferOf(key).toString("hex")} ${process} ${Number(sequence)}`);
      }
    };
    const { runs, others } = runsOf(ofProcess.map(({ sequence }) => sequence));
    for (const { from, to } of runs) {
      note((await queries.executeQuery(IDS_BETWEEN.with(dialect, { process, from, to }))).rows);
    }
    for (const some of portions(others, MAX_VALUES)) {
      note((await queries.executeQuery(idsAlone(queries, dialect, process, some))).rows);
    }
  }
  return there;
}

interface IdRow {
  readonly account_key: Uint8Array;
  readonly sequence: number | string;
}

/**
 * PostgreSQL reads a range by the index on ids. With a list of sequences it reads all messages of the
 * process and filters them, as long as its statistics do not know the process: it has begun lately.
 */
const IDS_BETWEEN = new Statement<{ process: number; from: number; to: number }, IdRow>(
  (tables, place) =>
    tables.selectFrom("archive_messages").select(["account_key", "sequence"])
      .where("process", "=", place("process"))
      .where("sequence", ">=", place("from")).where("sequence", "<=", place("to")),
  { name: "archive_ids_between" },
);

/** Returns a query for the messages of one process with sequences that lie alone. */
function idsAlone(
  queries: Queries,
  dialect: SqlDialect,
  process: number,
  sequences: readonly number[],
): CompiledQuery<IdRow> {
  if (dialect.name === "pgsql") return IDS_ALONE.with(dialect, { process, sequences });
  return queries.selectFrom("archive_messages").select(["account_key", "sequence"])
    .where("process", "=", process).where("sequence", "in", sequences).compile();
}

/** Makes PostgreSQL look each sequence up by the index on ids, for the same reason. */
const IDS_ALONE = new Statement<{ process: number; sequences: readonly number[] }, IdRow>(
  (tables, place) => {
    // OFFSET keeps the inner query to itself, so that each sequence is part of an index condition.
    const query = raw<
      IdRow
    >`select found.account_key, found.sequence from unnest(${
      place("sequences")
    }::bigint[]) as wanted (sequence) cross join lateral (select account_key, sequence from archive_messages where process = ${
      place("process")
    } and sequence = wanted.sequence offset 0) as found`;
    return { compile: () => query.compile(tables) };
  },
  { name: "archive_ids_alone" },
);

/**
 * Finds runs of sequences that lie close together, as those of messages that were sent one after
 * another do. The other sequences lie alone.
 */
function runsOf(sequences: readonly number[]): {
  readonly runs: readonly { readonly from: number; readonly to: number }[];
  readonly others: readonly number[];
} {
  const sorted = [...new Set(sequences)].sort((one, other) => one - other);
  const runs: { from: number; to: number }[] = [];
  const others: number[] = [];
  for (let from = 0; from < sorted.length;) {
    let to = from + 1;
    while (to < sorted.length && sorted[to]! - sorted[to - 1]! <= MAX_GAP) to++;
    if (to - from >= FEWEST_OF_RUN) runs.push({ from: sorted[from]!, to: sorted[to - 1]! });
    else others.push(...sorted.slice(from, to));
    from = to;
  }
  return { runs, others };
}

/** Values of a row, in the order of the columns. */
interface Row {
  readonly account_key: Uint8Array;
  readonly position: number;
  readonly process: number;
  readonly sequence: number;
  readonly peer_key: Uint8Array;
  readonly peer_resource: Uint8Array;
  readonly sent_at: number;
  readonly visible_at: number;
  readonly stanza: Uint8Array;
}

const ENCODER = new TextEncoder();

/** Gives a message the next position of its archive. */
function rowOf(
  archive: ArchiveState,
  { process, sequence, peer, sentAtMs, visibleAtMs, stanza }: ArchivedMessage,
  nowMs: number,
): Row {
  const now = Math.trunc(visibleAtMs ?? nowMs);
  // Another clock may be ahead of this one. Nothing is visible before it was sent.
  const sentAt = Math.min(Math.trunc(sentAtMs), now);
  archive.hasNews = true;
  archive.lastPosition++;
  archive.visibleAt = Math.max(archive.visibleAt, now);
  archive.mostLate = Math.max(archive.mostLate, archive.visibleAt - sentAt);
  archive.oldestSentAt = Math.min(archive.oldestSentAt, sentAt);
  return {
    account_key: archive.key,
    position: archive.lastPosition,
    process,
    sequence,
    peer_key: keyOf(peer.bare),
    peer_resource: ENCODER.encode(peer.resourcepart),
    sent_at: sentAt,
    visible_at: archive.visibleAt,
    stanza,
  };
}

const COLUMNS = [
  "account_key",
  "position",
  "process",
  "sequence",
  "peer_key",
  "peer_resource",
  "sent_at",
  "visible_at",
  "stanza",
] as const satisfies readonly (keyof Row)[];

/** Values of several rows, one row after another. */
type Values = readonly Row[keyof Row][];

const INSERTIONS = new Map<number, Statement<Values, never>>();

/** Returns the statement that inserts `count` rows. */
function insertion(count: number): Statement<Values, never> {
  let statement = INSERTIONS.get(count);
  if (statement === undefined) {
    statement = new Statement<Values, never>((tables, place) => {
      const rowAt = (row: number) =>
        Object.fromEntries(
          COLUMNS.map((column, i) => [column, place(row * COLUMNS.length + i)]),
        ) as unknown as Row; // it has all columns, with places that stand for their values
      return tables.insertInto("archive_messages")
        .values(Array.from({ length: count }, (_, row) => rowAt(row)));
    }, { name: count === MAX_ROWS.pgsql ? `archive_messages_${count}` : undefined });
    INSERTIONS.set(count, statement);
  }
  return statement;
}

function bytesOf({ stanza }: Row): number {
  return stanza.length;
}

function valuesOf(rows: readonly Row[]): Values {
  return rows.flatMap((row) => COLUMNS.map((column) => row[column]));
}

/** Writes the newest position of each archive. */
async function noteNews(queries: Queries, archives: readonly ArchiveState[]): Promise<void> {
  for (const some of portions(archives, ARCHIVES_AT_ONCE)) {
    await queries.updateTable("archives").set((each) => {
      const choose = (
        column: "last_position" | "visible_at" | "most_late" | "oldest_sent_at",
        valueOf: (archive: ArchiveState) => number,
      ) => {
        const [first, ...others] = some;
        let chosen = each.case("account_key").when(first!.key).then(valueOf(first!));
        for (const archive of others) chosen = chosen.when(archive.key).then(valueOf(archive));
        return chosen.else(each.ref(column)).end();
      };
      return {
        last_position: choose("last_position", ({ lastPosition }) => lastPosition),
        visible_at: choose("visible_at", ({ visibleAt }) => visibleAt),
        most_late: choose("most_late", ({ mostLate }) => mostLate),
        oldest_sent_at: choose("oldest_sent_at", ({ oldestSentAt }) => oldestSentAt),
      };
    }).where("account_key", "in", some.map(({ key }) => key)).execute();
  }
}

/** Cuts a list into parts that one statement takes. */
function* portions<T>(list: readonly T[], most: number): Generator<T[]> {
  for (let from = 0; from < list.length; from += most) yield list.slice(from, from + most);
}
