import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { BareJid, FullJid, Stanza } from "../../xmpp/mod.ts";
import { isRemovalNotice } from "./removal_notice.ts";

/** Default number of milliseconds in which every account with a session is looked up once. */
export const DEFAULT_CHECK_INTERVAL_MS = 60_000;

/** Accounts that are looked up with one query. */
const ACCOUNTS_AT_ONCE = 500;
/** Least milliseconds between two queries. */
const LEAST_PAUSE_MS = 20;

/** Options of the watch. */
export interface AccountWatchOptions {
  /**
   * Milliseconds in which every account with a session here is looked up once; 1000 to 86 400 000.
   * @default 60000
   */
  readonly checkIntervalMs?: number;
}

/** A session, as the watch sees it. */
interface WatchedSession {
  readonly jid: FullJid;
  readonly isOpen: boolean;
  /** See `LocalSession.creation`. */
  readonly creation?: string;
}

/** An account that is no longer the one of a session. */
export interface EndedAccount {
  readonly jid: BareJid;
  /** Creation of the account that has the name now; undefined: there is none. */
  readonly creation: string | undefined;
}

/** Sessions of one account. */
type AccountSessions = [WatchedSession, ...WatchedSession[]];

/** Objects behind the watch, with its options. */
export interface AccountWatchDeps extends AccountWatchOptions {
  /** Sessions at this node. */
  readonly sessions: {
    readonly count: number;
    sessions(): IterableIterator<WatchedSession>;
    ofAccount(bareJid: string): readonly WatchedSession[];
  };
  /** Returns those of the localparts that have an account at a host, with its creation. */
  existing(host: string, localparts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Ends the sessions here that belong to an account which is gone, and deletes what they may have
   * stored. The name may have a new account. Sessions with its creation stay.
   */
  end(account: EndedAccount): void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Looks up, again and again, whether the accounts with sessions here still exist, and ends the
 * sessions of those that do not, or that were made anew. An account that was deleted at another node,
 * at another datacenter or by the command thus loses its sessions everywhere. A node that deletes an
 * account tells the others, which look at once. A database that does not answer ends no session.
 */
export class AccountWatch {
  readonly #deps: AccountWatchDeps;
  #intervalMs: number;
  #cancel: CancelTimer | undefined;
  #isStopped = false;
  /** The rest of the round; the registry's iterator bears sessions that come and go. */
  #round: IterableIterator<WatchedSession> | undefined;
  /** Accounts that are looked up because of a notice; true: another notice has come since. */
  readonly #noticed = new Map<string, boolean>();

  constructor(deps: AccountWatchDeps) {
    this.#deps = deps;
    this.#intervalMs = deps.checkIntervalMs ?? DEFAULT_CHECK_INTERVAL_MS;
  }

  start(): void {
    this.#later();
  }

  /** Spreads its lookups over another time from now on. */
  change({ checkIntervalMs = DEFAULT_CHECK_INTERVAL_MS }: AccountWatchOptions): void {
    if (checkIntervalMs === this.#intervalMs) return;
    this.#intervalMs = checkIntervalMs;
    if (this.#cancel === undefined || this.#isStopped) return; // a lookup is under way
    this.#cancel();
    this.#later();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /**
   * Takes the notice of another node that an account was deleted, and looks the account up. False for
   * all other stanzas. A notice of something that is not so has no effect.
   */
  takes(stanza: Stanza): boolean {
    if (!isRemovalNotice(stanza)) return false;
    this.lookAt(stanza.to.bare);
    return true;
  }

  /** Looks up an account at once, as it may be gone. */
  lookAt(account: BareJid): void {
    if (!this.#isStopped) void this.#look(account); // never rejects
  }

  /** Looks up one account with sessions here: one query at a time, and one behind it. */
  async #look(account: BareJid): Promise<void> {
    const { text, domainpart: host } = account;
    if (this.#noticed.has(text)) return void this.#noticed.set(text, true);
    do {
      this.#noticed.set(text, false);
      const [first, ...others] = this.#deps.sessions.ofAccount(text).filter(({ isOpen }) => isOpen);
      if (first === undefined || this.#isStopped) break;
      try {
        await this.#check(host, [[first, ...others]]);
      } catch (thrown) {
        // The next round looks again.
        this.#deps.logger.debug("accounts.unchecked", { host, error: describeError(thrown) });
      }
    } while (this.#noticed.get(text) === true);
    this.#noticed.delete(text);
  }

  #later(): void {
    if (this.#isStopped) return;
    const steps = Math.max(1, this.#deps.sessions.count / ACCOUNTS_AT_ONCE);
    const pauseMs = Math.max(LEAST_PAUSE_MS, this.#intervalMs / steps);
    this.#cancel = this.#deps.clock.after(pauseMs, () => {
      this.#cancel = undefined;
      void this.#step().finally(() => this.#later()); // never rejects
    });
  }

  /** Looks up the next accounts of the round, each host's by themselves. */
  async #step(): Promise<void> {
    const accounts = this.#next();
    const byHost = Map.groupBy(accounts.values(), ([{ jid }]) => jid.domainpart);
    for (const [host, some] of byHost) {
      if (this.#isStopped) return;
      try {
        await this.#check(host, some);
      } catch (thrown) {
        // The other hosts may have a database of their own.
        this.#deps.logger.debug("accounts.unchecked", { host, error: describeError(thrown) });
      }
    }
  }

  /** Looks up accounts of one host, given by their sessions. */
  async #check(host: string, accounts: readonly AccountSessions[]): Promise<void> {
    const names = accounts.map(([{ jid }]) => jid.localpart);
    const existing = await this.#deps.existing(host, names);
    if (this.#isStopped) return;
    for (const sessions of accounts) {
      const jid = sessions[0].jid.bare;
      const creation = existing.get(jid.localpart);
      const isOther = (session: WatchedSession) => (session.creation ?? "") !== creation;
      if (!sessions.some(isOther)) continue;
      this.#deps.logger.info("account.gone", {
        jid: jid.text,
        isMadeAgain: creation !== undefined,
      });
      this.#deps.end({ jid, creation });
    }
  }

  /**
   * Returns the next accounts of the round, with those of their sessions that are next too. At the
   * end of a round, the next one begins.
   */
  #next(): ReadonlyMap<string, AccountSessions> {
    const accounts = new Map<string, AccountSessions>();
    this.#round ??= this.#deps.sessions.sessions();
    while (accounts.size < ACCOUNTS_AT_ONCE) {
      const { done, value } = this.#round.next();
      if (done === true) {
        this.#round = undefined;
        break;
      }
      if (!value.isOpen) continue;
      const { text } = value.jid.bare;
      const sessions = accounts.get(text);
      if (sessions === undefined) accounts.set(text, [value]);
      else sessions.push(value);
    }
    return accounts;
  }
}
