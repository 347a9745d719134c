import { setImmediate } from "node:timers";
import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError, describeError, Pauses } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchiveStore } from "../../storage/mod.ts";
import { Refusals } from "./refusals.ts";
import type { Placed } from "./waiting_entries.ts";
import { WaitingEntries } from "./waiting_entries.ts";

/** Messages of a transaction where the store names no number. */
const USUAL_AT_ONCE = 256;
/** Bytes of stanzas after which a transaction takes no more. */
const FULL_BYTES = 1_000_000;
/** Milliseconds between two attempts at a store that fails. */
export const RETRY_MS = 500;
/** Milliseconds after which a message that is on its way no longer waits for a store that is slow or fails. */
export const GRACE_MS = 1_000;

/**
 * Failures of the store that may be those of one message. A replica of Cassandra fails in the same way
 * at a message that is too large for it as at a broken disk.
 */
const DOUBTFUL: ReadonlySet<string> = new Set(["storage/io", "storage/garbled"]);
/** Failures that do not pass by themselves: those of a message, an archive or the whole store. */
const LASTING: ReadonlySet<string> = new Set(["storage/failed", "storage/corrupt"]);
/**
 * Attempts at a message alone that may fail so, with a pause after each: ten seconds, in which a store
 * may recover or hand over to another server.
 */
const DOUBTFUL_ATTEMPTS = 20;

/** Milliseconds for which messages gather that nobody waits for. */
export const GATHERING_MS = 30;

/** A message on its way into its archive. */
export interface ArchiveEntry extends Placed {
  readonly message: ArchivedMessage;
  /** False when nobody waits for it. @default true */
  readonly isAwaited?: boolean;
  /** It has waited for so long that those who wait for it go on. It stays on its way. */
  late(): void;
  /** The store refuses whatever is tried, this too, without a name for the failure. It stays on its way. */
  refused?(): void;
  /**
   * Its way is over. Whoever waits for that goes on within this call, before the entries that follow
   * in the archive are done. `failed`: it is not in its archive, as the store cannot hold it, or as it
   * was cancelled, or as the writer was closed.
   */
  done(outcome: ArchiveOutcome | "failed"): void;
}

/** Objects behind a writer. */
export interface ArchiveWriterDeps {
  readonly store: ArchiveStore;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called when entries are done, so that there is room for others. @default nobody waits for it */
  readonly freed?: () => void;
}

/**
 * Writes messages to the archives of one store, in the order in which they came: one transaction at a
 * time, with all that has gathered meanwhile. Messages that nobody waits for gather for some time, or
 * until one comes that somebody waits for. While the store fails, the messages wait, and are tried
 * again: half as many at once, if the store did not answer in time. The caller bounds how many there
 * are.
 *
 * A message that is too large for the store is given up at once. Other messages that the store cannot
 * hold fail without a name for the failure, or as a broken disk does. So does everything while some
 * servers have no quorum or no memory. `Refusals` tells the two apart.
 */
export class ArchiveWriter {
  readonly #deps: ArchiveWriterDeps;
  /** Entries that are not done. */
  readonly #waiting = new WaitingEntries<ArchiveEntry>();
  /** Entries of the present transaction; they are the first ones of those that wait. */
  #underWay: ReadonlySet<ArchiveEntry> = new Set();
  /** Entries of the present transaction that are not to be tried again. */
  readonly #cancelled = new Set<ArchiveEntry>();
  readonly #refusals = new Refusals<ArchiveEntry>();
  /** Attempts at entries alone that failed in a doubtful way. */
  readonly #doubts = new WeakMap<ArchiveEntry, number>();
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  /** Place of the last entry for which no others are to gather first. */
  #lastAwaited = -1;
  #cancelGathering: CancelTimer | undefined;
  #cancelGrace: CancelTimer | undefined;
  readonly #pauses: Pauses;
  /** True since an entry has waited for too long: no other waits, until the store takes some. */
  #isLate = false;
  /** Messages of one transaction. */
  #most: number;
  /** Messages of one transaction while none fails. */
  readonly #atOnce: number;

  constructor(deps: ArchiveWriterDeps) {
    this.#deps = deps;
    this.#pauses = new Pauses(deps.clock);
    this.#atOnce = deps.store.batchMessages ?? USUAL_AT_ONCE;
    this.#most = this.#atOnce;
  }

  /** Entries that are not done. */
  get pending(): number {
    return this.#waiting.size;
  }

  /** True while the store has not taken anything for too long: nobody waits for it. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Takes an entry over. One of its callbacks may be called at once. */
  add(entry: ArchiveEntry): void {
    if (this.#pauses.isClosed) return entry.done("failed");
    const isLate = this.#isLate;
    const dueMs = isLate ? undefined : this.#deps.clock.monotonicMs() + GRACE_MS;
    this.#waiting.add(entry, dueMs);
    if (isLate) entry.late();
    this.#watch();
    if (entry.isAwaited !== false) this.begin();
    else if (this.#mayBegin) this.#start();
    else if (!this.#isWriting) this.#gather();
  }

  /** Begins to write all that waits. */
  begin(): void {
    this.#lastAwaited = this.#waiting.lastPlace;
    if (this.#waiting.size > 0) this.#start();
  }

  /** Returns the entries of an archive that are not done. */
  entriesOf(archive: string): readonly ArchiveEntry[] {
    const entries: ArchiveEntry[] = [];
    for (const entry of this.#waiting) if (entry.message.archive === archive) entries.push(entry);
    return entries;
  }

  /** True when entries wait, and no others are to gather first. */
  get #mayBegin(): boolean {
    const { size, firstPlace } = this.#waiting;
    return size >= this.#atOnce || (size > 0 && firstPlace <= this.#lastAwaited);
  }

  #start(): void {
    this.#cancelGathering?.();
    this.#cancelGathering = undefined;
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#writing = this.#write();
  }

  #gather(): void {
    this.#cancelGathering ??= this.#deps.clock.after(GATHERING_MS, () => {
      this.#cancelGathering = undefined;
      this.begin();
    });
  }

  /**
   * Takes an entry back. Returns false when a transaction has it: it is done when that ends, and
   * has failed if that fails.
   */
  cancel(entry: ArchiveEntry): boolean {
    if (this.#underWay.has(entry)) {
      this.#cancelled.add(entry);
      return false;
    }
    if (!this.#waiting.delete(entry)) return false;
    this.#refusals.forget(entry);
    return true;
  }

  /** Waits until all entries are done. Those that the store does not take now have failed. */
  async close(): Promise<void> {
    this.#pauses.close();
    this.begin();
    while (this.#isWriting) await this.#writing;
  }

  async #write(): Promise<void> {
    await endOfTurn();
    while (this.#mayBegin) {
      const batch = this.#nextBatch();
      if (batch === "pause") {
        for (const entry of this.#refusals.pause()) entry.refused?.();
        await this.#waitOrFail();
        continue;
      }
      this.#underWay = new Set(batch);
      const result = await this.#append(batch);
      const outcomes = result === "doubtful" ? this.#judge(batch) : result;
      this.#underWay = new Set();
      const cancelled = [...this.#cancelled];
      this.#cancelled.clear();
      if (typeof outcomes === "string") {
        this.#finish(cancelled, () => "failed");
        this.begin(); // those that are to be tried again have gathered for long enough
      }
      if (outcomes === "refused" || outcomes === "too-large") {
        this.#refuse(batch, outcomes);
        continue;
      }
      if (outcomes === "fails") {
        this.#refusals.clear(); // they may have failed because of the store
        await this.#waitOrFail();
        continue;
      }
      this.#most = Math.min(2 * this.#most, this.#atOnce);
      if (outcomes.includes("stored")) this.#refusals.taken();
      this.#isLate = false;
      this.#finish(batch, (i) => outcomes[i]!);
      if (this.#mayBegin) await endOfTurn();
    }
    this.#refusals.clear();
    this.#isLate = false; // what it was late with was stored, has failed or was taken back
    this.#isWriting = false; // at once: the next entry begins anew
    if (this.#waiting.size > 0) this.#gather();
  }

  #nextBatch(): readonly ArchiveEntry[] | "pause" {
    const next = this.#refusals.next(this.#waiting);
    if (next !== undefined) return next === "pause" ? next : [next];
    const batch: ArchiveEntry[] = [];
    let bytes = 0;
    for (const entry of this.#waiting) {
      if (batch.length === this.#most || bytes >= FULL_BYTES) break;
      batch.push(entry);
      bytes += entry.message.stanza.length;
    }
    return batch;
  }

  /**
   * `too-large`: one message is the reason. `refused`: one message or the whole store is. `fails`: the
   * store may take it later. `doubtful`: one of the last two.
   */
  async #append(
    batch: readonly ArchiveEntry[],
  ): Promise<readonly ArchiveOutcome[] | "too-large" | "refused" | "fails" | "doubtful"> {
    const { store, clock, logger } = this.#deps;
    try {
      return await store.append(batch.map(({ message }) => message), clock.wallMs());
    } catch (thrown) {
      logger.debug("archive.not-stored", { error: describeError(thrown) });
      if (!(thrown instanceof CausewayError)) return "refused";
      // It may never get done with so many in its time.
      if (thrown.code === "storage/timeout") this.#most = Math.ceil(batch.length / 2);
      if (thrown.code === "storage/value-too-large") return "too-large";
      if (LASTING.has(thrown.code)) return "refused";
      return DOUBTFUL.has(thrown.code) ? "doubtful" : "fails";
    }
  }

  /** Takes the store for the reason of a doubtful failure at first, and one message after that. */
  #judge(batch: readonly ArchiveEntry[]): "refused" | "fails" {
    const [entry] = batch;
    if (batch.length > 1 || entry === undefined) return "refused"; // each is tried alone
    const attempts = (this.#doubts.get(entry) ?? 0) + 1;
    this.#doubts.set(entry, attempts);
    return attempts > DOUBTFUL_ATTEMPTS ? "refused" : "fails";
  }

  /** Tries each message of a batch alone. Gives up the one that the store alone cannot hold. */
  #refuse(batch: readonly ArchiveEntry[], why: "refused" | "too-large"): void {
    this.#most = 1;
    const [entry] = batch;
    if (batch.length > 1 || entry === undefined || !this.#waiting.has(entry)) return;
    // There is no time to find out when the node stops.
    if (why === "too-large" || this.#refusals.refused(entry) || this.#pauses.isClosed) {
      this.#finish(batch, () => "failed");
    }
  }

  /** Waits until the next attempt. A writer that is closed makes none. */
  async #waitOrFail(): Promise<void> {
    if (this.#pauses.isClosed) this.#finish([...this.#waiting], () => "failed");
    else if (this.#waiting.size > 0) await this.#pauses.pause(RETRY_MS);
  }

  #finish(
    entries: readonly ArchiveEntry[],
    outcomeOf: (index: number) => ArchiveOutcome | "failed",
  ): void {
    for (const entry of entries) {
      this.#waiting.delete(entry);
      this.#refusals.forget(entry);
    }
    for (const [i, entry] of entries.entries()) entry.done(outcomeOf(i));
    if (entries.length > 0) this.#deps.freed?.();
    this.#watch();
  }

  /** Lets those go who wait, once the oldest entry has waited for too long. */
  #watch(): void {
    const dueMs = this.#waiting.firstDueMs;
    if (dueMs === undefined) {
      this.#cancelGrace?.();
      this.#cancelGrace = undefined;
      return;
    }
    this.#cancelGrace ??= this.#deps.clock.after(dueMs - this.#deps.clock.monotonicMs(), () => {
      this.#cancelGrace = undefined;
      const { firstDueMs = Infinity } = this.#waiting;
      if (firstDueMs <= this.#deps.clock.monotonicMs()) this.#letGo();
      else this.#watch();
    });
  }

  #letGo(): void {
    this.#isLate = true;
    for (const entry of this.#waiting.letGo()) entry.late();
  }
}

/**
 * Waits for the end of this turn of the event loop. All messages of the turn go into one transaction,
 * and those that the last one has let go are written to their clients first: a database on the same
 * machine takes the processor as soon as it gets work.
 */
function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
