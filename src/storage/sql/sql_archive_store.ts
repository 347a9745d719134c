import { sql as raw } from "kysely";
import type { ExpressionBuilder, SelectQueryBuilder, SqlBool } from "kysely";
import type {
  ArchiveAge,
  ArchivedMessage,
  ArchiveEnd,
  ArchiveFilter,
  ArchiveId,
  ArchiveOutcome,
  ArchivePage,
  ArchivePageRequest,
  ArchivePreferences,
  ArchiveStore,
} from "../archive_store.ts";
import { appendBatch, dropArchive, dropOld, dropTexts } from "./archive_batch.ts";
import type { MessagePlace } from "./archive_batch.ts";
import {
  bufferOf,
  closeUnowned,
  findArchive,
  findArchivesOf,
  lockArchive,
  NO_ROW,
  readPreferences,
  stillOf,
  writePreferences,
} from "./archive_places.ts";
import type { RowOwner } from "./archive_places.ts";
import { ArchiveSteps } from "./archive_steps.ts";
import type { Key } from "./keys.ts";
import { keyOf } from "./keys.ts";
import { searchedWordsOf, wordOfArchive } from "./search_words.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { RemovalRounds } from "../removal_rounds.ts";
import { bytesOf } from "./sql_dialect.ts";
import type { Tables } from "./tables.ts";

const REMOVE = "remove an archive from";
/** Messages that one step of a removal removes. */
const REMOVED_AT_ONCE = 1_000;
/** Archives with old messages that one query finds. */
const ARCHIVES_AT_ONCE = 100;
/** Archives that one removal looks at once it has removed something. */
const MOST_ARCHIVES = 1_000;

/** An archive with old messages, and its place in the order in which removals find them. */
interface OldArchive {
  readonly key: Key;
  readonly oldestSentAt: number;
}

/** The place that a removal by age has reached within one archive. */
interface AgedPlace {
  readonly key: Key;
  readonly sentBeforeMs: number;
  readonly last: MessagePlace | undefined;
}

/** Positions between which a query looks, both left out. */
interface Span {
  after: number;
  before: number;
}

/** The archives of all accounts and rooms, in an SQL database. */
export class SqlArchiveStore implements ArchiveStore {
  readonly batchMessages: number;
  readonly #database: SqlDatabase;
  /** Undefined where the engine has no statement for it. */
  readonly #steps: ArchiveSteps | undefined;
  readonly #rounds = new RemovalRounds<OldArchive>();
  /** A removal by age takes many calls for a large archive. The next one goes on from here. */
  #aged: AgedPlace | undefined;

  constructor(database: SqlDatabase) {
    this.#database = database;
    const { archiveStep } = database.dialect;
    this.#steps = archiveStep && new ArchiveSteps(database, archiveStep);
    // A batch costs some round trips and one flush of the disk, however large it is. SQLite is within
    // the process, which does nothing else meanwhile.
    this.batchMessages = database.dialect.name === "sqlite" ? 256 : 1_000;
  }

  get searchesText(): boolean {
    return this.#database.textSearch !== undefined;
  }

  async append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    if (messages.length === 0) return [];
    if (await this.#steps?.append(messages, nowMs) === true) return messages.map(() => "stored");
    const { outcomes, archives } = await this.#database.transact(
      "archive messages in",
      (queries) => appendBatch(queries, this.#database.dialect, messages, nowMs),
    );
    this.#steps?.learn(archives);
    return outcomes;
  }

  async read(
    archive: string,
    filter: ArchiveFilter,
    { limit, from, after, before }: ArchivePageRequest,
  ): Promise<ArchivePage | undefined> {
    return await this.#database.run("read an archive from", async (queries) => {
      const key = await findArchive(queries, archive);
      const span = await this.#spanOf(queries, key, filter);
      if (span === undefined) return undefined;
      if (!await narrow(queries, key, span, { after, before })) return undefined;
      if (filter.ids !== undefined && !await hasAll(queries, key, filter.ids)) return undefined;
      if (span.after + 1 >= span.before) return { messages: [], isComplete: true };
      const query = this.#matching(queries, { archive, key }, filter, span)
        .select(["process", "sequence", "sent_at", "stanza"])
        .orderBy("position", from === "start" ? "asc" : "desc");
      const hasOwnIndex = filter.peer !== undefined || filter.ids !== undefined;
      const ordered = hasOwnIndex ? query : this.#byKey(query);
      const rows = await this.#database.dialect.limit(ordered, limit + 1).execute();
      const isComplete = rows.length <= limit;
      const messages = rows.slice(0, limit).map((row) => ({
        ...endOf(row),
        stanza: bytesOf(row.stanza),
      }));
      return { messages: from === "start" ? messages : messages.reverse(), isComplete };
    });
  }

  async count(archive: string, filter: ArchiveFilter, limit: number): Promise<number | undefined> {
    return await this.#database.run("count messages in", async (queries) => {
      const key = await findArchive(queries, archive);
      const span = await this.#spanOf(queries, key, filter);
      if (span === undefined) return undefined;
      const some = this.#database.dialect.limit(
        this.#matching(queries, { archive, key }, filter, span).select("position"),
        limit,
      );
      const { total } = await queries.selectFrom(some.as("some"))
        .select((each) => each.fn.countAll<number | string>().as("total"))
        .executeTakeFirstOrThrow();
      return Number(total);
    });
  }

  async ends(
    archive: string,
  ): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined> {
    return await this.#database.run("read an archive from", async (queries) => {
      const key = await findArchive(queries, archive);
      const end = async (direction: "asc" | "desc") => {
        const query = queries.selectFrom("archive_messages")
          .select(["process", "sequence", "sent_at"])
          .where("account_key", "=", key).where(isThere(stillOf(queries, archive, key)))
          .orderBy("position", direction);
        const [row] = await this.#database.dialect.limit(this.#byKey(query), 1).execute();
        return row && endOf(row);
      };
      const [first, last] = [await end("asc"), await end("desc")];
      return first && last && { first, last };
    });
  }

  async preferences(archive: string): Promise<ArchivePreferences | undefined> {
    return await this.#database.run("read the preferences of an archive from", async (queries) => {
      const key = await findArchive(queries, archive);
      const row = await stillOf(queries, archive, key).select("preferences").executeTakeFirst();
      return readPreferences(row?.preferences ?? null);
    });
  }

  async setPreferences(archive: string, preferences: ArchivePreferences): Promise<void> {
    await this.#database.transact(
      "change the preferences of an archive in",
      (queries) => writePreferences(queries, this.#database.dialect, archive, preferences),
    );
  }

  async removeAll(bareJid: string, keep?: () => Promise<string | undefined>): Promise<void> {
    const found = await this.#database.run(REMOVE, (queries) => findArchivesOf(queries, bareJid));
    if (keep === undefined) {
      for (const { key } of found) await this.#remove(key);
      return;
    }
    const archive = await keep();
    const kept = archive &&
      await this.#database.run(REMOVE, (queries) => findArchive(queries, archive));
    for (const { key, owner } of found) {
      // Another account may have the row by now, or make one.
      if (owner !== NO_ROW && !(kept && key.equals(kept))) await this.#remove(key, owner);
    }
  }

  async closeUnowned(bareJid: string): Promise<void> {
    // It is the first step of a new account: whoever adds one knows of no archive.
    await this.#database.run("add an account to", (queries) => closeUnowned(queries, bareJid));
  }

  async hasUnowned(): Promise<boolean> {
    return await this.#database.run("find an archive in", async (queries) => {
      const query = queries.selectFrom("archives").select("account_key")
        .where("host_key", "is", null);
      return (await this.#database.dialect.limit(query, 1).execute()).length > 0;
    });
  }

  /** Removes an archive: when an owner is given, only as long as it is the one of the row. */
  async #remove(key: Key, owner?: RowOwner): Promise<void> {
    this.#aged = undefined;
    // In steps: one statement for ten million messages would not end within its time. Each step begins
    // where the one before ended: PostgreSQL leaves removed rows in an index until it cleans it, and
    // would read all of them again.
    for (let behind: number | undefined = 0; behind !== undefined;) {
      const from: number = behind;
      behind = await this.#database.transact(REMOVE, async (queries) => {
        if (owner !== undefined && !await this.#isOf(queries, key, owner)) return undefined;
        const oldest = queries.selectFrom("archive_messages").select("position")
          .where("account_key", "=", key).where("position", ">", from).orderBy("position");
        const rows = await this.#database.dialect.limit(this.#byKey(oldest), REMOVED_AT_ONCE)
          .execute();
        if (rows.length < REMOVED_AT_ONCE) return undefined;
        const upTo = Number(rows.at(-1)!.position);
        await queries.deleteFrom("archive_messages").where("account_key", "=", key)
          .where("position", ">", from).where("position", "<=", upTo).execute();
        await dropTexts(queries, this.#database.dialect, key, { behind: from, upTo });
        return upTo;
      });
    }
    await this.#database.transact(REMOVE, async (queries) => {
      if (owner !== undefined && !await this.#isOf(queries, key, owner)) return;
      await dropArchive(queries, this.#database.dialect, key);
    });
  }

  /** Locks the row of an archive, if there is one, and returns whether it has that owner. */
  async #isOf(queries: Queries, key: Key, owner: RowOwner): Promise<boolean> {
    const state = await lockArchive(queries, this.#database.dialect, key);
    return (state?.owner ?? NO_ROW) === owner;
  }

  async removeBefore(age: ArchiveAge, limit: number): Promise<number> {
    if (age.archive !== undefined) {
      const { archive } = age;
      const action = "find an archive in";
      const key = await this.#database.run(action, (queries) => findArchive(queries, archive));
      return await this.#removeOld(key, age.sentBeforeMs, limit);
    }
    const round = this.#rounds.of(age.host);
    const isEnded = () => age.signal?.aborted === true;
    let removed = 0;
    let isEnd = false;
    for (let seen = 0; removed < limit && !(removed > 0 && seen >= MOST_ARCHIVES) && !isEnded();) {
      const found = await this.#findOld(age, round.behind);
      isEnd = found.length === 0;
      if (isEnd) break;
      for (const old of found) {
        if (removed === limit || round.isGivenUp || isEnded()) break;
        seen++;
        try {
          removed += await this.#removeOld(old.key, age.sentBeforeMs, limit - removed);
          round.succeeded();
        } catch (thrown) {
          round.failed(old, thrown);
        }
      }
      if (round.isGivenUp) break;
    }
    return round.end(removed, { isEnd });
  }

  async clockMs(): Promise<number> {
    const { clockMs } = this.#database.dialect;
    return await this.#database.run("read the clock of", async (queries) => {
      const row = await queries.selectNoFrom(clockMs.as("now")).executeTakeFirstOrThrow();
      return Number(row.now);
    });
  }

  /**
   * Returns some archives that may have messages of an age: those with the oldest ones, behind a place
   * in that order.
   */
  async #findOld(
    { sentBeforeMs, host }: ArchiveAge,
    behind: OldArchive | undefined,
  ): Promise<readonly OldArchive[]> {
    return await this.#database.run("find old messages in", async (queries) => {
      let query = queries.selectFrom("archives").select(["account_key", "oldest_sent_at"])
        .where("oldest_sent_at", "<", Math.trunc(sentBeforeMs))
        .orderBy("oldest_sent_at").orderBy("account_key");
      if (host !== undefined) query = query.where("host_key", "=", keyOf(host));
      if (behind !== undefined) {
        const { oldestSentAt, key } = behind;
        query = query.where("oldest_sent_at", ">=", oldestSentAt)
          .where((each) =>
            each.or([
              each("oldest_sent_at", ">", oldestSentAt),
              each("account_key", ">", key),
            ])
          );
      }
      const rows = await this.#database.dialect.limit(query, ARCHIVES_AT_ONCE).execute();
      return rows.map((row) => ({
        key: bufferOf(row.account_key),
        oldestSentAt: Number(row.oldest_sent_at),
      }));
    });
  }

  /** Removes old messages of one archive, in steps. */
  async #removeOld(key: Key, sentBeforeMs: number, limit: number): Promise<number> {
    let removed = 0;
    while (removed < limit) {
      const most = Math.min(limit - removed, REMOVED_AT_ONCE);
      const behind = this.#agedPlaceOf(key, sentBeforeMs);
      const { count, last } = await this.#database.transact(
        "remove old messages from",
        (queries) =>
          dropOld(queries, this.#database.dialect, key, { sentBeforeMs, limit: most, behind }),
      );
      removed += count;
      const isMore = count === most;
      this.#aged = isMore ? { key, sentBeforeMs, last } : undefined;
      if (!isMore) break;
    }
    return removed;
  }

  /** Returns the place up to which an archive has no messages of an age any more, where it is known. */
  #agedPlaceOf(key: Key, sentBeforeMs: number): MessagePlace | undefined {
    const isSame = this.#aged?.sentBeforeMs === sentBeforeMs && this.#aged.key.equals(key);
    return isSame ? this.#aged?.last : undefined;
  }

  /** Reads messages in the order of their positions, instead of sorted. */
  #byKey<O>(
    query: SelectQueryBuilder<Tables, "archive_messages", O>,
  ): SelectQueryBuilder<Tables, "archive_messages", O> {
    const hint = this.#database.dialect.byKey?.("archive_messages");
    return hint === undefined ? query : query.modifyFront(hint);
  }

  /** Selects the messages that a filter wants, within a span. */
  #matching(
    queries: Queries,
    { archive, key }: { readonly archive: string; readonly key: Key },
    { peer, startMs, endMs, ids, text }: ArchiveFilter,
    span: Span,
  ): SelectQueryBuilder<Tables, "archive_messages", unknown> {
    let query = queries.selectFrom("archive_messages").where("account_key", "=", key)
      .where("position", ">", span.after).where("position", "<", span.before)
      .where(isThere(stillOf(queries, archive, key)));
    if (peer !== undefined) {
      query = query.where("peer_key", "=", keyOf(peer.bare));
      if (peer.resourcepart !== "") {
        const resource = new TextEncoder().encode(peer.resourcepart);
        query = query.where("peer_resource", "=", resource);
      }
    }
    if (startMs !== undefined) query = query.where("sent_at", ">=", Math.trunc(startMs));
    if (endMs !== undefined) query = query.where("sent_at", "<=", Math.trunc(endMs));
    if (ids !== undefined) query = query.where((each) => isOneOf(each, ids));
    if (text !== undefined) {
      const { textSearch } = this.#database;
      if (textSearch === undefined) throw new TypeError("Cannot search: the engine does not");
      const words = searchedWordsOf(text);
      query = words.length === 0 ? query.where(raw<SqlBool>`1 = 0`) : query.where(
        "position",
        "in",
        textSearch.positions([wordOfArchive(key), ...words], { account_key: key, ...span }),
      );
    }
    return query;
  }

  /**
   * Returns the positions that a filter leaves. Undefined when the archive lacks a message that it
   * names. The times of sending, which are in no order, are checked for each message besides.
   */
  async #spanOf(queries: Queries, key: Key, filter: ArchiveFilter): Promise<Span | undefined> {
    const { startMs, endMs, afterId, beforeId } = filter;
    const span: Span = { after: 0, before: Number.MAX_SAFE_INTEGER };
    if (!await narrow(queries, key, span, { after: afterId, before: beforeId })) return undefined;
    if (startMs !== undefined) {
      // Nothing is visible before it was sent.
      const first = await this.#firstVisible(queries, key, ">=", startMs);
      span.after = Math.max(span.after, first === undefined ? span.before : first - 1);
    }
    if (endMs !== undefined) {
      const row = await queries.selectFrom("archives").select("most_late")
        .where("account_key", "=", key).executeTakeFirst();
      const mostLate = Number(row?.most_late ?? 0);
      const first = await this.#firstVisible(queries, key, ">", endMs + mostLate);
      if (first !== undefined) span.before = Math.min(span.before, first);
    }
    return span;
  }

  /** Returns the first position that became visible at or past a time. */
  async #firstVisible(
    queries: Queries,
    key: Key,
    comparison: ">" | ">=",
    timeMs: number,
  ): Promise<number | undefined> {
    const query = queries.selectFrom("archive_messages").select("position")
      .where("account_key", "=", key).where("visible_at", comparison, Math.trunc(timeMs))
      .orderBy("visible_at").orderBy("position");
    const [row] = await this.#database.dialect.limit(query, 1).execute();
    return row && Number(row.position);
  }
}

/** Narrows a span to both sides of two messages; false when the archive lacks one of them. */
async function narrow(
  queries: Queries,
  key: Key,
  span: Span,
  { after, before }: {
    readonly after: ArchiveId | undefined;
    readonly before: ArchiveId | undefined;
  },
): Promise<boolean> {
  if (after !== undefined) {
    const position = await positionOf(queries, key, after);
    if (position === undefined) return false;
    span.after = Math.max(span.after, position);
  }
  if (before !== undefined) {
    const position = await positionOf(queries, key, before);
    if (position === undefined) return false;
    span.before = Math.min(span.before, position);
  }
  return true;
}

async function positionOf(
  queries: Queries,
  key: Key,
  { process, sequence }: ArchiveId,
): Promise<number | undefined> {
  const row = await queries.selectFrom("archive_messages").select("position")
    .where("process", "=", process).where("sequence", "=", sequence)
    .where("account_key", "=", key).executeTakeFirst();
  return row && Number(row.position);
}

async function hasAll(queries: Queries, key: Key, ids: readonly ArchiveId[]): Promise<boolean> {
  const rows = await queries.selectFrom("archive_messages").select(["process", "sequence"])
    .where("account_key", "=", key).where((each) => isOneOf(each, ids)).execute();
  const wanted = new Set(ids.map(({ process, sequence }) => `${process} ${sequence}`));
  return rows.length === wanted.size;
}

/** Returns a condition that is true while a query finds a row. */
function isThere(query: ReturnType<typeof stillOf>) {
  return (each: MessageExpressions) => each.exists(query.select("archives.account_key"));
}

type MessageExpressions = ExpressionBuilder<Tables, "archive_messages">;

function isOneOf(each: MessageExpressions, ids: readonly ArchiveId[]) {
  const groups = [...Map.groupBy(ids, ({ process }) => process)];
  return each.or(
    groups.map(([process, some]) =>
      each.and([
        each("process", "=", process),
        each("sequence", "in", some.map(({ sequence }) => sequence)),
      ])
    ),
  );
}

function endOf(
  row: {
    readonly process: number | string;
    readonly sequence: number | string;
    readonly sent_at: number | string;
  },
): ArchiveEnd {
  const { process, sequence, sent_at: sentAt } = row;
  return { process: Number(process), sequence: Number(sequence), sentAtMs: Number(sentAt) };
}
