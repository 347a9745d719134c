import type { Clock } from "../../../base/mod.ts";
import type { FullJid, Jid, SessionOrigin } from "../../../xmpp/mod.ts";
import type { OwnSession } from "./account.ts";
import { Account } from "./account.ts";
import { claimId } from "./claims.ts";
import type { HybridClock } from "./hybrid_clock.ts";
import type { RefreshWheel } from "./refresh_wheel.ts";

/**
 * The sessions and component domains of this node, by account, each with its place on the wheel.
 */
export class OwnAccounts {
  readonly #clock: Clock;
  readonly #epochs: HybridClock;
  readonly #wheel: RefreshWheel;
  readonly #incarnation: number;
  readonly #closed: (name: string, session: OwnSession) => void;
  readonly #accounts = new Map<string, Account>();
  #sequence = 0;
  #entries = 0;

  constructor(
    wheel: RefreshWheel,
    epochs: HybridClock,
    deps: {
      readonly clock: Clock;
      readonly incarnation: number;
      /** Called when a session has closed whose epoch was drawn: other nodes may know of it. */
      readonly closed?: (name: string, session: OwnSession) => void;
    },
  ) {
    this.#wheel = wheel;
    this.#epochs = epochs;
    this.#clock = deps.clock;
    this.#incarnation = deps.incarnation;
    this.#closed = deps.closed ?? (() => {});
  }

  /** Number of sessions and component domains. */
  get entries(): number {
    return this.#entries;
  }

  /** Accounts that have sessions, or whose logouts are not done yet. */
  all(): Iterable<Account> {
    return this.#accounts.values();
  }

  /** True for the address of a session or component of this node. */
  isOwn(jid: Jid): boolean {
    const sessions = this.#accounts.get(jid.localpart === "" ? jid.domainpart : jid.bare.text)
      ?.sessions;
    if (sessions === undefined || sessions.length === 0) return false;
    if (jid.localpart === "" || jid === jid.bare) return true;
    const { resourcepart } = jid as FullJid; // only a bare JID is its own `bare`
    return sessions.some((session) => session.resourcepart === resourcepart);
  }

  /**
   * Epoch of the newest session with this full JID, before it is drawn the one of when it opened;
   * undefined while there is none.
   */
  epochOf(jid: FullJid): number | undefined {
    const sessions = this.#accounts.get(jid.bare.text)?.sessions;
    const session = sessions?.findLast(({ resourcepart }) => resourcepart === jid.resourcepart);
    return session === undefined ? undefined : session.epoch || session.openedUs;
  }

  /** True when the account or domain has a session here. */
  has(name: string): boolean {
    return (this.#accounts.get(name)?.sessions.length ?? 0) > 0;
  }

  /** The account or domain `name` while it has a session here. */
  find(name: string): Account | undefined {
    const account = this.#accounts.get(name);
    return account === undefined || account.sessions.length === 0 ? undefined : account;
  }

  /**
   * Adds a session; `resourcepart` is empty for a component's domain.
   * @param origin set for a session that has come from another node
   */
  open(name: string, resourcepart: string, origin?: SessionOrigin): Account {
    const account = this.borrow(name);
    this.#wheel.add(account);
    const agoMs = origin === undefined ? 0 : this.#clock.monotonicMs() - origin.askedMs;
    account.sessions.push({
      id: claimId(this.#incarnation, ++this.#sequence),
      resourcepart,
      number: this.#sequence,
      origin,
      openedUs: Math.max(1, this.#epochs.next() - Math.round(agoMs * 1000)),
      epoch: 0,
      isAnnounced: false,
      renewal: 0,
      priority: undefined,
    });
    this.#entries++;
    return account;
  }

  /** Returns the account. One without a session of ours exists until its pass is over. */
  borrow(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = new Account(name);
      this.#accounts.set(name, account);
    }
    return account;
  }

  /** Closes the oldest session with that resource; undefined when there is none. */
  close(name: string, resourcepart: string): Account | undefined {
    const account = this.#accounts.get(name);
    const at = account?.sessions.findIndex((session) => session.resourcepart === resourcepart);
    if (account === undefined || at === undefined || at === -1) return undefined;
    this.#retire(account, at);
    return account;
  }

  /**
   * Notes the priority of the newest session with that resource, undefined while it is not
   * available.
   * @returns its account if the priority has changed
   */
  prioritise(
    name: string,
    resourcepart: string,
    priority: number | undefined,
  ): Account | undefined {
    const account = this.#accounts.get(name);
    const session = account?.sessions.findLast((each) => each.resourcepart === resourcepart);
    if (session === undefined || session.priority === priority) return undefined;
    session.priority = priority;
    return account;
  }

  closeAll(): void {
    for (const account of this.#accounts.values()) {
      while (account.sessions.length > 0) this.#retire(account, 0);
    }
  }

  /** Forgets an account that is empty. */
  drop(account: Account): void {
    this.#wheel.remove(account);
    this.#accounts.delete(account.name);
  }

  #retire(account: Account, at: number): void {
    for (const session of account.sessions.splice(at, 1)) {
      const { id, resourcepart, renewal } = session;
      if (session.epoch > 0) this.#closed(account.name, session);
      this.#entries--;
      const closedMs = this.#clock.monotonicMs();
      const wasClaimed = renewal > 0;
      account.closed.push({ id, resourcepart, closedMs, wasClaimed, isWithdrawn: false });
    }
  }
}
