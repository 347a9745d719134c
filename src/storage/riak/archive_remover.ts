import type { ArchiveAge, ArchiveId } from "../archive_store.ts";
import { RemovalRounds } from "../removal_rounds.ts";
import { distinct, idText } from "./archive_documents.ts";
import type { ArchiveDocuments } from "./archive_documents.ts";
import {
  archiveNameOf,
  CHUNK,
  chunking,
  chunkOf,
  chunkPlace,
  clearing,
  flushing,
  headPlace,
  parseChunk,
  parseHead,
  parseMessageKey,
  removingFromHead,
} from "./archive_layout.ts";
import type { ArchiveHead, ListedMessage } from "./archive_layout.ts";
import { searchIndex } from "./search_index.ts";
import { isBetween, isText } from "./solr_text.ts";

/** Documents that one query of the search index returns. */
const FOUND_AT_ONCE = 1_000;
/** Chunks that one step of a removal looks at. */
const MAX_STEPS = 64;

/** Name of a removal in messages. */
export const REMOVE = "remove messages from";

/** Removes archives and old messages. */
export class ArchiveRemover {
  readonly #of: ArchiveDocuments;
  /** Keys of messages, in the order of the search index. */
  readonly #rounds = new RemovalRounds<string>();

  constructor(documents: ArchiveDocuments) {
    this.#of = documents;
  }

  /** Removes old messages, as `ArchiveStore.removeBefore` says. */
  async removeBefore(
    { sentBeforeMs, host, archive, signal }: ArchiveAge,
    limit: number,
  ): Promise<number> {
    const scope = [isBetween("sent_register", "*", Math.ceil(sentBeforeMs) - 1)];
    if (host !== undefined) scope.push(isText("host_register", host));
    if (archive !== undefined) scope.push(isText("archive_register", archiveNameOf(archive)));
    // An archive of its own is tried anew each time.
    const rounds = archive === undefined ? this.#rounds : new RemovalRounds<string>();
    const round = rounds.of(host);
    let removed = 0;
    let last = round.behind;
    let isEnd = false;
    while (removed < limit && !round.isGivenUp && signal?.aborted !== true) {
      const most = Math.min(FOUND_AT_ONCE, limit - removed + 1);
      const { documents } = await searchIndex(this.#of.deps.client, "mam", {
        conditions: last === undefined ? scope : [...scope, `_yz_rk:["${last}" TO *]`],
        sort: "_yz_rk asc",
        limit: most,
        fields: ["_yz_rk", "position_register"],
        action: REMOVE,
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
          round.succeeded();
        } catch (thrown) {
          round.failed(some.at(-1)!.key, thrown);
          if (round.isGivenUp) break;
        }
      }
      isEnd = !round.isGivenUp && documents.length < most;
      if (isEnd) break;
      last = old.at(-1)?.key;
    }
    return round.end(removed, { isEnd });
  }

  /** Empties an archive: at once for readers, and then message by message. */
  async clear(archiveName: string): Promise<void> {
    const place = headPlace(archiveName);
    let gone: ArchiveHead | undefined;
    await this.#of.deps.documents.change(place, REMOVE, (state) => {
      gone = parseHead(state);
      return clearing(state);
    });
    if (gone === undefined) return;
    await this.#of.maps.remove(archiveName, gone.newest);
    await this.#removeChunks(archiveName, gone.first, gone.flushed);
  }

  /** Removes all chunks between two positions, with their messages. */
  async #removeChunks(archiveName: string, first: number, flushed: number): Promise<void> {
    for (let chunk = chunkOf(first + 1); (chunk + 1) * CHUNK <= flushed; chunk++) {
      await this.#of.maps.remove(archiveName, await this.#of.chunk(archiveName, chunk));
      await this.#of.deps.objects.remove(chunkPlace(archiveName, chunk), REMOVE);
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
    const positions = await this.#of.deps.client.forEach(
      old,
      async ({ id, position }) => position ?? await this.#of.positionOf(archiveName, id),
    );
    const removed = new Map<string, ListedMessage>();
    const note = (found: readonly ListedMessage[]) => {
      for (const message of found) removed.set(idText(message), message);
    };
    // A message with a position may be in the head still, while it is moved to its chunk.
    let inHead: readonly ListedMessage[] = [];
    const version = await this.#of.deps.documents.change(
      headPlace(archiveName),
      REMOVE,
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
    const moved = await this.#of.deps.client.forEach(
      notFound,
      ({ id }) => this.#of.positionOf(archiveName, id),
    );
    const placed = [...positions, ...moved].filter((position) => position !== undefined);
    for (const chunk of new Set(placed.map(chunkOf))) {
      let found: readonly ListedMessage[] = [];
      const version = await this.#of.deps.documents.change(
        chunkPlace(archiveName, chunk),
        REMOVE,
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
    await this.#of.maps.remove(archiveName, distinct<ArchiveId>([...removed.values(), ...left]));
    await this.#forgetEmptyChunks(archiveName);
    return removed.size;
  }

  /** Lets an archive begin behind the chunks at its begin that have no message any more. */
  async #forgetEmptyChunks(archiveName: string): Promise<void> {
    const before = await this.#of.head(archiveName);
    let first = before.first;
    for (let step = 0; step < MAX_STEPS; step++) {
      const chunk = chunkOf(first + 1);
      if ((chunk + 1) * CHUNK > before.flushed) break;
      const messages = await this.#of.chunk(archiveName, chunk);
      if (messages.some(({ position }) => position > first)) break;
      first = (chunk + 1) * CHUNK;
    }
    if (first === before.first) return;
    await this.#of.deps.documents.change(headPlace(archiveName), REMOVE, (state) => {
      const head = parseHead(state);
      if (head.first >= first) return undefined;
      return flushing(state, { first, flushed: head.flushed }, () => false);
    });
    await this.#removeChunks(archiveName, before.first, first);
  }
}
