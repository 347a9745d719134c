import { Pauses } from "../../base/mod.ts";
import type { BareJid, Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  FullJid,
  onlyChild,
  parseElement,
  parseJid,
  stanzaId,
  stanzaSource,
} from "../../xmpp/mod.ts";
import type { IqRequest } from "../iq_service.ts";
import type { Privacy } from "./account_privacy.ts";
import { blockedOf, isDenied, NO_LIST, NO_PRIVACY, viewOf } from "./account_privacy.ts";
import type { PrivacyDecision, PrivacyError, WrittenChange } from "./list_changes.ts";
import { ListChanges } from "./list_changes.ts";
import type { PrivacyFailure } from "./lists_here.ts";
import { ListsHere } from "./lists_here.ts";
import type { PrivacyItem } from "./privacy_list.ts";
import { aspectInbound, aspectOutbound, deniesOthers, groupsIn } from "./privacy_list.ts";
import { DefaultLists } from "./default_lists.ts";
import { PrivacyMetrics } from "./privacy_metrics.ts";
import type { PrivacyDeps, PrivacyView } from "./privacy_ports.ts";
import { BLOCKING_NAMESPACE, PRIVACY_NAMESPACE } from "./privacy_xml.ts";
import { CHANGE_SIGNAL, pushesFor } from "./privacy_pushes.ts";
import { StoredLists } from "./stored_lists.ts";

/** Another session of the client's account. */
export interface OtherSession {
  /** Name of its active list. Undefined for none, and for a session of another node. */
  readonly active: string | undefined;
}

/**
 * Privacy lists and block lists (XEP-0016, XEP-0191) of the accounts with sessions at this node.
 *
 * No stanza waits for the database: `ListsHere` keeps the lists in memory. A change is written,
 * applied here, and told to all sessions of the account by pushes. The node of a session that gets a
 * push reads the lists again. Each node tells its clients how the block list changes by what it
 * applies.
 */
export class PrivacyServer {
  /** Default lists of accounts, wherever their sessions are. */
  readonly defaults: DefaultLists;
  readonly #changes: ListChanges;
  readonly #deps: PrivacyDeps;
  readonly #metrics: PrivacyMetrics;
  readonly #stored: StoredLists;
  readonly #here: ListsHere;
  /** Accounts with changes whose end is not known. */
  readonly #doubted = new Set<string>();
  readonly #pauses: Pauses;
  #pushes = 0;

  constructor(deps: PrivacyDeps) {
    this.#deps = deps;
    const metrics = this.#metrics = new PrivacyMetrics(deps.metrics, () => this.#here.size);
    const stored = this.#stored = new StoredLists(deps.hosts);
    const pauses = this.#pauses = new Pauses(deps.clock);
    const here = this.#here = new ListsHere({
      ...deps,
      stored,
      metrics,
      pauses,
      push: (to, payload) => this.#push(to, payload),
    });
    this.defaults = new DefaultLists({
      hosts: deps.hosts,
      log: deps.log,
      stored,
      metrics,
      isRead: (account) => here.isRead(account),
      known: (account) => here.accountOf(account),
    });
    this.#changes = new ListChanges({
      hosts: deps.hosts,
      stored,
      known: (account) => here.accountOf(account)?.privacy,
      doubtful: (account) => void this.#doubt(account),
      pauses,
    });
  }

  /** True when the list of a session here keeps the stanza from it. Counts the stanza then. */
  refuses(session: FullJid, stanza: Stanza): boolean {
    if (!this.wouldRefuse(session, stanza)) return false;
    this.#metrics.blocked("in", stanza.kind);
    return true;
  }

  /** As `refuses`, and counts nothing. */
  wouldRefuse(session: FullJid, stanza: Stanza): boolean {
    const account = this.#here.accountOf(session.bare);
    return account?.denies(session, stanza.from, aspectInbound(stanza)) === true;
  }

  /** True when no session here gets the presence, if any of its recipients is here. */
  refusesPresence(presence: Stanza): boolean {
    const { to, from } = presence;
    const account = this.#here.accountOf(to.bare);
    if (account === undefined) return false;
    const aspect = aspectInbound(presence);
    const resources = to instanceof FullJid ? [to.resourcepart] : this.#here.resourcesOf(to.bare);
    for (const resource of resources) {
      if (!isDenied(account.appliedTo(resource), to, from, aspect)) return false;
    }
    this.#metrics.blocked("in", "presence");
    return true;
  }

  /** True when the list of the session that sends a stanza keeps it here. Counts the stanza then. */
  holdsBack(session: Jid, stanza: Stanza): boolean {
    const account = this.#here.accountOf(session.bare);
    if (account === undefined || !(session instanceof FullJid)) return false;
    if (!account.denies(session, stanza.to, aspectOutbound(stanza))) return false;
    this.#metrics.blocked("out", stanza.kind);
    return true;
  }

  /** Returns which presence the list of a session here hides. */
  viewOf(session: FullJid): PrivacyView {
    const account = this.#here.accountOf(session.bare);
    return viewOf(session, account?.appliedTo(session.resourcepart) ?? NO_LIST);
  }

  /**
   * True for a session here that its active list makes invisible: to everybody, or to all but those
   * whom the list names.
   */
  isInvisible({ bare, resourcepart }: FullJid): boolean {
    const active = this.#here.accountOf(bare)?.active.get(resourcepart);
    return active !== undefined && deniesOthers(active, "presence-out");
  }

  /**
   * Reads the lists of an account before its session gets or sends anything. `closed` follows, if
   * this fails too. Never rejects.
   *
   * @returns the condition of the error when the lists cannot be read: without them nobody would be
   * kept out
   */
  opening(session: FullJid): Promise<PrivacyFailure | undefined> {
    return this.#here.opening(session);
  }

  /** A session came from another node: whether its client uses the block list is not known. */
  arrived(session: FullJid): void {
    this.#here.arrived(session);
  }

  /** Forgets a session that has ended, or has moved away. Its active list follows it there. */
  closed(session: FullJid): void {
    this.#here.closed(session);
  }

  /**
   * Looks whether the lists of accounts with sessions here have changed, or the rosters that they need,
   * where news of it was lost. Never rejects.
   */
  look(host: string, localparts: readonly string[]): Promise<void> {
    return this.#here.look(host, localparts);
  }

  /** Reads no lists from now on, and waits until nothing is read or written any more. */
  async close(): Promise<void> {
    this.#pauses.close();
    await this.#here.settled();
  }

  /** Waits until nothing is read or written any more. */
  settled(): Promise<void> {
    return this.#here.settled();
  }

  /**
   * Takes a push in the name of a session's own account, if it concerns lists: the lists are read
   * again, and the client hears of what has changed. False for all other stanzas.
   */
  takes(stanza: Stanza): boolean {
    const { kind, type, from, to, bytes } = stanza;
    if (kind !== "iq" || type !== "set" || from.text !== to.bare.text) return false;
    if (!(to instanceof FullJid) || this.#here.find(to) === undefined) return false;
    const child = onlyChild(stanzaSource(bytes));
    if (child === undefined) return false;
    if (child.namespace === "jabber:iq:roster") {
      if (this.#here.accountOf(to.bare)?.roster !== undefined) this.#here.readLater(to.bare, true);
      return false;
    }
    if (child.namespace !== PRIVACY_NAMESPACE && child.namespace !== BLOCKING_NAMESPACE) {
      return false;
    }
    const { bytes: text, start, end, defaultNamespace, prefixes } = child;
    const payload = parseElement(text.subarray(start, end), defaultNamespace, prefixes);
    const active = payload.child("active")?.attribute("name");
    if (active !== undefined) this.#resume(to, active);
    else if (stanzaId(stanza)?.startsWith(this.#idPrefix) === true) {
      this.#tell(to, stanza, payload, { isOwn: true });
    } else {
      const known = this.#here.accountOf(to.bare)?.privacy;
      void this.#here.readLater(to.bare).then(() => {
        const isLate = known === this.#here.accountOf(to.bare)?.privacy;
        this.#tell(to, stanza, payload, { isOwn: false, isLate });
      });
    }
    return true;
  }

  /**
   * Returns the block list of a client, which gets pushes of all later changes.
   * @throws CausewayError with a code `storage/…`
   */
  async follow(client: FullJid): Promise<readonly string[]> {
    const session = this.#here.find(client);
    if (session === undefined) return blockedOf(await this.#changes.read(client.bare));
    await this.#here.readSoon(client.bare);
    session.follows = "yes";
    return blockedOf(this.#here.accountOf(client.bare)?.privacy ?? NO_PRIVACY);
  }

  /**
   * Returns the lists of an account as they are stored now.
   * @throws CausewayError with a code `storage/…`
   */
  listsOf(account: BareJid): Promise<Privacy> {
    return this.#changes.read(account);
  }

  /**
   * Returns the groups that a list names and the roster of its account has not.
   * @throws CausewayError with a code `storage/…`
   */
  async unknownGroups(account: BareJid, items: readonly PrivacyItem[]): Promise<readonly string[]> {
    const named = groupsIn(items);
    if (named.length === 0) return named;
    const roster = await this.#stored.rosterOf(account);
    const known = new Set([...roster.values()].flatMap(({ groups }) => groups));
    return named.filter((group) => !known.has(group));
  }

  /** Returns the name of a session's active list. */
  activeOf({ bare, resourcepart }: FullJid): string | undefined {
    return this.#here.accountOf(bare)?.active.get(resourcepart)?.name;
  }

  /** Returns the other sessions of a client's account, in all datacenters. */
  async othersOf({ bare, resourcepart: own }: FullJid): Promise<readonly OtherSession[]> {
    const active = this.#here.accountOf(bare)?.active;
    return (await this.#sessionsOf(bare)).filter(({ resourcepart }) => resourcepart !== own)
      .map(({ resourcepart }) => ({ active: active?.get(resourcepart)?.name }));
  }

  /**
   * Makes a list the active list of a session here, or ends the use of one. Returns the condition of
   * the error.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async activate(
    client: FullJid,
    name: string | undefined,
  ): Promise<"item-not-found" | "not-allowed" | undefined> {
    const { bare } = client;
    const session = this.#here.find(client);
    if (session === undefined) return "not-allowed";
    if (name !== undefined) await this.#here.readSoon(bare); // another node may just have made the list
    const account = this.#here.accountOf(bare);
    const list = name === undefined ? undefined : account?.privacy.lists.get(name);
    if (name !== undefined && list === undefined) return "item-not-found";
    if (this.#here.find(client) !== session) return "not-allowed"; // it has ended meanwhile
    session.mayHaveActive = false; // this list, whatever it had at the node from which it came
    if (account !== undefined) this.#here.setActive(client, account, list);
    return undefined;
  }

  /**
   * Changes the lists of a client's account: reads, lets `decide` choose, and writes. When another
   * node has changed them in between, it does so again with what it finds then.
   *
   * @param isStill asked before the change is written, and once it is: the lists of the name's next
   * owner must stay as they are, and they must not have it
   * @throws CausewayError with a code `storage/…`. Then nothing was changed, or the database could not
   * say that it was: all nodes look.
   */
  change(
    client: FullJid,
    decide: PrivacyDecision,
    isStill?: IqRequest["isCurrent"],
  ): Promise<PrivacyError | undefined> {
    const account = client.bare;
    return this.#here.inTurn(account, async () => {
      const change = await this.#changes.make(account, decide, isStill);
      if (change === "unchanged") return undefined;
      if (typeof change === "string") return change;
      if (await isStill?.() === false) {
        await this.#changes.takeBack(account, change);
        void this.#doubt(account); // nodes of a next owner of the name may have read it
        return "registration-required";
      }
      await this.#told(client, change);
      return undefined;
    });
  }

  get #idPrefix(): string {
    return `privacy-${this.#deps.process.toString(36)}-`;
  }

  /** Applies a change that was made here, and tells all sessions of the account. */
  async #told(client: FullJid, { before, after, edit }: WrittenChange): Promise<void> {
    const account = client.bare;
    if (this.#here.resourcesOf(account).length > 0) {
      const known = this.#here.accountOf(account);
      const roster = await this.#stored.rosterFor(account, after, known).catch((thrown) => {
        this.#here.failed("privacy.no-roster", thrown);
        void this.#here.readLater(account, true);
        return this.#here.accountOf(account)?.roster;
      });
      this.#here.apply(account, after, roster);
      // XEP-0016 §2.7: nobody else uses a list that its user removes.
      const own = this.#here.accountOf(account);
      const removed = edit.list?.items === undefined ? edit.list?.name : undefined;
      if (own !== undefined && removed !== undefined && this.activeOf(client) === removed) {
        this.#here.setActive(client, own, undefined);
      }
    }
    const pushes = pushesFor(before, after, edit);
    for (const { resourcepart } of await this.#sessionsOf(account)) {
      const to = parseJid(`${account.text}/${resourcepart}`) as FullJid; // it has a resource
      const isHere = this.#here.find(to)?.isOpen === true;
      for (const payload of pushes) {
        // The clients here have been told of the block list already.
        if (!isHere || payload.namespace !== BLOCKING_NAMESPACE) this.#push(to, payload);
      }
    }
  }

  /**
   * Makes all nodes with sessions of an account read its lists, after a change whose end is not known:
   * a connection may break between the commit and its answer. Never rejects.
   */
  async #doubt(account: BareJid): Promise<void> {
    if (this.#doubted.has(account.text)) return; // one may ask often while the database is away
    this.#doubted.add(account.text);
    await this.#here.readLater(account, true);
    this.#doubted.delete(account.text);
    if (this.#pauses.isClosed) return;
    for (const { resourcepart } of await this.#sessionsOf(account)) {
      this.#push(parseJid(`${account.text}/${resourcepart}`), CHANGE_SIGNAL);
    }
  }

  /** Sends a request in the name of the account to one of its sessions. */
  #push(to: Jid, payload: XmlElement): void {
    const id = `${this.#idPrefix}${(++this.#pushes).toString(36)}`;
    const iq = element("iq", { type: "set", id }, payload);
    this.#deps.route(buildStanza(iq, { from: to.bare, to }));
  }

  /**
   * Gives a push to the client, if it is meant for clients, and this one has not heard of the change. Of
   * changes of the block list clients hear from their own node.
   *
   * @param isLate true for the push of another node whose change was applied here before it came
   */
  #tell(to: FullJid, push: Stanza, { name, namespace, elements }: XmlElement, {
    isOwn,
    isLate = false,
  }: { readonly isOwn: boolean; readonly isLate?: boolean }): void {
    const follows = this.#here.find(to)?.follows;
    const isForClient = namespace === BLOCKING_NAMESPACE
      ? (name === "block" || name === "unblock") &&
        (isOwn ? follows !== "no" : isLate && follows === "perhaps")
      : elements[0]?.name === "list";
    if (isForClient) this.#deps.deliver(to, push);
  }

  /** Takes over the active list that a session had at the node from which it came. */
  #resume(jid: FullJid, name: string): void {
    const session = this.#here.find(jid);
    const take = () => {
      // It may have ended, and its client may have chosen.
      if (session?.mayHaveActive !== true || this.#here.find(jid) !== session) return;
      const account = this.#here.accountOf(jid.bare);
      const list = account?.privacy.lists.get(name);
      if (account === undefined || list === undefined) return;
      session.mayHaveActive = false;
      this.#here.setActive(jid, account, list);
    };
    take();
    // Another node may just have made the list.
    if (session?.mayHaveActive === true) void this.#here.readLater(jid.bare).then(take);
  }

  async #sessionsOf(
    account: BareJid,
  ): Promise<readonly { readonly resourcepart: string }[]> {
    const { text, domainpart } = account;
    const { hosts: { globalHost, localHost }, everywhere } = this.#deps;
    const resources = new Set(this.#here.resourcesOf(account));
    for (const { host, resourcepart } of (await everywhere([text])).get(text) ?? []) {
      // Accounts of other hosts have sessions at this datacenter alone.
      if (domainpart === globalHost || host === localHost) resources.add(resourcepart);
    }
    return [...resources].map((resourcepart) => ({ resourcepart }));
  }
}
