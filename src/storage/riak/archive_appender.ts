import { randomHex } from "../../base/mod.ts";
import type { ArchivedMessage, ArchiveOutcome } from "../archive_store.ts";
import { bareJidOfArchive, isArchiveWanted } from "../archive_store.ts";
import { distinct, idText, preferencesIn } from "./archive_documents.ts";
import type { ArchiveDocuments } from "./archive_documents.ts";
import {
  appending,
  archiveNameOf,
  archivesPlace,
  CHUNK,
  chunking,
  chunkPlace,
  flushing,
  headPlace,
  listed,
  parseChunk,
  parseHead,
} from "./archive_layout.ts";
import type { ListedMessage } from "./archive_layout.ts";

/** Archives that are known to be listed among those of their bare JIDs. */
const MAX_KNOWN = 10_000;
/** Bytes of the name of an addition. */
const RUN_BYTES = 8;

/** Adds messages to archives, and moves them from heads to chunks. */
export class ArchiveAppender {
  readonly #of: ArchiveDocuments;
  readonly #known = new Set<string>();

  constructor(documents: ArchiveDocuments) {
    this.#of = documents;
  }

  /** Adds messages to one archive, as `ArchiveStore.append` says. */
  async append(
    archive: string,
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    await this.list(archive);
    const archiveName = archiveNameOf(archive);
    const now = Math.trunc(nowMs);
    const run = randomHex(RUN_BYTES);
    /** Positions in chunks, by the ids of the messages that were written, and what they were checked with. */
    const written = new Map<string, number | undefined>();
    let checkedWith = -1;
    let outcomes: ArchiveOutcome[] = [];
    const version = await this.#of.deps.documents.change(
      headPlace(archiveName),
      "archive messages in",
      async (state) => {
        const head = parseHead(state);
        // Messages that have left the head since are in a chunk now, and its map says so.
        if (checkedWith !== head.flushed) written.clear();
        checkedWith = head.flushed;
        const preferences = preferencesIn(head);
        const there = new Set(head.newest.map(idText));
        const isNew = (message: ArchivedMessage) => !there.has(idText(message));
        // Preferences say nothing about messages that are there.
        await this.#of.deps.client.forEach(
          distinct(messages.filter((message) => isNew(message) && !written.has(idText(message)))),
          async (message) => {
            const isWanted = isArchiveWanted(preferences, message) === true;
            const sentAtMs = Math.min(Math.trunc(message.sentAtMs), now);
            const position = isWanted
              ? await this.#of.maps.put(archiveName, message, sentAtMs)
              : await this.#of.positionOf(archiveName, message);
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

  /** Notes an archive among those of its bare JID, which `removeAll` looks for. */
  async list(archive: string): Promise<void> {
    const bareJid = bareJidOfArchive(archive);
    const creation = archive.slice(bareJid.length + 1);
    if (creation === "" || this.#known.has(archive)) return;
    await this.#of.deps.documents.change(
      archivesPlace(bareJid),
      "archive messages in",
      ({ entries }) => entries.has(creation) ? undefined : [[creation, ""]],
    );
    // It costs a read to know one again.
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.add(archive);
  }

  /** Moves messages from the head to chunks, as long as there are enough for one. */
  async #flush(archiveName: string): Promise<void> {
    const [place, action] = [headPlace(archiveName), "archive messages in"];
    for (;;) {
      const state = await this.#of.deps.documents.read(place, action);
      const head = parseHead(state);
      if (head.last < head.flushed + 2 * CHUNK) return;
      const flushed = head.flushed + CHUNK;
      const isMoved = ({ position }: ListedMessage) =>
        position > head.flushed && position <= flushed;
      const messages = head.newest.filter(isMoved);
      await this.#of.deps.client.forEach(
        messages,
        (message) => this.#of.maps.place(archiveName, message, message.position),
      );
      const made = { madeFrom: state.version, messages };
      await this.#of.deps.documents.change(
        chunkPlace(archiveName, head.flushed / CHUNK),
        action,
        (chunk) => {
          const before = parseChunk(chunk);
          return before !== undefined && before.madeFrom >= made.madeFrom
            ? undefined
            : chunking(made);
        },
      );
      await this.#of.deps.documents.change(place, action, (now) => {
        const found = parseHead(now);
        if (found.flushed !== head.flushed) return undefined;
        const same = found.newest.filter(isMoved);
        // Somebody has removed messages meanwhile: the chunk has to be made again.
        if (JSON.stringify(same) !== JSON.stringify(messages)) return undefined;
        return flushing(now, { first: found.first, flushed }, isMoved);
      });
    }
  }
}
