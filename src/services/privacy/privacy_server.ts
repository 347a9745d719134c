import type { BackoffOptions, CancelTimer } from "../../base/mod.ts";
import { backoffMs, CausewayError, describeError, Pauses } from "../../base/mod.ts";
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
  Turns,
} from "../../xmpp/mod.ts";
import type { IqRequest } from "../iq_service.ts";
import type { AppliedList, Privacy, PrivacyRoster } from "./account_privacy.ts";
import { AccountPrivacy, blockedOf, isDenied, NO_PRIVACY } from "./account_privacy.ts";
import type { PrivacyDecision, PrivacyError, WrittenChange } from "./list_changes.ts";
import { ListChanges } from "./list_changes.ts";
import type { PrivacyItem, PrivacyList } from "./privacy_list.ts";
import {
  aspectInbound,
  aspectOutbound,
  deniesOthers,
  devicesIn,
  groupsIn,
} from "./privacy_list.ts";
import { DefaultLists, isDamaged } from "./default_lists.ts";
import { PrivacyMetrics } from "./privacy_metrics.ts";
import type { PrivacyDeps, PrivacyView } from "./privacy_ports.ts";
import { BLOCKING_NAMESPACE, PRIVACY_NAMESPACE } from "./privacy_xml.ts";
import { activeSignal, blockingPushes, CHANGE_SIGNAL, pushesFor } from "./privacy_pushes.ts";
import { StoredLists } from "./stored_lists.ts";
import { VersionBatches } from "./version_batches.ts";

/** Attempts to read lists that have changed elsewhere. Later the regular look finds them. */
const MAX_READS = 10;
/** Milliseconds after which an account's lists are looked at again: several times a replication delay. */
const LOOK_AGAIN_MS = 5_000;
const READ_PAUSES: BackoffOptions = { firstMs: 500, maxMs: 30_000, jitter: 0.5 };

/** Another session of the client's account. */
export interface OtherSession {
  /** Name of its active list. Undefined for none, and for a session of another node. */
  readonly active: string | undefined;
}

/**
 * Privacy lists and block lists (XEP-0016, XEP-0191) of the accounts with sessions at this node.
 *
 * The lists of an account are read when a session opens, and stay in memory until its last session
 * here is gone: no stanza waits for the database. A change is written, applied here, and told to
 * all sessions of the account by pushes. The node of a session that gets a push reads the lists
 * again. Each node tells its clients how the block list changes by what it applies.
 */
export class PrivacyServer {
  /** Default lists of accounts, wherever their sessions are. */
  readonly defaults: DefaultLists;
  readonly #changes: ListChanges;
  readonly #deps: PrivacyDeps;
  readonly #metrics: PrivacyMetrics;
  readonly #versions: VersionBatches;
  readonly #stored: StoredLists;
  /** Sessions here of every account whose host has lists. */
  readonly #here = new Map<string, SessionsHere>();
  /** Accounts among them that have, or had, lists. */
  readonly #accounts = new Map<string, AccountPrivacy>();
  /** Reads and changes of one account run one after another. */
  readonly #turns = new Turns();
  /** Reads that have not begun, by account: whoever needs one joins it. */
  readonly #reads = new Map<string, Promise<void>>();
  /** Accounts with changes whose end is not known. */
  readonly #doubted = new Set<string>();
  readonly #pauses: Pauses;
  #pushes = 0;

  constructor(deps: PrivacyDeps) {
    this.#deps = deps;
    this.#metrics = new PrivacyMetrics(deps.metrics, () => this.#accounts.size);
    const stored = this.#stored = new StoredLists(deps.hosts);
    this.defaults = new DefaultLists({
      hosts: deps.hosts,
      log: deps.log,
      stored,
      metrics: this.#metrics,
      isRead: (account) => this.#here.get(account)?.isRead === true,
      known: (account) => this.#accounts.get(account),
    });
    this.#pauses = new Pauses(deps.clock);
    this.#changes = new ListChanges({
      hosts: deps.hosts,
      stored,
      known: ({ text }) => this.#accounts.get(text)?.privacy,
      doubtful: (account) => void this.#doubt(account),
      pauses: this.#pauses,
    });
    this.#versions = new VersionBatches((host) => this.#stored.store(host));
  }

  /** True when the list of a session here keeps the stanza from it. Counts the stanza then. */
  refuses(session: FullJid, stanza: Stanza): boolean {
    if (!this.wouldRefuse(session, stanza)) return false;
    this.#metrics.blocked("in", stanza.kind);
    return true;
  }

  /** As `refuses`, and counts nothing. */
  wouldRefuse(session: FullJid, stanza: Stanza): boolean {
    const account = this.#accounts.get(session.bare.text);
    return account?.denies(session, stanza.from, aspectInbound(stanza)) === true;
  }

  /** True when no session here gets the presence, if any of its recipients is here. */
  refusesPresence(presence: Stanza): boolean {
    const { to, from } = presence;
    const account = this.#accounts.get(to.bare.text);
    if (account === undefined) return false;
    const resources = this.#here.get(to.bare.text)?.resources;
    if (resources === undefined) return false;
    const aspect = aspectInbound(presence);
    for (const resource of to instanceof FullJid ? [to.resourcepart] : resources.keys()) {
      if (!isDenied(account.appliedTo(resource), to, from, aspect)) return false;
    }
    this.#metrics.blocked("in", "presence");
    return true;
  }

  /** True when the list of the session that sends a stanza keeps it here. Counts the stanza then. */
  holdsBack(session: Jid, stanza: Stanza): boolean {
    const account = this.#accounts.get(session.bare.text);
    if (account === undefined || !(session instanceof FullJid)) return false;
    if (!account.denies(session, stanza.to, aspectOutbound(stanza))) return false;
    this.#metrics.blocked("out", stanza.kind);
    return true;
  }

  /** What the list of a session here hides of presence. */
  viewOf(session: FullJid): PrivacyView {
    const account = this.#accounts.get(session.bare.text);
    return account === undefined
      ? EVERYTHING
      : viewOf(session, account.appliedTo(session.resourcepart));
  }

  /**
   * True for a session here that its active list makes invisible: to everybody, or to all but those
   * whom the list names.
   */
  isInvisible({ bare, resourcepart }: FullJid): boolean {
    const active = this.#accounts.get(bare.text)?.active.get(resourcepart);
    return active !== undefined && deniesOthers(active, "presence-out");
  }

  /**
   * Reads the lists of an account before its session gets or sends anything. `closed` follows, if
   * this fails too. Never rejects.
   *
   * @returns the condition of the error when the lists cannot be read: without them nobody would be
   * kept out
   */
  async opening(session: FullJid): Promise<PrivacyFailure | undefined> {
    const { bare, resourcepart } = session;
    if (this.#deps.hosts.store(bare.domainpart) === undefined) return undefined;
    let here = this.#here.get(bare.text);
    if (here === undefined) {
      this.#here.set(
        bare.text,
        here = { resources: new Map(), isRead: false, cancelLook: () => {} },
      );
    }
    const own: SessionHere = { isOpen: false, follows: "no", mayHaveActive: false };
    here.resources.set(resourcepart, own);
    try {
      await this.#readSoon(bare);
      // Who changes the lists just now may not know of the session yet, and pushes nothing to it.
      if (!here.isRead) {
        here.cancelLook = this.#deps.clock.after(LOOK_AGAIN_MS, () => void this.#readLater(bare));
      }
      here.isRead = own.isOpen = true;
      return undefined;
    } catch (thrown) {
      own.isOpen = here.isRead; // another session keeps the lists current
      if (own.isOpen) return undefined;
      this.#failed("privacy.unread", thrown);
      return codeOf(thrown) === "storage/pool-full"
        ? "resource-constraint"
        : "internal-server-error";
    }
  }

  /** A session came from another node: whether its client uses the block list is not known. */
  arrived(session: FullJid): void {
    const here = this.#find(session);
    if (here === undefined) return;
    here.follows = "perhaps";
    here.mayHaveActive = true;
  }

  /** Forgets a session that has ended, or has moved away. Its active list follows it there. */
  closed(session: FullJid): void {
    const { bare, resourcepart } = session;
    const account = this.#accounts.get(bare.text);
    const active = account?.active.get(resourcepart);
    if (active !== undefined) {
      account!.active.delete(resourcepart);
      this.#push(session, activeSignal(active.name));
    }
    const here = this.#here.get(bare.text);
    here?.resources.delete(resourcepart);
    if (here?.resources.size !== 0) return;
    here.cancelLook();
    this.#here.delete(bare.text);
    this.#accounts.delete(bare.text);
  }

  /** Reads no lists from now on, and waits until nothing is read or written any more. */
  async close(): Promise<void> {
    this.#pauses.close();
    await this.#turns.settled();
  }

  /** Waits until nothing is read or written any more. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /**
   * Looks whether the lists of accounts with sessions here have changed, or the rosters that they need,
   * where news of it was lost. Never rejects.
   */
  async look(host: string, localparts: readonly string[]): Promise<void> {
    const store = this.#deps.hosts.store(host);
    if (store === undefined || this.#pauses.isClosed) return;
    try {
      const versions = await store.versions(localparts);
      for (const localpart of localparts) {
        const text = `${localpart}@${host}`;
        const known = this.#accounts.get(text);
        const isSame = (known?.privacy.version ?? 0) === (versions.get(localpart) ?? 0);
        // The version says nothing of the roster, whose push may have been lost.
        if (!this.#here.has(text) || (isSame && known?.roster === undefined)) continue;
        await this.#readSoon(parseJid(text).bare, true).catch((thrown) => {
          // The lists of this account are damaged. Another failure would meet the next one as well.
          if (!isDamaged(thrown)) throw thrown;
          this.#failed("privacy.unread", thrown);
        });
      }
    } catch (thrown) {
      this.#failed("privacy.unchecked", thrown);
    }
  }

  /**
   * Takes a push in the name of a session's own account, if it concerns lists: the lists are read
   * again, and the client hears of what has changed. False for all other stanzas.
   */
  takes(stanza: Stanza): boolean {
    const { kind, type, from, to, bytes } = stanza;
    if (kind !== "iq" || type !== "set" || from.text !== to.bare.text) return false;
    if (!(to instanceof FullJid) || this.#find(to) === undefined) return false;
    const child = onlyChild(stanzaSource(bytes));
    if (child === undefined) return false;
    if (child.namespace === "jabber:iq:roster") {
      if (this.#accounts.get(from.text)?.roster !== undefined) this.#readLater(to.bare, true);
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
      const known = this.#accounts.get(from.text)?.privacy;
      void this.#readLater(to.bare).then(() => {
        const isLate = known === this.#accounts.get(from.text)?.privacy;
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
    const session = this.#find(client);
    if (session === undefined) return blockedOf(await this.#changes.read(client.bare));
    await this.#readSoon(client.bare);
    session.follows = "yes";
    return blockedOf(this.#accounts.get(client.bare.text)?.privacy ?? NO_PRIVACY);
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
    return this.#accounts.get(bare.text)?.active.get(resourcepart)?.name;
  }

  /** Returns the other sessions of a client's account, in all datacenters. */
  async othersOf({ bare, resourcepart: own }: FullJid): Promise<readonly OtherSession[]> {
    const active = this.#accounts.get(bare.text)?.active;
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
    const session = this.#find(client);
    if (session === undefined) return "not-allowed";
    if (name !== undefined) await this.#readSoon(bare); // another node may just have made the list
    const account = this.#accounts.get(bare.text);
    const list = name === undefined ? undefined : account?.privacy.lists.get(name);
    if (name !== undefined && list === undefined) return "item-not-found";
    if (this.#find(client) !== session) return "not-allowed"; // it has ended meanwhile
    session.mayHaveActive = false; // this list, whatever it had at the node from which it came
    if (account !== undefined) this.#setActive(client, account, list);
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
    return this.#turns.run(account.text, async () => {
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
    if (this.#here.has(account.text)) {
      const known = this.#accounts.get(account.text);
      const roster = await this.#stored.rosterFor(account, after, known).catch((thrown) => {
        this.#failed("privacy.no-roster", thrown);
        void this.#readLater(account, true);
        return this.#accounts.get(account.text)?.roster;
      });
      this.#apply(account, after, roster);
      // XEP-0016 §2.7: nobody else uses a list that its user removes.
      const own = this.#accounts.get(account.text);
      const removed = edit.list?.items === undefined ? edit.list?.name : undefined;
      if (own !== undefined && removed !== undefined && this.activeOf(client) === removed) {
        this.#setActive(client, own, undefined);
      }
    }
    const pushes = pushesFor(before, after, edit);
    for (const { resourcepart } of await this.#sessionsOf(account)) {
      const to = parseJid(`${account.text}/${resourcepart}`) as FullJid; // it has a resource
      const isHere = this.#find(to)?.isOpen === true;
      for (const payload of pushes) {
        // Of the block list the clients here have been told already.
        if (!isHere || payload.namespace !== BLOCKING_NAMESPACE) this.#push(to, payload);
      }
    }
  }

  /**
   * Has all nodes with sessions of an account read its lists, after a change whose end is not known:
   * a connection may break between the commit and its answer. Never rejects.
   */
  async #doubt(account: BareJid): Promise<void> {
    if (this.#doubted.has(account.text)) return; // one may ask often while the database is away
    this.#doubted.add(account.text);
    await this.#readLater(account, true);
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
    const follows = this.#find(to)?.follows;
    const isForClient = namespace === BLOCKING_NAMESPACE
      ? (name === "block" || name === "unblock") &&
        (isOwn ? follows !== "no" : isLate && follows === "perhaps")
      : elements[0]?.name === "list";
    if (isForClient) this.#deps.deliver(to, push);
  }

  /** Takes over the active list that a session had at the node from which it came. */
  #resume(jid: FullJid, name: string): void {
    const session = this.#find(jid);
    const take = () => {
      // It may have ended, and its client may have chosen.
      if (session?.mayHaveActive !== true || this.#find(jid) !== session) return;
      const account = this.#accounts.get(jid.bare.text);
      const list = account?.privacy.lists.get(name);
      if (account === undefined || list === undefined) return;
      session.mayHaveActive = false;
      this.#setActive(jid, account, list);
    };
    take();
    // Another node may just have made the list.
    if (session?.mayHaveActive === true) void this.#readLater(jid.bare).then(take);
  }

  #setActive(session: FullJid, account: AccountPrivacy, list: PrivacyList | undefined): void {
    const before = account.appliedTo(session.resourcepart);
    if (list === undefined) account.active.delete(session.resourcepart);
    else account.active.set(session.resourcepart, list);
    this.#reviewed(session, before, account.appliedTo(session.resourcepart));
  }

  async #sessionsOf(
    { text, domainpart }: BareJid,
  ): Promise<readonly { readonly resourcepart: string }[]> {
    const { hosts: { globalHost, localHost }, everywhere } = this.#deps;
    const resources = new Set(this.#here.get(text)?.resources.keys());
    for (const { host, resourcepart } of (await everywhere([text])).get(text) ?? []) {
      // Accounts of other hosts have sessions at this datacenter alone.
      if (domainpart === globalHost || host === localHost) resources.add(resourcepart);
    }
    return [...resources].map((resourcepart) => ({ resourcepart }));
  }

  /** Reads lists that have changed elsewhere, again and again until it succeeds. Never rejects. */
  async #readLater(account: BareJid, isForced = false): Promise<void> {
    for (let attempt = 1; attempt <= MAX_READS; attempt++) {
      if (this.#pauses.isClosed || !this.#here.has(account.text)) return;
      try {
        return await this.#readSoon(account, isForced);
      } catch (thrown) {
        this.#failed("privacy.unread", thrown);
      }
      if (this.#pauses.isClosed || attempt === MAX_READS) return;
      await this.#pauses.pause(backoffMs(attempt, READ_PAUSES));
    }
  }

  /**
   * Reads the lists of an account with sessions here, if they have changed.
   *
   * @param isForced reads them in any case, and the roster with them
   * @throws CausewayError with a code `storage/…`
   */
  #readSoon(account: BareJid, isForced = false): Promise<void> {
    const key = isForced ? `! ${account.text}` : account.text;
    const waiting = this.#reads.get(key);
    if (waiting !== undefined) return waiting;
    const read = this.#turns.run(account.text, async () => {
      await null; // so that `#reads` has this read, and has it no more once it asks the database
      this.#reads.delete(key);
      const { domainpart, localpart, text } = account;
      const known = this.#accounts.get(text);
      if (!isForced) {
        const version = await this.#versions.find(domainpart, localpart);
        if (version === (known?.privacy.version ?? 0)) return;
      }
      const found = await this.#stored.read(account, known);
      this.#apply(account, found?.privacy ?? NO_PRIVACY, found?.roster);
    });
    this.#reads.set(key, read);
    return read;
  }

  /**
   * Applies what is stored now to all sessions of the account here, which may have ended meanwhile.
   * Clients hear of what changes in the block list by that: in order, whichever pushes are lost or late.
   */
  #apply(account: BareJid, privacy: Privacy, roster: PrivacyRoster | undefined): void {
    const here = this.#here.get(account.text);
    if (here === undefined) return;
    const open = [...here.resources].filter(([, { isOpen }]) => isOpen);
    let known = this.#accounts.get(account.text);
    const pushes = blockingPushes(known?.privacy ?? NO_PRIVACY, privacy);
    const before = open.map(([resourcepart]) => known?.appliedTo(resourcepart) ?? NO_LIST);
    if (known !== undefined) known.update(privacy, roster);
    else this.#accounts.set(account.text, known = new AccountPrivacy(account, privacy, roster));
    for (const [index, [resourcepart, { follows }]] of open.entries()) {
      const session = parseJid(`${account.text}/${resourcepart}`) as FullJid; // it has a resource
      if (follows !== "no") {
        for (const payload of pushes) this.#push(session, payload);
      }
      this.#reviewed(session, before[index]!, known.appliedTo(resourcepart));
    }
    if (privacy.version === 0 && known.active.size === 0) this.#accounts.delete(account.text);
  }

  #reviewed(session: FullJid, before: AppliedList, after: AppliedList): void {
    const isSame = before.list === after.list &&
      (before.roster === after.roster || after.list?.needsRoster !== true);
    if (isSame) return;
    this.#deps.changed(session, { before: viewOf(session, before), after: viewOf(session, after) });
  }

  #find({ bare, resourcepart }: FullJid): SessionHere | undefined {
    return this.#here.get(bare.text)?.resources.get(resourcepart);
  }

  #failed(event: string, thrown: unknown): void {
    this.#metrics.failures.inc();
    this.#deps.log.warn(event, { error: describeError(thrown) });
  }
}

/** A session at this node. One that takes its full JID later is another one. */
interface SessionHere {
  /** False until the lists have been read for it. Until then no list is a change for it. */
  isOpen: boolean;
  /**
   * Says whether the client gets pushes of the block list (XEP-0191 §3.3). "perhaps": it came from
   * another node, where it may have asked for that list, and may have heard of other changes.
   */
  follows: "no" | "yes" | "perhaps";
  /**
   * True for a session that came from another node, until that node has told its active list, or its
   * client has chosen.
   */
  mayHaveActive: boolean;
}

/** The sessions of an account at this node. */
interface SessionsHere {
  readonly resources: Map<string, SessionHere>;
  /** True once the lists were read for one of them. */
  isRead: boolean;
  /** Ends the wait for the second look at the lists. */
  cancelLook: CancelTimer;
}

/** Condition of the error for a session whose account's lists cannot be read. */
export type PrivacyFailure = "internal-server-error" | "resource-constraint";

const NO_LIST: AppliedList = { list: undefined, roster: undefined };

const EVERYTHING: PrivacyView = { hidesFrom: () => false, isDeafTo: () => false, devices: [] };

function viewOf(session: FullJid, applied: AppliedList): PrivacyView {
  if (applied.list === undefined) return EVERYTHING;
  return {
    hidesFrom: (contact) => isDenied(applied, session, contact, "presence-out"),
    isDeafTo: (contact) => isDenied(applied, session, contact, "presence-in"),
    devices: devicesIn(applied.list),
  };
}

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof CausewayError ? thrown.code : undefined;
}
