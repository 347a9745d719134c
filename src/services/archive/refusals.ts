import type { ArchivedMessage } from "../../storage/mod.ts";

/** Messages that are tried alone between two pauses, while the store refuses each of them. */
const TRIED_ALONE = 8;
/** Rounds in which no message is tried whose archive has an earlier one that the store refuses. */
const ROUNDS_IN_ORDER = 4;

/** An entry of a writer. */
interface Entry {
  readonly message: Pick<ArchivedMessage, "archive">;
}

/**
 * Entries that a store has refused alone, without a name for the failure.
 *
 * The message may have caused the failure, or the whole store. Nobody can tell before the store
 * has taken another message. An entry that it refuses once more after that is given up. All others are
 * tried again.
 *
 * A round ends when every entry that may be tried was refused. The entries to try come from different
 * archives, so that archives keep their order. Only after some rounds a later one of the same archive
 * is tried as well: there may be no other.
 */
export class Refusals<E extends Entry> {
  /** Entries refused since the store took one for the last time. */
  readonly #refused = new Set<E>();
  /** Entries refused before the store took another one. */
  readonly #accused = new Set<E>();
  #rounds = 0;
  /** Entries refused since the last pause. */
  #tried = 0;
  #isAfterPause = false;
  #isRoundOver = false;

  /** Returns the entry to try alone, if there is one. Undefined: nothing has been refused. */
  next(waiting: Iterable<E>): E | "pause" | undefined {
    const [accused] = this.#accused;
    if (accused !== undefined) return accused;
    if (this.#tried >= TRIED_ALONE) return "pause";
    if (this.#refused.size === 0) return undefined;
    if (this.#isAfterPause) {
      // The oldest one is refused again, or all go on in their order.
      this.#isAfterPause = false;
      for (const oldest of waiting) return oldest;
    }
    const next = this.#untried(waiting);
    this.#isRoundOver = next === undefined;
    return next ?? "pause";
  }

  /** Notes a refusal. True when the entry is to be given up. */
  refused(entry: E): boolean {
    this.#tried++;
    if (this.#accused.has(entry)) return true;
    this.#refused.add(entry);
    return false;
  }

  /** Notes that the store has taken an entry. */
  taken(): void {
    for (const entry of this.#refused) this.#accused.add(entry);
    this.#refused.clear();
    this.#rounds = this.#tried = 0;
  }

  /**
   * Begins a pause. Returns the entries of a round that is over, if the store takes nothing whatever is
   * tried.
   */
  pause(): readonly E[] {
    this.#tried = 0;
    this.#isAfterPause = true;
    if (!this.#isRoundOver) return [];
    const refused = [...this.#refused];
    this.#refused.clear();
    this.#isRoundOver = false;
    return ++this.#rounds > ROUNDS_IN_ORDER ? refused : [];
  }

  /** Notes that an entry waits no longer. */
  forget(entry: E): void {
    this.#refused.delete(entry);
    this.#accused.delete(entry);
  }

  /** Forgets everything: the store is away, or nothing waits. */
  clear(): void {
    this.#refused.clear();
    this.#accused.clear();
    this.#rounds = this.#tried = 0;
    this.#isAfterPause = this.#isRoundOver = false;
  }

  #untried(waiting: Iterable<E>): E | undefined {
    const closed = new Set<string>();
    if (this.#rounds < ROUNDS_IN_ORDER) {
      for (const { message } of this.#refused) closed.add(message.archive);
    }
    for (const entry of waiting) {
      if (!this.#refused.has(entry) && !closed.has(entry.message.archive)) return entry;
    }
    return undefined;
  }
}
