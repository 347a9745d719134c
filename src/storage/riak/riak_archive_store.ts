import { randomHex } from "../../base/mod.ts";
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
  StoredMessage,
} from "../archive_store.ts";
import { archiveKeyOf, bareJidOfArchive, isArchiveWanted } from "../archive_store.ts";
import {
  appending,
  archiveNameOf,
  archivesPlace,
  CHUNK,
  chunking,
  chunkOf,
  chunkPlace,
  clearing,
  digestsOf,
  flushing,
  headPlace,
  inOrder,
  listed,
  matcherOf,
  parseChunk,
  parseHead,
  parseMessageKey,
  preferring,
  removingFromHead,
} from "./archive_layout.ts";
import type { ArchiveHead, ListedMessage } from "./archive_layout.ts";
import { ArchivedMaps, positionIn } from "./archived_maps.ts";
import type { RiakDeps } from "./riak_user_store.ts";
import { searchIndex } from "./search_index.ts";
import { isBetween, isText } from "./solr_text.ts";

/** Parts of a removal that may fail until it gives up. */
const MOST_FAILED = 50;
/** Chunks that a query looks through by itself. Behind that it asks the search index. */
const MAX_SCANNED = 64;
/** Documents that one query of the search index returns. */
const FOUND_AT_ONCE = 1_000;
/** Archives that are known to be listed among those of their bare JIDs. */
const MAX_KNOWN = 10_000;
/** Bytes of the name of an addition. */
const RUN_BYTES = 8;
/** Chunks that one step of a removal looks at. */
const MAX_STEPS = 64;

/** Positions between which a query looks, both left out. */
interface Span {
  readonly after: number;
  readonly before: number;
}

/** A query of one archive. */
interface Query {
  readonly archiveName: string;
  readonly head: ArchiveHead;
  readonly filter: ArchiveFilter;
  readonly span: Span;
  readonly from: "start" | "end";
  readonly limit: number;
}

/**
 * The archives of all accounts in Riak (`archive_layout.ts`). Positions are given by a numbered
 * document: they become visible in their order, and whoever reads on gets each message once.
 */
export class RiakArchiveStore implements ArchiveStore {
  readonly searchesText = true;
  readonly #deps: RiakDeps;
  readonly #maps: ArchivedMaps;
  readonly #known = new Set<string>();

  constructor(deps: RiakDeps) {
    this.#deps = deps;
    this.#maps = new ArchivedMaps(deps);
  }

  async append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    const outcomes: ArchiveOutcome[] = [];
    const byArchive = Map.groupBy(messages.entries(), ([, { archive }]) => archive);
    await this.#deps.client.forEach([...byArchive], async ([archive, own]) => {
      const found = await this.#append(archive, own.map(([, message]) => message), nowMs);
      for (const [i, [index]] of own.entries()) outcomes[index] = found[i]!;
    });
    return outcomes;
  }

  async read(
    archive: string,
    filter: ArchiveFilter,
    { limit, from, after, before }: ArchivePageRequest,
  ): Promise<ArchivePage | undefined> {
    const query = await this.#queryOf(archive, filter, { after, before });
    if (query === undefined) return undefined;
    const found = await this.#find({ ...query, from, limit: limit + 1 });
    if (found === undefined) return undefined;
    const page = found.slice(0, limit);
    const { archiveName } = query;
    const messages = await this.#deps.client.forEach(
      from === "start" ? page : page.toReversed(),
      async ({ process, sequence, sentAtMs }): Promise<readonly StoredMessage[]> => {
        const map = await this.#maps.read(archiveName, { process, sequence });
        // It may have been removed meanwhile.
        if (map?.stanza_register === undefined) return [];
        const stanza = Uint8Array.fromBase64(map.stanza_register);
        return [{ process, sequence, sentAtMs, stanza }];
      },
    );
    return { messages: messages.flat(), isComplete: found.length <= limit };
  }

  async count(archive: string, filter: ArchiveFilter, limit: number): Promise<number | undefined> {
    const query = await this.#queryOf(archive, filter, {});
    if (query === undefined) return undefined;
    return (await this.#find({ ...query, from: "start", limit }))?.length;
  }

  async ends(
    archive: string,
  ): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined> {
    const query = await this.#queryOf(archive, {}, {});
    const end = async (from: "start" | "end") => {
      const [message] = query && await this.#find({ ...query, from, limit: 1 }) || [];
      if (message === undefined) return undefined;
      const { process, sequence, sentAtMs } = message;
      return { process, sequence, sentAtMs };
    };
    const [first, last] = [await end("start"), await end("end")];
    return first && last && { first, last };
  }

  async preferences(archive: string): Promise<ArchivePreferences | undefined> {
    return preferencesIn(await this.#head(archiveNameOf(archive)));
  }

  async setPreferences(
    archive: string,
    { byDefault, always, never }: ArchivePreferences,
  ): Promise<void> {
    await this.#list(archive);
    const text = JSON.stringify({ byDefault, always, never });
    const action = "change the preferences of an archive in";
    const place = headPlace(archiveNameOf(archive));
    await this.#deps.documents.change(place, action, () => preferring(text));
  }

  async removeAll(bareJid: string, keep?: () => Promise<string | undefined>): Promise<void> {
    const { entries } = await this.#deps.documents.read(archivesPlace(bareJid), ACTION.remove);
    const kept = await keep?.();
    for (const creation of ["", ...entries.keys()]) {
      const archive = archiveKeyOf(bareJid, creation);
      if (archive !== kept) await this.#clear(archiveNameOf(archive));
    }
  }

  async removeBefore(
    { sentBeforeMs, host, archive, signal }: ArchiveAge,
    limit: number,
  ): Promise<number> {
    const scope = [isBetween("sent_register", "*", Math.ceil(sentBeforeMs) - 1)];
    if (host !== undefined) scope.push(isText("host_register", host));
    if (archive !== undefined) scope.push(isText("archive_register", archiveNameOf(archive)));
    const failures: unknown[] = [];
    let removed = 0;
    let last: string | undefined;
    while (removed < limit && signal?.aborted !== true) {
      const most = Math.min(FOUND_AT_ONCE, limit - removed + 1);
      const { documents } = await searchIndex(this.#deps.client, "mam", {
        conditions: last === undefined ? scope : [...scope, `_yz_rk:["${last}" TO *]`],
        sort: "_yz_rk asc",
        limit: most,
        fields: ["_yz_rk", "position_register"],
        action: ACTION.remove,
      });
      const old = documents.filter((document) => document["_yz_rk"] !== last)
        .slice(0, limit - removed)
        .map((document) => ({
          key: `${document["_yz_rk"]}`,
          ...parseMessageKey(`${document["_yz_rk"]}`),
          position: document["position_register"] as number | undefined, // a number in the schema
        }));
      for (const [archiveName, some] of Map.groupBy(old, ({ archiveName }) => archiveName)) {
        try {
          removed += await this.#remove(archiveName, some, sentBeforeMs);
        } catch (thrown) {
          failures.push(thrown);
          if (failures.length >= MOST_FAILED) break;
        }
      }
      if (failures.length >= MOST_FAILED) break;
      if (documents.length < most) break;
      last = old.at(-1)?.key;
    }
    if (removed === 0 && failures.length > 0) throw failures[0];
    return removed;
  }

  /** Returns the time at which a server answers (RFC 9110 §6.6.1). */
  async clockMs(): Promise<number | undefined> {
    const { headers } = await this.#deps.client.request({
      method: "GET",
      path: ["ping"],
      accepts: [200],
      action: "read the clock of",
    });
    const dateMs = Date.parse(headers.get("date") ?? "");
    return Number.isNaN(dateMs) ? undefined : dateMs;
  }

  async #append(
    archive: string,
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    await this.#list(archive);
    const archiveName = archiveNameOf(archive);
    const now = Math.trunc(nowMs);
    const run = randomHex(RUN_BYTES);
    /** Positions in chunks, by the ids of the messages that were written, and what they were checked with. */
    const written = new Map<string, number | undefined>();
    let checkedWith = -1;
    let outcomes: ArchiveOutcome[] = [];
    const version = await this.#deps.documents.change(
      headPlace(archiveName),
      "archive messages in",
      async (state) => {
        const head = parseHead(state);
        // What has left the head since is in a chunk now, and its map says so.
        if (checkedWith !== head.flushed) written.clear();
        checkedWith = head.flushed;
        const preferences = preferencesIn(head);
        const there = new Set(head.newest.map(idText));
        const isNew = (message: ArchivedMessage) => !there.has(idText(message));
        // Preferences say nothing about messages that are there.
        await this.#deps.client.forEach(
          distinct(messages.filter((message) => isNew(message) && !written.has(idText(message)))),
          async (message) => {
            const isWanted = isArchiveWanted(preferences, message) === true;
            const sentAtMs = Math.min(Math.trunc(message.sentAtMs), now);
            const position = isWanted
              ? await this.#maps.put(archiveName, message, sentAtMs)
              : await this.#positionOf(archiveName, message);
            if (isWanted || position !== undefined) written.set(idText(message), position);
          },
        );
        const added: ListedMessage[] = [];
        outcomes = messages.map((message): ArchiveOutcome => {
          const id = idText(message);
          if (there.has(id) || (written.get(id) ?? 0) > head.first) return "stored";
          const wanted = isArchiveWanted(preferences, message);
          if (wanted !== true) return wanted === false ? "unwanted" : "ask-roster";
          there.add(id);
          // Another clock may be ahead of this one. Nothing is visible before it was sent.
          const sentAtMs = Math.min(Math.trunc(message.sentAtMs), now);
          added.push(listed(message, { position: head.last + added.length + 1, sentAtMs }));
          return "stored";
        });
        return added.length === 0 ? undefined : appending(state, added, run);
      },
    );
    if (version !== undefined) await this.#flush(archiveName);
    return outcomes;
  }

  /** Returns the position of a message that is in a chunk. */
  async #positionOf(archiveName: string, id: ArchiveId): Promise<number | undefined> {
    const map = await this.#maps.read(archiveName, id);
    return map && positionIn(map);
  }

  /** Moves messages from the head to chunks, as long as there are enough for one. */
  async #flush(archiveName: string): Promise<void> {
    const [place, action] = [headPlace(archiveName), "archive messages in"];
    for (;;) {
      const state = await this.#deps.documents.read(place, action);
      const head = parseHead(state);
      if (head.last < head.flushed + 2 * CHUNK) return;
      const flushed = head.flushed + CHUNK;
      const isMoved = ({ position }: ListedMessage) =>
        position > head.flushed && position <= flushed;
      const messages = head.newest.filter(isMoved);
      await this.#deps.client.forEach(
        messages,
        (message) => this.#maps.place(archiveName, message, message.position),
      );
      const made = { madeFrom: state.version, messages };
      await this.#deps.documents.change(
        chunkPlace(archiveName, head.flushed / CHUNK),
        action,
        (chunk) => {
          const before = parseChunk(chunk);
          return before !== undefined && before.madeFrom >= made.madeFrom
            ? undefined
            : chunking(made);
        },
      );
      await this.#deps.documents.change(place, action, (now) => {
        const found = parseHead(now);
        if (found.flushed !== head.flushed) return undefined;
        const same = found.newest.filter(isMoved);
        // Somebody has removed messages meanwhile: the chunk has to be made again.
        if (JSON.stringify(same) !== JSON.stringify(messages)) return undefined;
        return flushing(now, { first: found.first, flushed }, isMoved);
      });
    }
  }

  async #head(archiveName: string): Promise<ArchiveHead> {
    return parseHead(
      await this.#deps.documents.read(headPlace(archiveName), "read an archive from"),
    );
  }

  /** Notes an archive among those of its bare JID, which `removeAll` looks for. */
  async #list(archive: string): Promise<void> {
    const bareJid = bareJidOfArchive(archive);
    const creation = archive.slice(bareJid.length + 1);
    if (creation === "" || this.#known.has(archive)) return;
    await this.#deps.documents.change(
      archivesPlace(bareJid),
      "archive messages in",
      ({ entries }) => entries.has(creation) ? undefined : [[creation, ""]],
    );
    // It costs a read to know one again.
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.add(archive);
  }

  /** Returns a query with its span; undefined when the archive lacks a message that it names. */
  async #queryOf(
    archive: string,
    filter: ArchiveFilter,
    page: Pick<ArchivePageRequest, "after" | "before">,
  ): Promise<Omit<Query, "from" | "limit"> | undefined> {
    const archiveName = archiveNameOf(archive);
    const head = await this.#head(archiveName);
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
    const position = await this.#positionOf(archiveName, id);
    return position !== undefined && position > first && position <= flushed ? position : undefined;
  }

  /**
   * Returns the first messages of a query in its direction, at most `limit`. Undefined when the archive
   * lacks a message that the filter names.
   */
  async #find(query: Query): Promise<readonly ListedMessage[] | undefined> {
    const { head, filter, span, from, limit } = query;
    if (filter.ids !== undefined) return await this.#findByIds(query, filter.ids);
    if (span.after + 1 >= span.before) return [];
    const isWithin = ({ position }: ListedMessage) =>
      position > span.after && position < span.before;
    const matches = matcherOf(filter);
    const words = filter.text === undefined ? undefined : wordsOf(filter.text);
    if (words?.length === 0) return [];
    const spoken = words && await this.#newestWith(query, words);
    const newest = head.newest.filter((message) =>
      isWithin(message) && matches(message) && (spoken === undefined || spoken.has(idText(message)))
    );
    const flushed = async (most: number): Promise<readonly ListedMessage[]> => {
      if (most <= 0 || span.after >= head.flushed) return [];
      const chunks = chunkOf(Math.min(span.before - 1, head.flushed)) - chunkOf(span.after + 1) + 1;
      const { peer, startMs, endMs } = filter;
      const isPlain = peer === undefined && startMs === undefined && endMs === undefined;
      if (words !== undefined || (!isPlain && chunks > MAX_SCANNED)) {
        return await this.#search(query, words ?? [], most);
      }
      return await this.#scan(query, (message) => isWithin(message) && matches(message), most);
    };
    // The newest messages are behind all chunks, unless another cluster has added some of them.
    const behind = newest.filter(({ position }) => position > head.flushed).length;
    const isEnough = from === "end" && behind === newest.length && behind >= limit;
    const all = [...await flushed(isEnough ? 0 : limit), ...newest].sort(inOrder);
    return (from === "start" ? all : all.reverse()).slice(0, limit);
  }

  async #findByIds(
    { archiveName, head, filter, span, from, limit }: Query,
    ids: readonly ArchiveId[],
  ): Promise<readonly ListedMessage[] | undefined> {
    const found = new Map<number, ListedMessage>();
    for (const id of distinct(ids)) {
      const position = await this.#visiblePosition(archiveName, head, id);
      if (position === undefined) return undefined;
      const there = head.newest.find((message) => idText(message) === idText(id)) ??
        (await this.#chunk(archiveName, chunkOf(position)))
          .find((message) => idText(message) === idText(id));
      if (there !== undefined) found.set(position, there);
    }
    const matches = matcherOf(filter);
    const words = filter.text === undefined ? undefined : wordsOf(filter.text);
    const spoken = words === undefined
      ? undefined
      : new Set((await this.#keysWith(archiveName, words, [])).map(({ id }) => idText(id)));
    const messages = [...found.values()]
      .filter((message) =>
        message.position > span.after && message.position < span.before && matches(message) &&
        (spoken === undefined || spoken.has(idText(message)))
      )
      .sort((one, other) => one.position - other.position);
    return (from === "start" ? messages : messages.reverse()).slice(0, limit);
  }

  /** Reads the messages of a chunk. */
  async #chunk(archiveName: string, chunk: number): Promise<readonly ListedMessage[]> {
    const place = chunkPlace(archiveName, chunk);
    return parseChunk(await this.#deps.documents.read(place, "read an archive from"))?.messages ??
      [];
  }

  /** Looks through chunks, in the direction of the query. */
  async #scan(
    { archiveName, head, span, from }: Query,
    isWanted: (message: ListedMessage) => boolean,
    most: number,
  ): Promise<readonly ListedMessage[]> {
    const low = chunkOf(span.after + 1);
    const high = chunkOf(Math.min(span.before - 1, head.flushed));
    const found: ListedMessage[] = [];
    for (let step = 0; step <= high - low && found.length < most; step++) {
      const chunk = from === "start" ? low + step : high - step;
      const wanted = (await this.#chunk(archiveName, chunk)).filter(isWanted);
      found.push(...(from === "start" ? wanted : wanted.toReversed()));
    }
    return found.slice(0, most);
  }

  /** Asks the search index for messages that are in chunks. */
  async #search(
    { archiveName, head, filter, span, from }: Query,
    words: readonly string[],
    most: number,
  ): Promise<readonly ListedMessage[]> {
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
    const { documents } = await searchIndex(this.#deps.client, "mam", {
      conditions,
      sort: `position_register ${from === "start" ? "asc" : "desc"}`,
      limit: most,
      fields: ["_yz_rk", "position_register", "sent_register"],
      action: "search an archive in",
    });
    return documents.map((document): ListedMessage => ({
      ...parseMessageKey(`${document["_yz_rk"]}`).id,
      position: Number(document["position_register"]),
      sentAtMs: Number(document["sent_register"]),
      peer: digests?.peer ?? "",
      resource: digests?.resource ?? "",
    }));
  }

  /** Returns which messages of the head have all these words. */
  async #newestWith(
    { archiveName, head }: Query,
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
    const { documents } = await searchIndex(this.#deps.client, "mam", {
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

  /** Empties an archive: at once for readers, and then message by message. */
  async #clear(archiveName: string): Promise<void> {
    const place = headPlace(archiveName);
    let gone: ArchiveHead | undefined;
    await this.#deps.documents.change(place, ACTION.remove, (state) => {
      gone = parseHead(state);
      return clearing(state);
    });
    if (gone === undefined) return;
    await this.#maps.remove(archiveName, gone.newest);
    await this.#removeChunks(archiveName, gone.first, gone.flushed);
  }

  /** Removes all chunks between two positions, with their messages. */
  async #removeChunks(archiveName: string, first: number, flushed: number): Promise<void> {
    for (let chunk = chunkOf(first + 1); (chunk + 1) * CHUNK <= flushed; chunk++) {
      await this.#maps.remove(archiveName, await this.#chunk(archiveName, chunk));
      await this.#deps.objects.remove(chunkPlace(archiveName, chunk), ACTION.remove);
    }
  }

  /** Removes messages of one archive that are too old, and returns how many it had. */
  async #remove(
    archiveName: string,
    old: readonly { readonly id: ArchiveId; readonly position: number | undefined }[],
    sentBeforeMs: number,
  ): Promise<number> {
    const wanted = new Set(old.map(({ id }) => idText(id)));
    const isRemoved = (message: ListedMessage) =>
      wanted.has(idText(message)) && message.sentAtMs < sentBeforeMs;
    // The index may not know yet that a message has gone into a chunk.
    const positions = await this.#deps.client.forEach(
      old,
      async ({ id, position }) => position ?? await this.#positionOf(archiveName, id),
    );
    const removed = new Map<string, ListedMessage>();
    const note = (found: readonly ListedMessage[]) => {
      for (const message of found) removed.set(idText(message), message);
    };
    // A message with a position may be in the head still, while it is moved to its chunk.
    let inHead: readonly ListedMessage[] = [];
    const version = await this.#deps.documents.change(
      headPlace(archiveName),
      ACTION.remove,
      (state) => {
        inHead = parseHead(state).newest.filter(isRemoved);
        return removingFromHead(state, isRemoved);
      },
    );
    if (version !== undefined) note(inHead);
    // A message may have left the head for a chunk since its position was read.
    const notFound = old.filter(({ id }, i) =>
      positions[i] === undefined && !removed.has(idText(id))
    );
    const moved = await this.#deps.client.forEach(
      notFound,
      ({ id }) => this.#positionOf(archiveName, id),
    );
    const placed = [...positions, ...moved].filter((position) => position !== undefined);
    for (const chunk of new Set(placed.map(chunkOf))) {
      let found: readonly ListedMessage[] = [];
      const version = await this.#deps.documents.change(
        chunkPlace(archiveName, chunk),
        ACTION.remove,
        (state) => {
          const list = parseChunk(state);
          found = list?.messages.filter(isRemoved) ?? [];
          if (list === undefined || found.length === 0) return undefined;
          return chunking({ ...list, messages: list.messages.filter((each) => !isRemoved(each)) });
        },
      );
      if (version !== undefined) note(found);
    }
    // A message without a position that no head lists is left from an addition that was cut off.
    const left = notFound.filter((_, i) => moved[i] === undefined).map(({ id }) => id);
    await this.#maps.remove(archiveName, distinct<ArchiveId>([...removed.values(), ...left]));
    await this.#forgetEmptyChunks(archiveName);
    return removed.size;
  }

  /** Lets an archive begin behind the chunks at its begin that have no message any more. */
  async #forgetEmptyChunks(archiveName: string): Promise<void> {
    const before = await this.#head(archiveName);
    let first = before.first;
    for (let step = 0; step < MAX_STEPS; step++) {
      const chunk = chunkOf(first + 1);
      if ((chunk + 1) * CHUNK > before.flushed) break;
      const messages = await this.#chunk(archiveName, chunk);
      if (messages.some(({ position }) => position > first)) break;
      first = (chunk + 1) * CHUNK;
    }
    if (first === before.first) return;
    await this.#deps.documents.change(headPlace(archiveName), ACTION.remove, (state) => {
      const head = parseHead(state);
      if (head.first >= first) return undefined;
      return flushing(state, { first, flushed: head.flushed }, () => false);
    });
    await this.#removeChunks(archiveName, before.first, first);
  }
}

/** Names of actions in messages. */
const ACTION = { remove: "remove messages from" } as const;

function preferencesIn({ preferences }: ArchiveHead): ArchivePreferences | undefined {
  return preferences === undefined ? undefined : JSON.parse(preferences); // this program wrote it
}

function idText({ process, sequence }: ArchiveId): string {
  return `${process} ${sequence}`;
}

function distinct<I extends ArchiveId>(ids: readonly I[]): readonly I[] {
  return [...new Map(ids.map((id) => [idText(id), id])).values()];
}

/** Returns the words of a search. Solr cuts them as it has cut the texts. */
function wordsOf(text: string): readonly string[] {
  return text.toWellFormed().split(/\s+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
}
