import type { Logger } from "../../observe/mod.ts";
import type { FullJid, SessionOrigin } from "../../xmpp/mod.ts";
import type { OwnAccounts } from "./claims/own_accounts.ts";
import type { Reconciler } from "./claims/reconciler.ts";
import type { LocationMemory } from "./location_memory.ts";
import type { LocationCache } from "./lookup/location_cache.ts";
import type { Placements } from "./lookup/placements.ts";
import type { Publication } from "./mesh/publication.ts";
import { isReservedDomain } from "./redis/keys.ts";

/** The parts that `OwnEntries` works with. */
export interface OwnEntriesDeps {
  readonly localHost: string;
  readonly logger: Logger;
  readonly accounts: OwnAccounts;
  readonly reconciler: Reconciler;
  readonly publication: Publication;
  readonly cache: LocationCache;
  readonly placements: Placements;
  readonly memory: LocationMemory;
  /** Writes what this node publishes. Never rejects. */
  beat(): Promise<void>;
  /** Writes all entries anew. Never rejects. */
  refreshAll(): Promise<void>;
  /** Runs a promise that never rejects. */
  spawn(task: Promise<void>): void;
}

/** Claims this node's sessions and component domains, and withdraws them. */
export class OwnEntries {
  readonly #deps: OwnEntriesDeps;
  /** True when a priority was not written, as no other node was there to read it. */
  #hasUnwritten = false;

  constructor(deps: OwnEntriesDeps) {
    this.#deps = deps;
  }

  /** Claims `jid`; resolves when the claim is written, or could not be. */
  sessionOpened(jid: FullJid, origin?: SessionOrigin): Promise<void> {
    const { localHost, cache, accounts, reconciler, memory } = this.#deps;
    cache.putJid(jid.text, localHost);
    cache.putJid(jid.bare.text, localHost);
    const account = accounts.open(jid.bare.text, jid.resourcepart, origin);
    return memory.announce(reconciler.request(account), [jid.text, jid.bare.text], localHost);
  }

  /** Sets the priority of an available session; undefined when it is no longer available. */
  async sessionPriority(jid: FullJid, priority: number | undefined): Promise<void> {
    const { accounts, reconciler, placements, memory } = this.#deps;
    const account = accounts.prioritise(jid.bare.text, jid.resourcepart, priority);
    if (account === undefined) return;
    if (!placements.isShared) this.#hasUnwritten = true;
    else await memory.announce(reconciler.request(account), [jid.bare.text]);
  }

  /** Withdraws the claim of the oldest session with that full JID. */
  sessionClosed(jid: FullJid): Promise<void> {
    const { cache, memory } = this.#deps;
    cache.forget(jid);
    const withdrawn = this.#withdraw(jid.bare.text, jid.resourcepart);
    return memory.announce(withdrawn, [jid.text, jid.bare.text]);
  }

  /** Claims a component's domain; a hidden one is not listed to users. */
  async domainAdded(domain: string, options: { readonly hidden: boolean }): Promise<void> {
    const { localHost, logger, cache, accounts, reconciler, publication, memory, beat } =
      this.#deps;
    if (isReservedDomain(domain)) {
      logger.error("table.domain-reserved", { domain }); // its key is the table's own
      return;
    }
    publication.setDomain(domain, options.hidden);
    cache.putDomain(domain, localHost);
    const claimed = accounts.has(domain)
      ? Promise.resolve()
      : reconciler.request(accounts.open(domain, ""));
    await memory.announce(Promise.all([claimed, beat()]), [domain], localHost);
  }

  /** Withdraws a component's domain. */
  async domainRemoved(domain: string): Promise<void> {
    const { cache, publication, memory, beat } = this.#deps;
    publication.removeDomain(domain);
    cache.forgetKey(domain);
    await memory.announce(Promise.all([this.#withdraw(domain, ""), beat()]), [domain]);
  }

  /** Writes the priorities that no other node was there to read until now. */
  writePriorities(): void {
    if (!this.#hasUnwritten) return;
    this.#hasUnwritten = false;
    this.#deps.spawn(this.#deps.refreshAll());
  }

  /** Reads the claims behind keys that another node has changed: our full JID may have been taken. */
  checkTaken(keys: readonly string[]): void {
    const { accounts, reconciler, spawn } = this.#deps;
    for (const key of keys) {
      const slash = key.indexOf("/");
      const account = slash === -1 ? undefined : accounts.find(key.slice(0, slash));
      if (account !== undefined) spawn(reconciler.request(account));
    }
  }

  /** Corrects keys that contradict the claims which a lookup found. */
  correct(name: string, resourcepart: string): void {
    const { accounts, reconciler, spawn } = this.#deps;
    const account = accounts.borrow(name);
    account.touch(resourcepart);
    spawn(reconciler.request(account));
  }

  /** Withdraws all claims. */
  async withdrawAll(): Promise<void> {
    const { accounts, reconciler } = this.#deps;
    accounts.closeAll();
    await reconciler.refresh(accounts.all());
    const left = [...accounts.all()].filter((account) =>
      account.closed.some((session) => !session.isWithdrawn)
    );
    await Promise.all(left.map((account) => reconciler.request(account)));
  }

  #withdraw(name: string, resourcepart: string): Promise<void> {
    const { accounts, reconciler } = this.#deps;
    const account = accounts.close(name, resourcepart);
    return account === undefined ? Promise.resolve() : reconciler.request(account);
  }
}
