import type { ArchiveFilter, ArchiveId, ArchivePageRequest } from "../archive_store.ts";
import { distinct, idText } from "./archive_documents.ts";
import type { ArchiveDocuments } from "./archive_documents.ts";
import {
  archiveNameOf,
  chunkOf,
  digestsOf,
  inOrder,
  matcherOf,
  messagePlace,
  parseMessageKey,
} from "./archive_layout.ts";
import type { ArchiveHead, ListedMessage } from "./archive_layout.ts";
import { searchIndex } from "./search_index.ts";
import { isBetween, isText } from "./solr_text.ts";

/** Chunks that a query looks through by itself. Behind that it asks the search index. */
const MAX_SCANNED = 64;
/** Chunks that are read at the same time to count messages. */
const COUNTED_AT_ONCE = 8;
/** Documents that one query of the search index returns. */
const FOUND_AT_ONCE = 1_000;

/** Positions between which a query looks, both left out. */
interface Span {
  readonly after: number;
  readonly before: number;
}

/** A query of one archive. */
export interface ArchiveQuery {
  readonly archiveName: string;
  readonly head: ArchiveHead;
  readonly filter: ArchiveFilter;
  readonly span: Span;
  readonly from: "start" | "end";
  readonly limit: number;
}

/** Parts of an archive that answer a query. */
interface QueryPlan {
  /** Messages of the head that the query wants. */
  readonly newest: readonly ListedMessage[];
  /** Way to those in chunks. `none`: the query wants none of them. */
  readonly chunks: "none" | "scan" | "search";
  readonly words: readonly string[];
  readonly isWanted: (message: ListedMessage) => boolean;
}

/** Finds messages of one archive: in its head, its chunks and the search index. */
export class ArchiveFinder {
  readonly #of: ArchiveDocuments;

  constructor(documents: ArchiveDocuments) {
    this.#of = documents;
  }

  /** Returns a query with its span; undefined when the archive lacks a message that it names. */
  async queryOf(
    archive: string,
    filter: ArchiveFilter,
    page: Pick<ArchivePageRequest, "after" | "before">,
  ): Promise<Omit<ArchiveQuery, "from" | "limit"> | undefined> {
    const archiveName = archiveNameOf(archive);
    const head = await this.#of.head(archiveName);
    let [after, before] = [head.first, head.last + 1];
    for (const id of [filter.afterId, page.after]) {
      if (id === undefined) continue;
      const position = await this.#visiblePosition(archiveName, head, id);
      if (position === undefined) return undefined;
      after = Math.max(after, position);
    }
    for (const id of [filter.beforeId, page.before]) {
      if (id === undefined) continue;
      const position = await this.#visiblePosition(archiveName, head, id);
      if (position === undefined) return undefined;
      before = Math.min(before, position);
    }
    return { archiveName, head, filter, span: { after, before } };
  }

  async #visiblePosition(
    archiveName: string,
    { newest, first, flushed }: ArchiveHead,
    id: ArchiveId,
  ): Promise<number | undefined> {
    const listedThere = newest.find((message) => idText(message) === idText(id));
    if (listedThere !== undefined) return listedThere.position;
    const position = await this.#of.positionOf(archiveName, id);
    return position !== undefined && position > first && position <= flushed ? position : undefined;
  }

  /**
   * Returns the first messages of a query in its direction, at most `limit`. Undefined when the archive
   * lacks a message that the filter names.
   */
  async find(query: ArchiveQuery): Promise<readonly ListedMessage[] | undefined> {
    const { head, filter, from, limit } = query;
    if (filter.ids !== undefined) return await this.#findByIds(query, filter.ids);
    const plan = await this.#planOf(query);
    if (plan === undefined) return [];
    const { newest, chunks, words, isWanted } = plan;
    // The newest messages are behind all chunks, unless another cluster has added some of them.
    const behind = newest.filter(({ position }) => position > head.flushed).length;
    const isEnough = from === "end" && behind === newest.length && behind >= limit;
    const older = isEnough || chunks === "none"
      ? []
      : chunks === "scan"
      ? await this.#scan(query, isWanted, limit)
      : await this.#search(query, words, limit);
    const all = [...older, ...newest].sort(inOrder);
    return (from === "start" ? all : all.reverse()).slice(0, limit);
  }

  /** Counts the messages of a query, up to its limit, and keeps none of them. */
  async count(query: ArchiveQuery): Promise<number | undefined> {
    const { filter, limit } = query;
    if (filter.ids !== undefined) return (await this.#findByIds(query, filter.ids))?.length;
    const plan = await this.#planOf(query);
    if (plan === undefined) return 0;
    const { newest, chunks, words, isWanted } = plan;
    const most = limit - newest.length;
    if (most <= 0) return limit;
    if (chunks === "none") return newest.length;
    const older = chunks === "scan"
      ? await this.#countInChunks(query, isWanted, most)
      : (await this.#ask(query, words, 0)).found;
    return newest.length + Math.min(older, most);
  }

  /** Returns where the messages of a query are; undefined when there are none. */
  async #planOf(query: ArchiveQuery): Promise<QueryPlan | undefined> {
    const { head, filter, span } = query;
    if (span.after + 1 >= span.before) return undefined;
    const matches = matcherOf(filter);
    const isWanted = (message: ListedMessage) =>
      message.position > span.after && message.position < span.before && matches(message);
    const words = filter.text === undefined ? undefined : wordsOf(filter.text);
    if (words?.length === 0) return undefined;
    const spoken = words && await this.#newestWith(query, words);
    const newest = head.newest.filter((message) =>
      isWanted(message) && (spoken === undefined || spoken.has(idText(message)))
    );
    return { newest, chunks: wayThroughChunks(query), words: words ?? [], isWanted };
  }

  async #findByIds(
    { archiveName, head, filter, span, from, limit }: ArchiveQuery,
    ids: readonly ArchiveId[],
  ): Promise<readonly ListedMessage[] | undefined> {
    const found = new Map<number, ListedMessage>();
    for (const id of distinct(ids)) {
      const position = await this.#visiblePosition(archiveName, head, id);
      if (position === undefined) return undefined;
      const there = head.newest.find((message) => idText(message) === idText(id)) ??
        (await this.#of.chunk(archiveName, chunkOf(position)))
          .find((message) => idText(message) === idText(id));
      if (there !== undefined) found.set(position, there);
    }
    const matches = matcherOf(filter);
    const words = filter.text === undefined ? undefined : wordsOf(filter.text);
    const spoken = words === undefined
      ? undefined
      : await this.#spokenOf(archiveName, words, [...found.values()]);
    const messages = [...found.values()]
      .filter((message) =>
        message.position > span.after && message.position < span.before && matches(message) &&
        (spoken === undefined || spoken.has(idText(message)))
      )
      .sort((one, other) => one.position - other.position);
    return (from === "start" ? messages : messages.reverse()).slice(0, limit);
  }

  /** Returns which of some messages have all these words. */
  async #spokenOf(
    archiveName: string,
    words: readonly string[],
    messages: readonly ListedMessage[],
  ): Promise<ReadonlySet<string>> {
    if (messages.length === 0) return new Set();
    // The index alone knows the words, and returns the newest messages that have them.
    const keys = messages.map((message) =>
      isText("_yz_rk", messagePlace(archiveName, message).key)
    );
    const found = await this.#keysWith(archiveName, words, [`(${keys.join(" OR ")})`]);
    return new Set(found.map(({ id }) => idText(id)));
  }

  /** Looks through chunks, in the direction of the query. */
  async #scan(
    { archiveName, head, span, from }: ArchiveQuery,
    isWanted: (message: ListedMessage) => boolean,
    most: number,
  ): Promise<readonly ListedMessage[]> {
    const [low, high] = chunksOf({ head, span });
    const found: ListedMessage[] = [];
    for (let step = 0; step <= high - low && found.length < most; step++) {
      const chunk = from === "start" ? low + step : high - step;
      const wanted = (await this.#of.chunk(archiveName, chunk)).filter(isWanted);
      found.push(...(from === "start" ? wanted : wanted.toReversed()));
    }
    return found.slice(0, most);
  }

  /** Counts messages in chunks, up to `most` and those of a few chunks more. */
  async #countInChunks(
    { archiveName, head, span }: ArchiveQuery,
    isWanted: (message: ListedMessage) => boolean,
    most: number,
  ): Promise<number> {
    const [low, high] = chunksOf({ head, span });
    let count = 0;
    for (let first = low; first <= high && count < most; first += COUNTED_AT_ONCE) {
      const length = Math.min(COUNTED_AT_ONCE, high - first + 1);
      const chunks = Array.from({ length }, (_, i) => first + i);
      const counts = await this.#of.deps.client.forEach(
        chunks,
        async (chunk) => (await this.#of.chunk(archiveName, chunk)).filter(isWanted).length,
      );
      for (const each of counts) count += each;
    }
    return count;
  }

  /** Asks the search index for messages that are in chunks. */
  async #search(
    query: ArchiveQuery,
    words: readonly string[],
    most: number,
  ): Promise<readonly ListedMessage[]> {
    const { documents } = await this.#ask(query, words, most);
    const digests = query.filter.peer && digestsOf(query.filter.peer);
    return documents.map((document): ListedMessage => ({
      ...parseMessageKey(`${document["_yz_rk"]}`).id,
      position: Number(document["position_register"]),
      sentAtMs: Number(document["sent_register"]),
      peer: digests?.peer ?? "",
      resource: digests?.resource ?? "",
    }));
  }

  async #ask(
    { archiveName, head, filter, span, from }: ArchiveQuery,
    words: readonly string[],
    limit: number,
  ) {
    const { peer, startMs, endMs } = filter;
    const conditions = [
      isText("archive_register", archiveName),
      isBetween("position_register", span.after + 1, Math.min(span.before - 1, head.flushed)),
      ...words.map((word) => isText("text_register", word)),
    ];
    if (startMs !== undefined || endMs !== undefined) {
      const [begin, end] = [Math.ceil(startMs ?? 0), Math.floor(endMs ?? Number.MAX_SAFE_INTEGER)];
      conditions.push(isBetween("sent_register", begin, end));
    }
    const digests = peer && digestsOf(peer);
    if (digests !== undefined) {
      conditions.push(isText("peer_register", digests.peer));
      if (digests.resource !== undefined) {
        conditions.push(isText("resource_register", digests.resource));
      }
    }
    return await searchIndex(this.#of.deps.client, "mam", {
      conditions,
      sort: `position_register ${from === "start" ? "asc" : "desc"}`,
      limit,
      fields: ["_yz_rk", "position_register", "sent_register"],
      action: "search an archive in",
    });
  }

  /** Returns which messages of the head have all these words. */
  async #newestWith(
    { archiveName, head }: ArchiveQuery,
    words: readonly string[],
  ): Promise<ReadonlySet<string>> {
    // A message gets its position before it leaves the head.
    const isMoving = isBetween("position_register", head.flushed + 1, "*");
    const noPosition = "(*:* AND NOT position_register:[* TO *])";
    const found = await this.#keysWith(archiveName, words, [`(${isMoving} OR ${noPosition})`]);
    return new Set(found.map(({ id }) => idText(id)));
  }

  async #keysWith(
    archiveName: string,
    words: readonly string[],
    conditions: readonly string[],
  ) {
    if (words.length === 0) return [];
    const { documents } = await searchIndex(this.#of.deps.client, "mam", {
      conditions: [
        isText("archive_register", archiveName),
        ...words.map((word) => isText("text_register", word)),
        ...conditions,
      ],
      sort: "sent_register desc",
      limit: FOUND_AT_ONCE,
      fields: ["_yz_rk"],
      action: "search an archive in",
    });
    return documents.map((document) => parseMessageKey(`${document["_yz_rk"]}`));
  }
}

/** Returns the first and the last chunk that may have messages of a query. */
function chunksOf(
  { head, span }: Pick<ArchiveQuery, "head" | "span">,
): readonly [number, number] {
  return [chunkOf(span.after + 1), chunkOf(Math.min(span.before - 1, head.flushed))];
}

/** Returns how a query finds its messages in chunks. */
function wayThroughChunks({ head, filter, span }: ArchiveQuery): QueryPlan["chunks"] {
  if (span.after >= head.flushed) return "none";
  if (filter.text !== undefined) return "search";
  const { peer, startMs, endMs } = filter;
  const isPlain = peer === undefined && startMs === undefined && endMs === undefined;
  const [low, high] = chunksOf({ head, span });
  return isPlain || high - low < MAX_SCANNED ? "scan" : "search";
}

/** Returns the words of a search. Solr cuts them as it has cut the texts. */
function wordsOf(text: string): readonly string[] {
  return text.toWellFormed().split(/\s+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
}
