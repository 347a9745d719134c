import { Turns } from "../../xmpp/mod.ts";
import type {
  ArchiveAge,
  ArchivedMessage,
  ArchiveEnd,
  ArchiveFilter,
  ArchiveOutcome,
  ArchivePage,
  ArchivePageRequest,
  ArchivePreferences,
  ArchiveStore,
} from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";
import { RemovalRounds } from "../removal_rounds.ts";
import { keyOf } from "../sql/keys.ts";
import { storageError } from "../storage_error.ts";
import { ArchiveAppender } from "./archive_appender.ts";
import {
  archiveKeys,
  findArchive,
  findOrMakeArchive,
  writePreferences,
} from "./archive_directory.ts";
import { countMessages, readEnds, readPage } from "./archive_reader.ts";
import { ArchiveRemover } from "./archive_remover.ts";
import type { BucketNote } from "./archive_remover.ts";
import type { CassandraCluster } from "./cassandra_cluster.ts";
import { forEach } from "./cassandra_session.ts";

/** Archives that one operation adds to at once. */
const ARCHIVES_AT_ONCE = 16;
const MAX_ATTEMPTS = 20;

/** The cluster that archives are in. */
export type ArchiveCluster = Pick<CassandraCluster, "run" | "clock" | "place">;

/** The archives of all accounts, in a Cassandra cluster. docs/databases.md describes its tables. */
export class CassandraArchiveStore implements ArchiveStore {
  readonly searchesText = false;
  readonly #cluster: ArchiveCluster;
  readonly #appender = new ArchiveAppender();
  readonly #remover: ArchiveRemover;
  /** Changes of one archive, or of one log, come one after another within this process. */
  readonly #turns = new Turns();
  readonly #rounds = new RemovalRounds<BucketNote>();

  constructor(cluster: ArchiveCluster) {
    this.#cluster = cluster;
    this.#remover = new ArchiveRemover(cluster.clock, (log) => this.#appender.forget(log));
  }

  /** Adds messages: those of one archive in one step or several, each archive by itself. */
  async append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    if (messages.length === 0) return [];
    return await this.#cluster.run("archive messages in", async (session) => {
      const outcomes: ArchiveOutcome[] = [];
      const archives = Map.groupBy(messages.keys(), (i) => messages[i]!.archive);
      await forEach(archives, async ([archive, indices]) => {
        const some = indices.map((i) => messages[i]!);
        const found = await this.#turns.run(
          archive,
          () => this.#appender.append(session, archive, some, nowMs),
        );
        for (const [j, i] of indices.entries()) outcomes[i] = found[j]!;
      }, ARCHIVES_AT_ONCE);
      return outcomes;
    });
  }

  async read(
    archive: string,
    filter: ArchiveFilter,
    page: ArchivePageRequest,
  ): Promise<ArchivePage | undefined> {
    return await this.#cluster.run(
      "read an archive from",
      (session) => readPage(session, archive, filter, page),
    );
  }

  async count(archive: string, filter: ArchiveFilter, limit: number): Promise<number | undefined> {
    return await this.#cluster.run(
      "count messages in",
      (session) => countMessages(session, archive, filter, limit),
    );
  }

  async ends(
    archive: string,
  ): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined> {
    return await this.#cluster.run(
      "read an archive from",
      (session) => readEnds(session, archive),
    );
  }

  async preferences(archive: string): Promise<ArchivePreferences | undefined> {
    return await this.#cluster.run(
      "read the preferences of an archive from",
      async (session) => (await findArchive(session, archiveKeys(archive), "strong"))?.preferences,
    );
  }

  async setPreferences(archive: string, preferences: ArchivePreferences): Promise<void> {
    const action = "change the preferences of an archive in";
    const keys = archiveKeys(archive);
    await this.#cluster.run(action, async (session) => {
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
        const { log } = await findOrMakeArchive(session, keys, "serial");
        const outcome = await writePreferences(session, keys, log, preferences);
        if (outcome.kind === "applied") return;
        if (outcome.kind === "unknown" && !session.isPatient) throw outcome.failure;
        await session.pause(attempt); // repeating the change does no harm
      }
      throw storageError("conflict", { action, place: this.#cluster.place });
    });
  }

  async removeAll(bareJid: string, keep?: () => Promise<string | undefined>): Promise<void> {
    const owner = keyOf(bareJidOfArchive(bareJid));
    await this.#cluster.run(
      "remove an archive from",
      (session) => this.#remover.removeAll(session, owner, keep),
    );
  }

  async removeBefore(age: ArchiveAge, limit: number): Promise<number> {
    const { archive, sentBeforeMs } = age;
    return await this.#cluster.run("remove old messages from", async (session) => {
      if (archive !== undefined) {
        return await this.#turns.run(
          REMOVAL,
          () => this.#remover.removeOldOf(session, { archive, sentBeforeMs }, limit),
        );
      }
      const round = this.#rounds.of(age.host);
      let removed = 0;
      let isEnd = true;
      for await (const old of this.#remover.findOld(session, age, round.behind)) {
        isEnd = false;
        if (age.signal?.aborted === true || removed === limit || round.isGivenUp) break;
        const { log, bucket: number } = old.note;
        try {
          removed += await this.#turns.run(
            REMOVAL,
            () =>
              this.#remover.removeOldIn(session, { log, number, sentBeforeMs }, limit - removed),
          );
          if (removed === limit) break;
          await old.done();
          round.succeeded();
          isEnd = true;
        } catch (thrown) {
          round.failed(old.note, thrown);
          if (round.isGivenUp) break;
          isEnd = true;
        }
      }
      return round.end(removed, { isEnd });
    });
  }

  async clockMs(): Promise<number> {
    return await this.#cluster.run("read the clock of", async (session) => {
      const query = "SELECT toUnixTimestamp(now()) AS now FROM system.local";
      const [row] = await session.select(query, [], "near");
      return row!.integer("now"); // the table has one row
    });
  }
}

/** Removals of old messages take turns, so that each message is counted once. No archive has this name. */
const REMOVAL = "";
