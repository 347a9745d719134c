import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Counter, Logger } from "../../observe/mod.ts";
import type { ArchiveStore } from "../../storage/mod.ts";
import { archiveKeyOf } from "../../storage/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";

/** Milliseconds from the first message until the accounts of all are looked up. */
const CHECK_MS = 10_000;
/**
 * Archives that may wait to be looked up. Beyond that they are looked up at once. While that goes on,
 * no more are noted: the next message of such an archive has it looked up.
 */
const MOST_NOTED = 50_000;
/** Milliseconds by which the clock of another node may be ahead. */
const CLOCK_SKEW_MS = 86_400_000;
/** Accounts that one query looks up. */
const ACCOUNTS_AT_ONCE = 500;
/** Milliseconds that the last look of a node may take. */
const CLOSE_MS = 2_000;
/** Messages that one call removes. */
const REMOVED_AT_ONCE = 10_000;

/** Objects behind `DepartedAccounts`. */
export interface DepartedAccountsDeps {
  /** Returns those of at most 500 localparts that have an account at a host, with its creation. */
  existing(host: string, localparts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * True for a host whose archives stay when their accounts are gone.
   * @default no host
   */
  keepsAll?(host: string): boolean;
  storeOf(host: string): ArchiveStore;
  /** Counts the messages that are removed. */
  readonly removed: Pick<Counter, "inc">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Removes what was stored in an archive after its account was deleted.
 *
 * A message may be on its way into an archive while the account is deleted. So each archive is looked
 * up once after a message was stored in it. An account that was there then is deleted later, with all
 * that is in its archive.
 *
 * An archive whose key has no creation is left alone: nothing there tells a message that came after the
 * account from its whole history. So are the archives of accounts in a directory. It may fail to find
 * an account that exists, while it is filled or its filter is wrong.
 */
export class DepartedAccounts {
  readonly #deps: DepartedAccountsDeps;
  /** Archives that got messages since the last look: the localparts, by the hosts and the keys. */
  #noted = new Map<string, Map<string, string>>();
  #count = 0;
  #cancel: CancelTimer | undefined;
  #looking: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: DepartedAccountsDeps) {
    this.#deps = deps;
  }

  /** Notes that a message was stored in an archive of an account, which is given by its key. */
  note({ localpart, domainpart, text }: BareJid, archive: string): void {
    if (archive === text || this.#deps.keepsAll?.(domainpart) === true) return;
    this.#add(domainpart, archive, localpart);
    if (this.#looking !== undefined || this.#isClosed) return;
    if (this.#count >= MOST_NOTED) return this.#begin();
    this.#cancel ??= this.#deps.clock.after(CHECK_MS, () => this.#begin());
  }

  #add(host: string, archive: string, localpart: string): void {
    let ofHost = this.#noted.get(host);
    if (ofHost?.has(archive) === true || this.#count >= MOST_NOTED) return;
    if (ofHost === undefined) this.#noted.set(host, ofHost = new Map());
    ofHost.set(archive, localpart);
    this.#count++;
  }

  /** Looks up all that was noted, if the database answers in time. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    this.#cancel = undefined;
    const late = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(CLOSE_MS, late.resolve);
    const look = async () => {
      await this.#looking;
      await this.#look();
    };
    await Promise.race([look(), late.promise]); // neither rejects
    cancel();
  }

  #begin(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
      if (this.#count === 0 || this.#isClosed) return;
      this.#cancel = this.#deps.clock.after(CHECK_MS, () => this.#begin());
    });
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const noted = this.#noted;
    this.#noted = new Map();
    this.#count = 0;
    for (const [host, archives] of noted) {
      const all = [...archives];
      for (let from = 0; from < all.length; from += ACCOUNTS_AT_ONCE) {
        const some = all.slice(from, from + ACCOUNTS_AT_ONCE);
        try {
          await this.#check(host, some);
        } catch (thrown) {
          this.#deps.logger.debug("archive.unchecked", { host, error: describeError(thrown) });
          for (const [archive, localpart] of some) this.#add(host, archive, localpart);
        }
      }
    }
  }

  async #check(host: string, archives: readonly (readonly [string, string])[]): Promise<void> {
    const { existing, storeOf, removed, logger, clock } = this.#deps;
    const found = await existing(host, [...new Set(archives.map(([, localpart]) => localpart))]);
    for (const [archive, localpart] of archives) {
      const jid = `${localpart}@${host}`;
      const creation = found.get(localpart);
      if (creation !== undefined && archiveKeyOf(jid, creation) === archive) continue;
      logger.info("archive.account-gone", { jid });
      let some: number;
      do {
        const age = { archive, sentBeforeMs: clock.wallMs() + CLOCK_SKEW_MS };
        some = await storeOf(host).removeBefore(age, REMOVED_AT_ONCE);
        removed.inc(some);
      } while (some > 0);
    }
  }
}
