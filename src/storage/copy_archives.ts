import { createHash } from "node:crypto";
import type { Clock } from "../base/mod.ts";
import { peerIn, searchableText } from "./archive_content.ts";
import type {
  ArchiveEnd,
  ArchiveId,
  ArchivePeer,
  ArchivePreferences,
  ArchiveStore,
  StoredMessage,
} from "./archive_store.ts";
import { bareJidOfArchive, DEFAULT_ARCHIVE_PREFERENCES } from "./archive_store.ts";
import type { CopyUnitsOptions, UnitCounts } from "./sql/copy_units.ts";
import { MAX_KEPT_NAMES } from "./sql/copy_units.ts";
import { ChecksumSum } from "./sql/unit_summary.ts";
import type { UnitSummary } from "./sql/unit_summary.ts";
import { storageError } from "./storage_error.ts";

/** Archives that are copied at once. */
const ARCHIVES_AT_ONCE = 6;
/** Messages of one page, and bytes after which the next one has fewer of them. */
const [PAGE_MESSAGES, LARGE_PAGE_BYTES] = [256, 4_000_000];
/** Attempts at an archive from which messages are removed meanwhile. */
const MAX_ATTEMPTS = 5;
/** Messages that one step of a removal removes. */
const REMOVED_AT_ONCE = 1_000;
/** Most messages of an archive: search servers count no further. */
const MOST_MESSAGES = 2_147_483_647;

/** An archive to copy. */
export interface CopiedArchive {
  readonly archive: string;
  /**
   * Keys of other archives of the same bare JID. One is left alone when this one is removed; beside
   * several this one is not removed. @default none
   */
  readonly others?: readonly string[];
}

/** A copy of archives from one database to another. */
export interface ArchiveCopyOptions {
  readonly from: ArchiveStore;
  readonly to: ArchiveStore;
  /** Name of the source in messages. */
  readonly place: string;
  /** The archives, each once. */
  readonly archives: AsyncIterable<CopiedArchive>;
  /**
   * Returns the other side of a message; undefined when the message shows none.
   * @default as in archives of people
   */
  peerOf?(stanza: Uint8Array, owner: string): ArchivePeer | undefined;
  /** As that of other data. An archive is replaced whole. */
  readonly differing: CopyUnitsOptions["differing"];
  /**
   * `count`: archives with the same number of messages and the same ends are taken to be the same, and
   * are not read.
   */
  readonly verifies: "checksum" | "count";
  readonly clock: Clock;
  /** Called after each page with the number of messages that were copied; awaited. */
  progress?(messages: number): Promise<void> | void;
}

/** Result of copying archives. The numbers are those of messages, but for `kept`: archives. */
export interface ArchiveCopyResult extends UnitCounts {
  readonly source: UnitSummary;
  readonly destination: UnitSummary;
}

/** Messages of one archive, or of many, as they are compared. */
class Summary {
  units = 0;
  readonly #sum = new ChecksumSum();

  /** Adds a message. Its place in the archive counts: it is given by the message before it. */
  message(archive: string, before: ArchiveId | undefined, message: StoredMessage): void {
    const { process, sequence, sentAtMs, stanza } = message;
    const place = [archive, before?.process, before?.sequence, process, sequence, sentAtMs];
    this.#sum.add(createHash("sha256").update(JSON.stringify(place)).update(stanza).digest());
    this.units++;
  }

  /** Adds what is known of an archive that is not read. */
  ends(archive: string, units: number, { first, last }: Ends): void {
    this.#sum.add(
      createHash("sha256").update(JSON.stringify([archive, units, first, last])).digest(),
    );
    this.units += units;
  }

  preferences(archive: string, preferences: string): void {
    if (preferences === USUAL) return;
    this.#sum.add(createHash("sha256").update(JSON.stringify([archive, preferences])).digest());
  }

  add(other: Summary): void {
    this.units += other.units;
    this.#sum.add(other.#sum.bytes);
  }

  equals(other: Summary): boolean {
    return this.units === other.units && this.checksum === other.checksum;
  }

  get checksum(): string {
    return this.#sum.text;
  }
}

interface Ends {
  readonly first: ArchiveEnd;
  readonly last: ArchiveEnd;
}

/** State of one archive in one database. */
interface ArchiveState {
  readonly ends: Ends | undefined;
  readonly preferences: string;
}

/** Thrown when a message that a copy has read is gone: the copy of its archive begins again. */
class Moved extends Error {}

/** Preferences of an archive whose owner has set none, or the usual ones. */
const USUAL = textOf(undefined);

/**
 * Copies archives message by message, in the order of each archive. A copy that was interrupted is
 * continued by copying again: it goes on behind the last message that the destination has. Afterwards
 * both sides of each archive are read, up to the last message that was copied: so the service may run
 * and add others.
 *
 * @throws CausewayError with a code `storage/…`; what was copied until then stays
 */
export async function copyArchives(options: ArchiveCopyOptions): Promise<ArchiveCopyResult> {
  const copy = new ArchiveCopy(options);
  let some: CopiedArchive[] = [];
  for await (const archive of options.archives) {
    some.push(archive);
    if (some.length < ARCHIVES_AT_ONCE) continue;
    await copy.archives(some);
    some = [];
  }
  await copy.archives(some);
  return copy.result;
}

class ArchiveCopy {
  readonly #options: ArchiveCopyOptions;
  readonly #source = new Summary();
  readonly #destination = new Summary();
  readonly #counts = { added: 0, same: 0, replaced: 0, removed: 0, kept: 0 };
  readonly #keptNames: string[] = [];
  #done = 0;

  constructor(options: ArchiveCopyOptions) {
    this.#options = options;
  }

  get result(): ArchiveCopyResult {
    const summaryOf = ({ units, checksum }: Summary) => ({ units, checksum });
    return {
      ...this.#counts,
      keptNames: this.#keptNames,
      source: summaryOf(this.#source),
      destination: summaryOf(this.#destination),
    };
  }

  /** Copies some archives. All of them have come to an end when it rejects. */
  async archives(archives: readonly CopiedArchive[]): Promise<void> {
    const outcomes = await Promise.allSettled(archives.map((archive) => this.#archive(archive)));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  async #archive(archive: CopiedArchive): Promise<void> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      try {
        return await this.#once(archive);
      } catch (thrown) {
        if (!(thrown instanceof Moved)) throw thrown;
      }
    }
    throw storageError("conflict", { action: "copy an archive from", place: this.#options.place });
  }

  async #once(copied: CopiedArchive): Promise<void> {
    const { archive } = copied;
    const { from, to, verifies } = this.#options;
    const differing = this.#differingOf(copied);
    const mine = await stateOf(from, archive);
    let theirs = await stateOf(to, archive);
    if (mine.ends === undefined && mine.preferences === USUAL) {
      return await this.#onlyThere(copied, theirs);
    }
    if (verifies === "count" && await this.#areAlike(archive, mine, theirs)) return;
    const replaces = differing !== "keep";
    const hasOthers = theirs.preferences !== USUAL && theirs.preferences !== mine.preferences;
    if (!replaces && (hasOthers || !await this.#continues(archive, mine, theirs))) {
      return await this.#keep(archive, mine, theirs);
    }
    const before = theirs.ends === undefined ? 0 : await countOf(to, archive);
    let removed = 0;
    if (replaces) {
      removed = await this.#trim(archive, mine, theirs);
      if (removed > 0) theirs = await stateOf(to, archive);
    }
    let { source, destination } = await this.#carry(archive, mine, theirs);
    let replaced = 0;
    if (!source.equals(destination) && replaces) {
      replaced = before - removed;
      await this.#remove(copied);
      theirs = { ends: undefined, preferences: USUAL };
      ({ source, destination } = await this.#carry(archive, mine, theirs));
    }
    this.#source.add(source);
    this.#destination.add(destination);
    this.#counts.removed += removed;
    this.#counts.replaced += replaced;
    if (replaced > 0) this.#counts.added += Math.max(0, destination.units - replaced);
    else {
      this.#counts.same += before - removed;
      this.#counts.added += Math.max(0, destination.units - before + removed);
    }
    if (!source.equals(destination)) this.#noteKept(archive);
  }

  /** Handles an archive that the source has not. */
  async #onlyThere(copied: CopiedArchive, theirs: ArchiveState): Promise<void> {
    const { archive } = copied;
    const { to } = this.#options;
    if (theirs.ends === undefined && theirs.preferences === USUAL) return;
    if (this.#differingOf(copied) === "mirror") {
      const units = await countOf(to, archive);
      await this.#remove(copied);
      this.#counts.removed += units;
      return;
    }
    const summary = await this.#summaryOf(to, archive, theirs.preferences);
    this.#destination.add(summary);
  }

  /** Stores can leave one archive of a bare JID alone, as they remove another one. */
  #differingOf({ others = [] }: CopiedArchive): CopyUnitsOptions["differing"] {
    return others.length > 1 ? "keep" : this.#options.differing;
  }

  /** Removes an archive at the destination. That of the account that has its name elsewhere stays. */
  async #remove({ archive, others: [other] = [] }: CopiedArchive): Promise<void> {
    const keep = other === undefined ? undefined : () => Promise.resolve(other);
    await this.#options.to.removeAll(bareJidOfArchive(archive), keep);
  }

  /** True for an archive that has the same number of messages and the same ends at both sides. */
  async #areAlike(archive: string, mine: ArchiveState, theirs: ArchiveState): Promise<boolean> {
    const { from, to } = this.#options;
    if (mine.preferences !== theirs.preferences) return false;
    if (JSON.stringify(mine.ends) !== JSON.stringify(theirs.ends)) return false;
    if (mine.ends !== undefined) {
      const [units, others] = [await countOf(from, archive), await countOf(to, archive)];
      if (units !== others) return false;
      for (const side of [this.#source, this.#destination]) side.ends(archive, units, mine.ends);
      this.#counts.same += units;
    }
    for (const side of [this.#source, this.#destination]) {
      side.preferences(archive, mine.preferences);
    }
    return true;
  }

  /**
   * True when the source's messages may come behind those of the destination: it has the last one of
   * them, or it has removed them because of their age.
   */
  async #continues(archive: string, mine: ArchiveState, theirs: ArchiveState): Promise<boolean> {
    const [first, last] = [mine.ends?.first, theirs.ends?.last];
    if (first === undefined || last === undefined || last.sentAtMs < first.sentAtMs) return true;
    return await has(this.#options.from, archive, last);
  }

  async #keep(archive: string, mine: ArchiveState, theirs: ArchiveState): Promise<void> {
    const { from, to } = this.#options;
    const source = await this.#summaryOf(from, archive, mine.preferences);
    const destination = await this.#summaryOf(to, archive, theirs.preferences);
    this.#source.add(source);
    this.#destination.add(destination);
    this.#noteKept(archive);
  }

  #noteKept(archive: string): void {
    this.#counts.kept++;
    if (this.#keptNames.length < MAX_KEPT_NAMES) this.#keptNames.push(bareJidOfArchive(archive));
  }

  /** Removes messages at the destination that the source has removed because of their age. */
  async #trim(archive: string, mine: ArchiveState, theirs: ArchiveState): Promise<number> {
    const { to } = this.#options;
    const [first, other] = [mine.ends?.first, theirs.ends?.first];
    if (first === undefined || other === undefined || isSame(first, other)) return 0;
    const age = { archive, sentBeforeMs: first.sentAtMs };
    let removed = 0;
    for (;;) {
      const some = await to.removeBefore(age, REMOVED_AT_ONCE);
      if (some === 0) return removed;
      removed += some;
    }
  }

  /** Copies what the destination lacks, and compares both sides. */
  async #carry(archive: string, mine: ArchiveState, theirs: ArchiveState) {
    const { from, to } = this.#options;
    if (theirs.preferences !== mine.preferences) {
      // First: the service may write to the destination already.
      const wished = mine.preferences === USUAL ? undefined : JSON.parse(mine.preferences);
      await to.setPreferences(archive, wished ?? DEFAULT_ARCHIVE_PREFERENCES);
    }
    const last = theirs.ends?.last;
    const known = last !== undefined && await has(from, archive, last) ? last : undefined;
    let source = new Summary();
    let end: ArchiveId | undefined = known;
    for await (const page of pagesOf(from, archive, known)) {
      await this.#append(archive, page);
      for (const message of page) {
        source.message(archive, end, message);
        end = message;
      }
      this.#done += page.length;
      await this.#options.progress?.(this.#done);
    }
    // The messages behind one of the destination's are only a part of the archive.
    if (known === undefined) source.preferences(archive, mine.preferences);
    else source = await this.#summaryOf(from, archive, mine.preferences, end);
    const preferences = (await stateOf(to, archive)).preferences;
    return { source, destination: await this.#summaryOf(to, archive, preferences) };
  }

  async #append(archive: string, page: readonly StoredMessage[]): Promise<void> {
    const { to, clock, peerOf = peerIn } = this.#options;
    const owner = bareJidOfArchive(archive);
    const messages = page.map(({ process, sequence, sentAtMs, stanza }) => ({
      archive,
      process,
      sequence,
      peer: peerOf(stanza, owner) ?? { bare: "", resourcepart: "" },
      sentAtMs,
      visibleAtMs: sentAtMs,
      stanza,
      isCopied: true,
      ...(to.searchesText ? { text: searchableText({ bytes: stanza }) } : {}),
    }));
    // A clock that is behind would change the times of sending.
    const nowMs = Math.max(clock.wallMs(), ...page.map(({ sentAtMs }) => sentAtMs));
    await to.append(messages, nowMs);
  }

  /** Reads an archive, up to a message where one is given. */
  async #summaryOf(
    store: ArchiveStore,
    archive: string,
    preferences: string,
    upTo?: ArchiveId,
  ): Promise<Summary> {
    const summary = new Summary();
    summary.preferences(archive, preferences);
    let before: ArchiveId | undefined;
    for await (const page of pagesOf(store, archive, undefined)) {
      for (const message of page) {
        summary.message(archive, before, message);
        before = message;
        if (upTo !== undefined && isSame(message, upTo)) return summary;
      }
    }
    return summary;
  }
}

/** Reads an archive behind a message, page by page. */
async function* pagesOf(
  store: ArchiveStore,
  archive: string,
  behind: ArchiveId | undefined,
): AsyncGenerator<readonly StoredMessage[]> {
  let limit = PAGE_MESSAGES;
  for (let after = behind;;) {
    const page = await store.read(archive, {}, { limit, from: "start", after });
    if (page === undefined) throw new Moved();
    const { messages, isComplete } = page;
    if (messages.length > 0) yield messages;
    if (isComplete) return;
    after = messages.at(-1) ?? after;
    const bytes = messages.reduce((sum, { stanza }) => sum + stanza.length, 0);
    const fitting = Math.floor(LARGE_PAGE_BYTES * messages.length / Math.max(1, bytes));
    limit = Math.max(1, Math.min(PAGE_MESSAGES, fitting));
  }
}

async function stateOf(store: ArchiveStore, archive: string): Promise<ArchiveState> {
  return {
    ends: await store.ends(archive),
    preferences: textOf(await store.preferences(archive)),
  };
}

async function countOf(store: ArchiveStore, archive: string): Promise<number> {
  return await store.count(archive, {}, MOST_MESSAGES) ?? 0;
}

async function has(store: ArchiveStore, archive: string, after: ArchiveId): Promise<boolean> {
  return await store.read(archive, {}, { limit: 1, from: "start", after }) !== undefined;
}

function isSame(one: ArchiveId, other: ArchiveId): boolean {
  return one.process === other.process && one.sequence === other.sequence;
}

/** Returns a text that two preferences share if they mean the same. */
function textOf(preferences: ArchivePreferences | undefined): string {
  const { byDefault, always, never } = preferences ?? DEFAULT_ARCHIVE_PREFERENCES;
  return JSON.stringify({ byDefault, always: always.toSorted(), never: never.toSorted() });
}
