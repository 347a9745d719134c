import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { BareJid, FullJid } from "../../xmpp/mod.ts";

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

/** Objects behind the watch, with its options. */
export interface AccountWatchDeps extends AccountWatchOptions {
  /** Sessions at this node. */
  readonly sessions: {
    readonly count: number;
    sessions(): IterableIterator<{ readonly jid: FullJid; readonly isOpen: boolean }>;
  };
  /** Returns those of the localparts that have an account at a host. */
  existing(host: string, localparts: readonly string[]): Promise<ReadonlySet<string>>;
  /** Ends all sessions of an account that are here, and deletes what they may have stored. */
  end(account: BareJid): void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Looks up, again and again, whether the accounts with sessions here still exist, and ends the
 * sessions of those that do not. An account that was deleted at another node, at another
 * datacenter or by the command thus loses its sessions everywhere. A database that does not answer
 * ends no session.
 */
export class AccountWatch {
  readonly #deps: AccountWatchDeps;
  readonly #intervalMs: number;
  #cancel: CancelTimer | undefined;
  #isStopped = false;
  /** The rest of the round; the registry's iterator bears sessions that come and go. */
  #round: IterableIterator<{ readonly jid: FullJid; readonly isOpen: boolean }> | undefined;

  constructor(deps: AccountWatchDeps) {
    this.#deps = deps;
    this.#intervalMs = deps.checkIntervalMs ?? DEFAULT_CHECK_INTERVAL_MS;
  }

  start(): void {
    this.#later();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #later(): void {
    if (this.#isStopped) return;
    const steps = Math.max(1, this.#deps.sessions.count / ACCOUNTS_AT_ONCE);
    const pauseMs = Math.max(LEAST_PAUSE_MS, this.#intervalMs / steps);
    this.#cancel = this.#deps.clock.after(pauseMs, () => {
      void this.#step().finally(() => this.#later()); // never rejects
    });
  }

  /** Looks up the next accounts of the round, each host's by themselves. */
  async #step(): Promise<void> {
    const accounts = this.#next();
    const byHost = Map.groupBy(accounts.values(), ({ domainpart }) => domainpart);
    for (const [host, jids] of byHost) {
      if (this.#isStopped) return;
      try {
        await this.#check(host, jids);
      } catch (thrown) {
        // The other hosts may have a database of their own.
        this.#deps.logger.debug("accounts.unchecked", { host, error: describeError(thrown) });
      }
    }
  }

  /** Looks up accounts of one host. */
  async #check(host: string, jids: readonly BareJid[]): Promise<void> {
    const existing = await this.#deps.existing(host, jids.map(({ localpart }) => localpart));
    if (this.#isStopped) return;
    for (const jid of jids) {
      if (existing.has(jid.localpart)) continue;
      this.#deps.logger.info("account.gone", { jid: jid.text });
      this.#deps.end(jid);
    }
  }

  /** Returns the next accounts of the round; at its end, the next round begins. */
  #next(): ReadonlyMap<string, BareJid> {
    const accounts = new Map<string, BareJid>();
    this.#round ??= this.#deps.sessions.sessions();
    while (accounts.size < ACCOUNTS_AT_ONCE) {
      const { done, value } = this.#round.next();
      if (done === true) {
        this.#round = undefined;
        break;
      }
      if (value.isOpen) accounts.set(value.jid.bare.text, value.jid.bare);
    }
    return accounts;
  }
}
