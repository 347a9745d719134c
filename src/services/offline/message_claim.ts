import type { OfflineStore } from "../../storage/mod.ts";
import type { Fate } from "../../xmpp/mod.ts";

/** Callbacks of a claim. */
export interface ClaimEvents {
  /** Messages of the claim wait to be removed or released: `flush` is to be called soon. */
  changed(): void;
  /** A client has the message, as far as the server can know. */
  delivered(): void;
  /** Nobody has the message: it stays in the store. */
  returned(): void;
}

/**
 * One node's claim on the waiting messages of an account, while they are on their way to a client. It
 * is the fate of each of them.
 *
 * The order of the steps loses nothing. The messages are claimed, then delivered, and removed when
 * the client has them: a client with stream management has acknowledged them, another was written
 * them. A node that dies in between leaves them in the store, and they are delivered again when the
 * claim has ended. A client may therefore get a message twice if the node dies after the delivery and
 * before the removal, or if the store fails for longer than the claim holds. To remove first would
 * lose the message in the same places.
 */
export class MessageClaim implements Fate {
  readonly isSentOnce = true;
  readonly store: OfflineStore;
  readonly localpart: string;
  readonly id: Uint8Array;
  readonly #events: ClaimEvents;
  readonly #underWay = new Set<number>();
  readonly #toRemove: number[] = [];
  readonly #toRelease: number[] = [];
  #isFinished = false;
  /** Resolves when all flushes so far have ended, whether or not they succeeded. */
  #flushed = Promise.resolve();

  constructor(store: OfflineStore, localpart: string, id: Uint8Array, events: ClaimEvents) {
    this.store = store;
    this.localpart = localpart;
    this.id = id;
    this.#events = events;
  }

  /** True when no message of the claim needs anything any more. */
  get isDone(): boolean {
    return this.#isFinished && this.#underWay.size === 0 && this.#toRemove.length === 0 &&
      this.#toRelease.length === 0;
  }

  /** Notes that no further message of the claim goes to a client. */
  finish(): void {
    this.#isFinished = true;
  }

  /** Notes that a message is on its way to a client. */
  sending(sequence: number): void {
    this.#underWay.add(sequence);
  }

  /** Notes that no client took the message. */
  unsent(sequence: number): void {
    this.#underWay.delete(sequence);
  }

  /** The client has the message. */
  settle(sequence: number): void {
    if (!this.#underWay.delete(sequence)) return;
    this.#toRemove.push(sequence);
    this.#events.delivered();
    this.#events.changed();
  }

  /** No client has the message. */
  stays(sequence: number): void {
    if (!this.#underWay.delete(sequence)) return;
    this.#toRelease.push(sequence);
    this.#events.returned();
    this.#events.changed();
  }

  /** Leaves messages to others that no client was sent. */
  giveBack(sequences: readonly number[]): void {
    if (sequences.length === 0) return;
    this.#toRelease.push(...sequences);
    this.#events.changed();
  }

  /**
   * Removes and releases what waits for it, once an earlier call has ended. What fails is tried again
   * with the next call.
   *
   * @throws CausewayError with a code `storage/…`
   */
  flush(): Promise<void> {
    const flush = this.#flushed.then(() => this.#flushNow());
    this.#flushed = flush.catch(() => {}); // its own caller is told
    return flush;
  }

  async #flushNow(): Promise<void> {
    const removed = [...this.#toRemove];
    if (removed.length > 0) await this.store.remove(this.localpart, this.id, removed);
    this.#toRemove.splice(0, removed.length);
    const released = [...this.#toRelease];
    if (released.length > 0) await this.store.release(this.localpart, this.id, released);
    this.#toRelease.splice(0, released.length);
  }
}
