import { createHash } from "node:crypto";
import type { OfflineStore } from "../storage/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";

/** Milliseconds for which a lock holds unless it is renewed, by the clock of the database. */
const HOLDS_MS = 60_000;
/** Milliseconds until nodes remove a lock that an import has left. */
const LEFT_MS = 86_400_000;
/** Bytes of the id of a claim. */
const ID_BYTES = 16;
/** Room for one lock: of two imports that make it, one finds it there. */
const BOUNDS = { maxMessages: 1, maxBytes: 100 };

/** Part of the store of messages that a lock needs. */
type LockStore = Pick<OfflineStore, "keep" | "claim" | "claimed" | "renew" | "remove">;

/** The import that takes a lock. */
export interface LockOwner {
  /** Text that no other import has. It keeps its lock when it is continued. */
  readonly importId: string;
  /** Wall-clock milliseconds. */
  readonly nowMs: number;
}

/**
 * A lock that keeps other imports from giving an account messages. It ends by itself some time after
 * its import was killed.
 *
 * It is a message that one import has claimed: every database can tell who claims a message, by a clock
 * of its own. The message waits under a name with a space, which no account has.
 */
export class AccountLock {
  readonly #store: LockStore;
  readonly #name: string;
  readonly #id: Uint8Array;

  private constructor(store: LockStore, name: string, id: Uint8Array) {
    this.#store = store;
    this.#name = name;
    this.#id = id;
  }

  /**
   * Takes the lock of an account.
   *
   * @param store messages of the account's domain
   * @returns undefined when another import has it
   * @throws CausewayError with a code `storage/…`
   */
  static async take(
    store: LockStore,
    { localpart, domainpart, text }: BareJid,
    { importId, nowMs }: LockOwner,
  ): Promise<AccountLock | undefined> {
    const name = `import ${localpart}`;
    const id = createHash("sha256").update(`${importId} ${text}`).digest().subarray(0, ID_BYTES);
    const message = {
      sender: domainpart,
      stanza: new TextEncoder().encode("<message/>"),
      sentAtMs: nowMs,
      expiresAtMs: nowMs + LEFT_MS,
    };
    await store.keep(name, [message], BOUNDS);
    // At the beginning of time, no lock was left for too long.
    await store.claim(name, { id, nowMs: 0, forMs: HOLDS_MS });
    const lock = new AccountLock(store, name, id);
    return await lock.renew() ? lock : undefined;
  }

  /**
   * Holds the lock for longer; false when another import has it meanwhile.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async renew(): Promise<boolean> {
    await this.#store.renew([{ localpart: this.#name, id: this.#id }], HOLDS_MS);
    // Looked at behind the renewal: until that ends, nobody takes the lock away.
    return (await this.#claimed()).length > 0;
  }

  /** @throws CausewayError with a code `storage/…`; then it ends by itself */
  async release(): Promise<void> {
    await this.#store.remove(this.#name, this.#id, await this.#claimed());
  }

  async #claimed(): Promise<readonly number[]> {
    const found = await this.#store.claimed(this.#name, this.#id, { after: 0, limit: 1 });
    return found.map(({ sequence }) => sequence);
  }
}
