import { LRUCache } from "lru-cache";
import type { ArchivedMessage, ArchivePreferences } from "../archive_store.ts";
import { bareJidOfArchive, isArchiveWanted } from "../archive_store.ts";
import type { ArchiveState } from "./archive_places.ts";
import { placesOf, readPreferences } from "./archive_places.ts";
import type { Key } from "./keys.ts";
import type { ArchiveStep, StepArchive, StepMessage, StepValues } from "./archive_step.ts";
import { RecentKeys } from "./recent_keys.ts";
import { wordOfArchive, wordsOf } from "./search_words.ts";
import type { SqlDatabase } from "./sql_database.ts";

/** State in which the row of an archive is expected. */
interface Expected {
  /** False for a row at the archive's second place. */
  readonly isFirst: boolean;
  /** As the row has them. */
  readonly content: Uint8Array | null;
  readonly preferences: ArchivePreferences | undefined;
}

/** The state of most rows. */
const USUAL: Expected = { isFirst: true, content: null, preferences: undefined };
/** Archives in another state that are remembered, and bytes that their preferences take. */
const [MOST_UNUSUAL, MOST_UNUSUAL_BYTES] = [10_000, 4_194_304];
/** Bytes of an archive that is remembered, without its preferences, at most. */
const UNUSUAL_BYTES = 400;

/**
 * Bytes of stanzas and words that one statement takes, which has as much time as any. A transaction
 * takes more of them in several.
 */
const MOST_BYTES = 2_000_000;

const ENCODER = new TextEncoder();

/** An archive while messages for it are gathered. */
interface Gathered {
  readonly expected: Expected;
  readonly archive: { -readonly [Name in keyof StepArchive]: StepArchive[Name] };
}

/**
 * Adds messages to archives in one round trip to the database, where its engine can.
 *
 * It expects each archive to have messages, to lie at its first place and to have no preferences,
 * unless it has learned something else. The database checks that. Where it is not so, nothing is
 * changed, and a transaction of several statements has to add the messages.
 */
export class ArchiveSteps {
  readonly #database: SqlDatabase;
  readonly #step: ArchiveStep;
  /** Keys of archives, and of those with whom their owners talk. */
  readonly #keys = new RecentKeys();
  readonly #unusual = new LRUCache<string, Expected>({
    max: MOST_UNUSUAL,
    maxSize: MOST_UNUSUAL_BYTES,
    sizeCalculation: ({ content }) => UNUSUAL_BYTES + 4 * (content?.length ?? 0),
  });

  constructor(database: SqlDatabase, step: ArchiveStep) {
    this.#database = database;
    this.#step = step;
  }

  /**
   * Adds messages, all or none of them. Resolves to true when all are stored, and to false when
   * nothing was changed.
   */
  async append(messages: readonly ArchivedMessage[], nowMs: number): Promise<boolean> {
    const values = this.#valuesOf(messages, Math.trunc(nowMs));
    if (values === undefined || bytesOf(values) > MOST_BYTES) return false;
    const statement = this.#step.statement(values);
    return await this.#database.run("archive messages in", async (queries) => {
      try {
        const { numAffectedRows } = await queries.executeQuery(statement);
        return Number(numAffectedRows) === values.archives.length;
      } catch (thrown) {
        const failure = this.#database.dialect.failureOf(thrown);
        if (failure === "conflict") return false; // another transaction got in the way
        throw thrown;
      }
    });
  }

  /** Remembers archives as a transaction has found them. */
  learn(archives: ReadonlyMap<string, ArchiveState>): void {
    for (const [archive, { key, preferencesContent: content }] of archives) {
      const isFirst = key.equals(this.#keys.keyOf(bareJidOfArchive(archive)));
      if (isFirst && content === null) this.#unusual.delete(archive);
      else this.#unusual.set(archive, { isFirst, content, preferences: readPreferences(content) });
    }
  }

  /** Returns undefined when it takes more than the statement does. */
  #valuesOf(messages: readonly ArchivedMessage[], nowMs: number): StepValues | undefined {
    const gathered = new Map<string, Gathered>();
    for (const message of messages) {
      if (message.visibleAtMs !== undefined) return undefined;
      const { expected, archive } = this.#gathered(gathered, message.archive);
      if (isArchiveWanted(expected.preferences, message) !== true) return undefined;
      archive.messages++;
      archive.oldestSentAt = Math.min(archive.oldestSentAt, sentAtOf(message, nowMs));
    }
    const sorted = [...gathered].toSorted(([, one], [, other]) =>
      one.archive.key.compare(other.archive.key)
    );
    const places = new Map(sorted.map(([name], place) => [name, { place, taken: 0 }]));
    return {
      nowMs,
      archives: sorted.map(([, { archive }]) => archive),
      messages: messages.map((message) => {
        const { key } = gathered.get(message.archive)!.archive;
        const counted = places.get(message.archive)!;
        return messageOf(message, this.#keys.keyOf(message.peer.bare), {
          key,
          archive: counted.place,
          nth: ++counted.taken,
          sentAt: sentAtOf(message, nowMs),
        });
      }),
    };
  }

  #gathered(gathered: Map<string, Gathered>, archive: string): Gathered {
    let found = gathered.get(archive);
    if (found === undefined) {
      const expected = this.#unusual.get(archive) ?? USUAL;
      const owner = this.#keys.keyOf(archive);
      const key = expected.isFirst
        ? this.#keys.keyOf(bareJidOfArchive(archive))
        : placesOf(archive).second;
      const { content: preferences } = expected;
      found = {
        expected,
        archive: { key, owner, preferences, messages: 0, oldestSentAt: Infinity },
      };
      gathered.set(archive, found);
    }
    return found;
  }
}

function bytesOf({ messages }: StepValues): number {
  return messages.reduce((sum, { stanza, words = "" }) => sum + stanza.length + words.length, 0);
}

/** Nothing is visible before it was sent: another clock may be ahead of this one. */
function sentAtOf({ sentAtMs }: ArchivedMessage, nowMs: number): number {
  return Math.min(Math.trunc(sentAtMs), nowMs);
}

function messageOf(
  { process, sequence, peer: { resourcepart }, stanza, text }: ArchivedMessage,
  peer: Key,
  place: Pick<StepMessage, "key" | "archive" | "nth" | "sentAt">,
): StepMessage {
  const words = text === undefined ? [] : wordsOf(text);
  return {
    ...place,
    process,
    sequence,
    peer,
    peerResource: ENCODER.encode(resourcepart),
    stanza,
    words: words.length === 0 ? undefined : [wordOfArchive(place.key), ...words].join(" "),
  };
}
