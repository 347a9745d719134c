import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid, readdress } from "../../xmpp/mod.ts";
import type { RosterDeps, SessionPlace } from "./roster_ports.ts";

/** Datacenters with sessions of accounts, by bare JID. An account without an entry is offline. */
export type AccountHosts = ReadonlyMap<string, ReadonlySet<string>>;

/** Sessions of accounts, by bare JID. */
export type SessionsByAccount = ReadonlyMap<string, readonly SessionPlace[]>;

/** Sends the server's own stanzas to all sessions of accounts, in every datacenter. */
export class AccountReach {
  readonly #deps: Pick<RosterDeps, "hosts" | "sessions" | "routes" | "process">;
  #pushes = 0;

  constructor(deps: Pick<RosterDeps, "hosts" | "sessions" | "routes" | "process">) {
    this.#deps = deps;
  }

  /**
   * Sends a request in the name of the account to each of its sessions. The node of a session drops
   * a roster push for a client that has not asked for the roster.
   *
   * @param payload written XML
   */
  async push(owner: Jid, payload: string): Promise<void> {
    for (const to of await this.#sessionsOf(owner)) this.pushTo(to, owner, payload);
  }

  /** Sends a request in the name of the account to each of its sessions at other nodes. */
  async pushElsewhere(owner: Jid, payload: string): Promise<void> {
    const here = new Set(this.#deps.sessions.here(owner.text).map(({ jid }) => jid.text));
    for (const to of await this.#sessionsOf(owner)) {
      if (!here.has(to.text)) this.pushTo(to, owner, payload);
    }
  }

  /** Sends a request in the name of an account to a session: usually one of its own. */
  pushTo(to: Jid, owner: Jid, payload: string): void {
    const id = `push-${this.#deps.process.toString(36)}-${(++this.#pushes).toString(36)}`;
    const iq = element("iq", { type: "set", id });
    this.#deps.routes.route(buildStanza(iq, { from: owner, to, content: payload }));
  }

  /** Sends a stanza to each session of the account. */
  async toEachSession(owner: Jid, stanza: Stanza): Promise<void> {
    for (const to of await this.#sessionsOf(owner)) {
      this.#deps.routes.route(readdress(stanza, to));
    }
  }

  /**
   * Returns the datacenters where each of `accounts` has sessions: this one alone, while the session
   * table cannot tell.
   */
  async hostsOf(accounts: readonly Jid[]): Promise<AccountHosts> {
    return this.hostsWith(accounts, await this.sessionsOf(accounts));
  }

  /**
   * Returns the sessions of those of `accounts` that may have some in every datacenter; undefined while
   * the session table cannot tell.
   */
  sessionsOf(accounts: readonly Jid[]): Promise<SessionsByAccount | undefined> {
    const asked = accounts.filter((account) => this.#isGlobal(account)).map(({ text }) => text);
    // Most contacts are told and asked, and so are among the accounts twice.
    return this.#deps.sessions.everywhere([...new Set(asked)]);
  }

  /** Returns the datacenters where each of `accounts` has sessions, as `sessionsOf` has found. */
  hostsWith(accounts: readonly Jid[], places: SessionsByAccount | undefined): AccountHosts {
    const { hosts, sessions } = this.#deps;
    const found = new Map<string, Set<string>>();
    for (const [account, all] of places ?? []) {
      found.set(account, new Set(all.map(({ host }) => host)));
    }
    for (const account of accounts) {
      if (hosts.store(account.domainpart) === undefined) continue;
      if (this.#isGlobal(account) && sessions.here(account.text).length === 0) continue;
      // Sessions of this node are known while Redis is away, too.
      const known = found.get(account.text);
      if (known === undefined) found.set(account.text, new Set([hosts.localHost]));
      else known.add(hosts.localHost);
    }
    return found;
  }

  /**
   * Sends presence, made by `make` for each account, to wherever the account has sessions. Accounts
   * of other hosts get theirs by ordinary routing.
   */
  async spread(accounts: readonly Jid[], make: (to: Jid) => Stanza): Promise<void> {
    const hosts = await this.hostsOf(accounts);
    for (const to of accounts) this.send(make(to), hosts);
  }

  /** True when `send` would send something to an account. */
  reaches(account: Jid, hosts: AccountHosts): boolean {
    return this.#deps.hosts.store(account.domainpart) === undefined || hosts.has(account.text);
  }

  /** Sends presence for an account to the datacenters that `hostsOf` has found for it. */
  send(stanza: Stanza, hosts: AccountHosts): void {
    const { routes, hosts: { store } } = this.#deps;
    if (store(stanza.to.domainpart) === undefined) return routes.route(stanza);
    // Without an entry the account is offline.
    for (const host of hosts.get(stanza.to.text) ?? []) routes.sendTo(host, stanza);
  }

  /** Sends presence to a datacenter that has missed it; in this one, to the other nodes. */
  sendAgain(host: string, stanza: Stanza): void {
    const { routes, hosts: { localHost } } = this.#deps;
    if (host === localHost) routes.sendToNodes(stanza);
    else routes.sendTo(host, stanza);
  }

  #isGlobal({ domainpart }: Jid): boolean {
    return domainpart === this.#deps.hosts.globalHost;
  }

  async #sessionsOf(owner: Jid): Promise<readonly Jid[]> {
    const { hosts, sessions } = this.#deps;
    const resources = new Set(sessions.here(owner.text).map(({ jid }) => jid.resourcepart));
    const found = await sessions.everywhere([owner.text]);
    for (const { host, resourcepart } of found?.get(owner.text) ?? []) {
      // Accounts of other hosts have sessions at this datacenter alone.
      if (owner.domainpart === hosts.globalHost || host === hosts.localHost) {
        resources.add(resourcepart);
      }
    }
    return [...resources].map((resourcepart) => parseJid(`${owner.text}/${resourcepart}`));
  }
}
