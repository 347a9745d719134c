import type { Clock } from "../../base/mod.ts";
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
import { ArchiveAppender } from "./archive_append.ts";
import type { PreferencesDocument } from "./archive_append.ts";
import type { ArchiveHead } from "./archive_head.ts";
import { EMPTY_HEAD, stateOf, visibleUpTo } from "./archive_head.ts";
import { ArchiveHeads } from "./archive_heads.ts";
import type { ArchivePlace, FoundDocument, MessageDocument } from "./elastic_documents.ts";
import {
  bytesOf,
  hashOf,
  headDocumentId,
  messageDocumentId,
  peerTerms,
  placeOf,
  preferencesDocumentId,
} from "./elastic_documents.ts";
import type { DocumentName } from "./elastic_index.ts";
import { IndexClient } from "./elastic_index.ts";
import type { ElasticIndex } from "./elastic_schema.ts";
import type { ElasticServers } from "./elastic_servers.ts";

/** Documents of one search. Servers refuse more than 10 000. */
const AT_ONCE = 1_000;

/**
 * Positions of the first search for a page, for each of its messages, and the growth from one search
 * to the next. A server sorts everything that a search finds before it returns the first ones. In a
 * large archive the first search finds enough, and a small one is found at once however wide it is. A
 * search that finds few begins with the second width.
 */
const [FIRST_WINDOW, WINDOW_GROWTH] = [8, 32];

/**
 * Milliseconds of the first search for a message near a time, of the last one, and the growth from one
 * to the next. An archive that is silent for longer is read from its end instead.
 */
const [FIRST_SPAN_MS, LAST_SPAN_MS, SPAN_GROWTH] = [1_000, 200 * 86_400_000, 256];

const READ = "read an archive from";
const REMOVE = "remove messages from";

/** An archive as a query sees it. */
interface View {
  readonly place: ArchivePlace;
  readonly head: ArchiveHead;
  /** Positions between which the query looks, both left out. */
  readonly after: number;
  readonly before: number;
}

/** The archives of an index of Elasticsearch or OpenSearch. `docs/databases.md` says how they work. */
export class ElasticArchiveStore implements ArchiveStore {
  readonly searchesText = true;
  /** Two of the three requests for a batch cost the same, however large it is. */
  readonly batchMessages = 1_000;
  readonly #index: IndexClient;
  readonly #heads: ArchiveHeads;
  readonly #appender: ArchiveAppender;
  /** Last position of each bucket that searches find. */
  readonly #searchable = new Map<number, number>();

  constructor(servers: ElasticServers, index: ElasticIndex) {
    const { place, clock }: { readonly place: string; readonly clock: Clock } = servers;
    this.#index = new IndexClient(servers, index);
    this.#heads = new ArchiveHeads({ index: this.#index, place, clock });
    this.#appender = new ArchiveAppender({
      index: this.#index,
      heads: this.#heads,
      place,
      clock,
    });
  }

  async append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    return await this.#appender.append(messages, nowMs);
  }

  async read(
    archive: string,
    filter: ArchiveFilter,
    { limit, from, after, before }: ArchivePageRequest,
  ): Promise<ArchivePage | undefined> {
    const [view, found] = await Promise.all([
      this.#view(archive, filter, { after, before }),
      after === undefined && before === undefined
        ? this.#positionNear(archive, filter, from)
        : undefined,
    ]);
    if (view === undefined) return undefined;
    const messages: StoredMessage[] = [];
    let { after: behind, before: ahead } = view;
    // The first search begins at the end all the same: almost nothing up to there is of the page.
    const near = found ?? (from === "start" ? behind : ahead);
    let width = FIRST_WINDOW * (limit + 1) * (isSelective(filter) ? WINDOW_GROWTH : 1);
    for (;;) {
      const wanted = Math.min(limit + 1 - messages.length, AT_ONCE);
      const low = from === "start" ? behind : Math.max(behind, Math.min(near, ahead - 1) - width);
      const high = from === "start" ? Math.min(ahead, Math.max(near, behind + 1) + width) : ahead;
      const { hits } = await this.#search<MessageDocument>({ ...view, after: low, before: high }, {
        filter,
        body: {
          size: wanted,
          sort: sortOf(from),
          _source: ["process", "sequence", "sent_at", "stanza", "position"],
        },
      });
      for (const hit of hits) {
        const { position, stanza } = contentOf(hit);
        if (from === "start") behind = position;
        else ahead = position;
        messages.push({ ...endOf(hit), stanza: bytesOf(stanza) });
      }
      if (messages.length > limit) break;
      if (hits.length === wanted) continue;
      if (from === "start" ? high === view.before : low === view.after) break;
      if (from === "start") behind = high - 1;
      else ahead = low + 1;
      width *= WINDOW_GROWTH;
    }
    const isComplete = messages.length <= limit;
    const page = messages.slice(0, limit);
    return { messages: from === "start" ? page : page.reverse(), isComplete };
  }

  async count(archive: string, filter: ArchiveFilter, limit: number): Promise<number | undefined> {
    const view = await this.#view(archive, filter, {});
    if (view === undefined) return undefined;
    const { total } = await this.#search(view, { filter, body: { size: 0 }, countsUpTo: limit });
    return Math.min(total, limit);
  }

  async ends(
    archive: string,
  ): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined> {
    const [first, last] = await Promise.all((["start", "end"] as const).map(async (from) => {
      const page = await this.read(archive, {}, { limit: 1, from });
      const [message] = page?.messages ?? [];
      if (message === undefined) return undefined;
      const { process, sequence, sentAtMs } = message;
      return { process, sequence, sentAtMs };
    }));
    return first && last && { first, last };
  }

  async preferences(archive: string): Promise<ArchivePreferences | undefined> {
    const place = await this.#placeOf(archive);
    const name = { id: preferencesDocumentId(place), routing: place.routing };
    const action = "read the preferences of an archive from";
    const [found] = await this.#index.get<PreferencesDocument>(action, [name], ["preferences"]);
    return found!.content?.preferences;
  }

  async setPreferences(
    archive: string,
    { byDefault, always, never }: ArchivePreferences,
  ): Promise<void> {
    const { owner, routing, bucket, ...place } = await this.#placeOf(archive);
    const document: PreferencesDocument = { owner, preferences: { byDefault, always, never } };
    const id = preferencesDocumentId({ owner, routing, bucket, ...place });
    await this.#index.change("change the preferences of an archive in", [
      { kind: "index", id, routing, document },
    ]);
    await this.#forgetPreferences(bucket);
  }

  async removeAll(bareJid: string, keep?: () => Promise<string | undefined>): Promise<void> {
    const { owner, routing, bucket } = await this.#placeOf(bareJid);
    let kept: ArchivePlace | undefined;
    for (;;) {
      await this.#index.refresh(REMOVE);
      const others = kept === undefined ? [] : [
        { term: { archive: kept.archive } },
        { ids: { values: [preferencesDocumentId(kept)] } },
      ];
      const query = { bool: { filter: [{ term: { owner } }], must_not: others } };
      const body = { size: AT_ONCE, sort: ["_doc"], _source: ["archive"], query };
      const { hits } = await this.#index.search<Partial<Pick<MessageDocument, "archive">>>(
        REMOVE,
        body,
        { routing },
      );
      if (hits.length === 0) break;
      // Asked behind the search: what was found is not that of an account which is made later.
      const key = await keep?.();
      kept = key === undefined ? undefined : await this.#placeOf(key);
      const gone = hits.filter(({ _id: id, _source: content }) =>
        kept === undefined ||
        (content?.archive !== kept.archive && id !== preferencesDocumentId(kept))
      );
      await this.#index.change(
        REMOVE,
        gone.map(({ _id: id }) => ({ kind: "delete", id, routing })),
      );
    }
    await this.#forgetPreferences(bucket);
  }

  async removeBefore(
    { sentBeforeMs, host, archive, signal }: ArchiveAge,
    limit: number,
  ): Promise<number> {
    const place = archive === undefined ? undefined : await this.#placeOf(archive);
    const filter = [
      { range: { sent_at: { lt: Math.ceil(sentBeforeMs) } } },
      ...(host === undefined ? [] : [{ term: { host: hashOf(host) } }]),
      ...(place === undefined ? [] : [{ term: { archive: place.archive } }]),
    ];
    let removed = 0;
    while (removed < limit && signal?.aborted !== true) {
      await this.#index.refresh(REMOVE);
      const { hits } = await this.#index.search<Pick<MessageDocument, "bucket">>(
        REMOVE,
        {
          size: Math.min(limit - removed, AT_ONCE),
          sort: ["_doc"],
          _source: ["bucket"],
          query: { bool: { filter } },
        },
        place,
      );
      if (hits.length === 0) break;
      const outcomes = await this.#index.change(
        REMOVE,
        hits.map((hit) => ({
          kind: "delete",
          id: hit._id,
          routing: String(contentOf(hit).bucket),
        })),
      );
      // Others that remove them at the same time count theirs.
      removed += outcomes.filter(({ kind }) => kind === "done").length;
    }
    if (removed > 0) await this.#index.refresh(REMOVE);
    return removed;
  }

  async clockMs(): Promise<number | undefined> {
    return await this.#index.clockMs();
  }

  async #placeOf(archive: string): Promise<ArchivePlace> {
    return placeOf(archive, await this.#index.buckets());
  }

  /** Writers read the preferences of a bucket again once this number has changed. */
  async #forgetPreferences(bucket: number): Promise<void> {
    await this.#heads.change(
      bucket,
      (head) => ({ ...head, preferences: head.preferences + 1 }),
    );
  }

  /**
   * Returns what a query sees; undefined when the archive lacks a message that the query names. All
   * that is visible at the time of the call is found by searches afterwards.
   */
  async #view(
    archive: string,
    { afterId, beforeId, ids = [] }: ArchiveFilter,
    { after, before }: Pick<ArchivePageRequest, "after" | "before">,
  ): Promise<View | undefined> {
    const place = await this.#placeOf(archive);
    const { routing, bucket } = place;
    const named = (id: ArchiveId | undefined): readonly DocumentName[] =>
      id === undefined ? [] : [{ id: messageDocumentId(place, id), routing }];
    const [behind, ahead, others] = [
      [...named(afterId), ...named(after)],
      [...named(beforeId), ...named(before)],
      ids.flatMap(named),
    ];
    const [headFound, ...found] = await this.#index.get<
      Partial<Pick<MessageDocument, "position"> & { readonly head: ArchiveHead }>
    >(READ, [{ id: headDocumentId(bucket), routing }, ...behind, ...ahead, ...others], [
      "position",
      "head",
    ]);
    const head = headFound!.content?.head ?? EMPTY_HEAD;
    const positions = found.map(({ content }) => content?.position);
    const isThere = (position: number | undefined): position is number =>
      position !== undefined && stateOf(head, position).kind === "visible";
    if (!positions.every(isThere)) return undefined;
    const end = visibleUpTo(head);
    await this.#makeSearchable(bucket, end);
    return {
      place,
      head,
      after: Math.max(0, ...positions.slice(0, behind.length)),
      before: Math.min(end + 1, ...positions.slice(behind.length, behind.length + ahead.length)),
    };
  }

  /**
   * Returns the position of a message that was sent when a page begins, or little away from that. Most
   * messages become visible in the order in which they were sent, so that the page begins there; but
   * some of its messages may lie elsewhere. Undefined when the page begins at no time, or nothing was
   * sent near it.
   */
  async #positionNear(
    archive: string,
    { startMs, endMs }: ArchiveFilter,
    from: ArchivePageRequest["from"],
  ): Promise<number | undefined> {
    const timeMs = from === "start" ? startMs : endMs;
    if (timeMs === undefined) return undefined;
    const place = await this.#placeOf(archive);
    const all = { place, head: EMPTY_HEAD, after: 0, before: Number.MAX_SAFE_INTEGER };
    const body = { size: 1, sort: sortOf(from), _source: ["position"] };
    for (let spanMs = FIRST_SPAN_MS; spanMs <= LAST_SPAN_MS; spanMs *= SPAN_GROWTH) {
      const filter = from === "start"
        ? { startMs: timeMs, endMs: timeMs + spanMs }
        : { startMs: timeMs - spanMs, endMs: timeMs };
      const { hits } = await this.#search<Pick<MessageDocument, "position">>(all, { filter, body });
      if (hits[0] !== undefined) return contentOf(hits[0]).position;
    }
    return undefined;
  }

  async #makeSearchable(bucket: number, position: number): Promise<void> {
    if ((this.#searchable.get(bucket) ?? 0) >= position) return;
    await this.#index.refresh(READ);
    this.#searchable.set(bucket, Math.max(this.#searchable.get(bucket) ?? 0, position));
  }

  async #search<T>(
    { place, head, after, before }: View,
    { filter, body, countsUpTo }: {
      readonly filter: ArchiveFilter;
      readonly body: Readonly<Record<string, unknown>>;
      readonly countsUpTo?: number;
    },
  ) {
    const { routing } = place;
    const between = { range: { position: { gt: after, lt: before } } };
    const voids = head.voids.map(({ from, to }) => ({
      range: { position: { gte: from, lte: to } },
    }));
    const query = {
      bool: {
        filter: [{ term: { archive: place.archive } }, between, ...conditionsOf(filter, place)],
        must_not: voids,
      },
    };
    return await this.#index.search<T>(READ, { ...body, query }, {
      routing,
      ...(countsUpTo === undefined ? {} : { countsUpTo }),
    });
  }
}

/** Returns the parts of a query for what a filter says about each message. */
function conditionsOf(
  { peer, startMs, endMs, ids, text }: ArchiveFilter,
  place: ArchivePlace,
): readonly unknown[] {
  const range = {
    ...(startMs === undefined ? {} : { gte: Math.ceil(startMs) }),
    ...(endMs === undefined ? {} : { lte: Math.floor(endMs) }),
  };
  return [
    ...(peer === undefined ? [] : [{ term: { peer: peerTerms(peer).at(-1)! } }]),
    ...(Object.keys(range).length === 0 ? [] : [{ range: { sent_at: range } }]),
    ...(ids === undefined
      ? []
      : [{ ids: { values: ids.map((id) => messageDocumentId(place, id)) } }]),
    // The text is cut into words as those of messages are. None of its characters is an operator.
    ...(text === undefined ? [] : [{ match: { text: { query: text, operator: "and" } } }]),
  ];
}

/** True for a filter by which most messages of an archive may be left out wherever one looks. */
function isSelective({ peer, ids, text }: ArchiveFilter): boolean {
  return peer !== undefined || ids !== undefined || text !== undefined;
}

/** Returns the order in which a page is read. */
function sortOf(from: ArchivePageRequest["from"]) {
  return [{ position: from === "start" ? "asc" : "desc" }];
}

function contentOf<T>({ _source }: FoundDocument<T>): T {
  return _source!; // it was asked for
}

function endOf(
  hit: FoundDocument<Pick<MessageDocument, "process" | "sequence" | "sent_at">>,
): ArchiveEnd {
  const { process, sequence, sent_at: sentAtMs } = contentOf(hit);
  return { process, sequence, sentAtMs };
}
