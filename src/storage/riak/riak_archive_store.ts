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
  StoredMessage,
} from "../archive_store.ts";
import { archiveKeyOf } from "../archive_store.ts";
import { ArchiveAppender } from "./archive_appender.ts";
import { ArchiveDocuments, preferencesIn } from "./archive_documents.ts";
import { ArchiveFinder } from "./archive_finder.ts";
import { archiveNameOf, archivesPlace, headPlace, preferring } from "./archive_layout.ts";
import { ArchiveRemover, REMOVE } from "./archive_remover.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/**
 * The archives of all accounts in Riak (`archive_layout.ts`). Positions are given by a numbered
 * document: they become visible in their order, and whoever reads on gets each message once.
 */
export class RiakArchiveStore implements ArchiveStore {
  readonly searchesText = true;
  readonly #deps: RiakDeps;
  readonly #documents: ArchiveDocuments;
  readonly #appender: ArchiveAppender;
  readonly #finder: ArchiveFinder;
  readonly #remover: ArchiveRemover;

  constructor(deps: RiakDeps) {
    this.#deps = deps;
    this.#documents = new ArchiveDocuments(deps);
    this.#appender = new ArchiveAppender(this.#documents);
    this.#finder = new ArchiveFinder(this.#documents);
    this.#remover = new ArchiveRemover(this.#documents);
  }

  async append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    const outcomes: ArchiveOutcome[] = [];
    const byArchive = Map.groupBy(messages.entries(), ([, { archive }]) => archive);
    await this.#deps.client.forEach([...byArchive], async ([archive, own]) => {
      const found = await this.#appender.append(archive, own.map(([, message]) => message), nowMs);
      for (const [i, [index]] of own.entries()) outcomes[index] = found[i]!;
    });
    return outcomes;
  }

  async read(
    archive: string,
    filter: ArchiveFilter,
    { limit, from, after, before }: ArchivePageRequest,
  ): Promise<ArchivePage | undefined> {
    const query = await this.#finder.queryOf(archive, filter, { after, before });
    if (query === undefined) return undefined;
    const found = await this.#finder.find({ ...query, from, limit: limit + 1 });
    if (found === undefined) return undefined;
    const page = found.slice(0, limit);
    const { archiveName } = query;
    const messages = await this.#deps.client.forEach(
      from === "start" ? page : page.toReversed(),
      async ({ process, sequence, sentAtMs }): Promise<readonly StoredMessage[]> => {
        const map = await this.#documents.maps.read(archiveName, { process, sequence });
        // It may have been removed meanwhile.
        if (map?.stanza_register === undefined) return [];
        const stanza = Uint8Array.fromBase64(map.stanza_register);
        return [{ process, sequence, sentAtMs, stanza }];
      },
    );
    return { messages: messages.flat(), isComplete: found.length <= limit };
  }

  async count(archive: string, filter: ArchiveFilter, limit: number): Promise<number | undefined> {
    const query = await this.#finder.queryOf(archive, filter, {});
    if (query === undefined) return undefined;
    return await this.#finder.count({ ...query, from: "start", limit });
  }

  async ends(
    archive: string,
  ): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined> {
    const query = await this.#finder.queryOf(archive, {}, {});
    const end = async (from: "start" | "end") => {
      const [message] = query && await this.#finder.find({ ...query, from, limit: 1 }) || [];
      if (message === undefined) return undefined;
      const { process, sequence, sentAtMs } = message;
      return { process, sequence, sentAtMs };
    };
    const [first, last] = [await end("start"), await end("end")];
    return first && last && { first, last };
  }

  async preferences(archive: string): Promise<ArchivePreferences | undefined> {
    return preferencesIn(await this.#documents.head(archiveNameOf(archive)));
  }

  async setPreferences(
    archive: string,
    { byDefault, always, never }: ArchivePreferences,
  ): Promise<void> {
    await this.#appender.list(archive);
    const text = JSON.stringify({ byDefault, always, never });
    const action = "change the preferences of an archive in";
    const place = headPlace(archiveNameOf(archive));
    await this.#deps.documents.change(place, action, () => preferring(text));
  }

  async removeAll(bareJid: string, keep?: () => Promise<string | undefined>): Promise<void> {
    const { entries } = await this.#deps.documents.read(archivesPlace(bareJid), REMOVE);
    const kept = await keep?.();
    for (const creation of ["", ...entries.keys()]) {
      const archive = archiveKeyOf(bareJid, creation);
      if (archive !== kept) await this.#remover.clear(archiveNameOf(archive));
    }
  }

  async removeBefore(age: ArchiveAge, limit: number): Promise<number> {
    return await this.#remover.removeBefore(age, limit);
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
}
