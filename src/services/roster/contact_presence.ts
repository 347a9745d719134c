import type { PacedTask } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { RosterContact } from "../../storage/mod.ts";
import { isSeen, seesPresence } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { parseJid, readdress } from "../../xmpp/mod.ts";
import type { AccountUse } from "../iq_service.ts";
import type { AccountHosts, AccountReach, SessionsByAccount } from "./account_reach.ts";
import type { AccountTurns, StepKind } from "./account_turns.ts";
import { PresenceRetries } from "./presence_retries.ts";
import type { PresenceSignal } from "./presence_signal.ts";
import { partedPayload } from "./presence_signal.ts";
import { bareEnd, probe, requestOf, subscribe, unavailable } from "./presence_stanzas.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { PresenceView, RosterDeps } from "./roster_ports.ts";
import type { Missed } from "./second_look.ts";
import { SecondLook } from "./second_look.ts";

/** Collaborators of `ContactPresence`. */
export interface ContactPresenceDeps extends
  Pick<
    RosterDeps,
    "process" | "hosts" | "sessions" | "routes" | "privacy" | "approved" | "paced" | "clock" | "log"
  > {
  readonly reach: AccountReach;
  readonly turns: AccountTurns;
  readonly metrics: RosterMetrics;
  /** See `RosterServerDeps.isCurrent`. */
  isCurrent?(client: Jid, use: AccountUse): () => Promise<boolean>;
  /** Returns the full JIDs of the resources at other processes that a session here was told of. */
  toldTo(session: FullJid): readonly string[];
}

/** Accounts that presence is sent to in one piece of paced work: half a millisecond or so. */
const SENT_AT_ONCE = 8;
/** Accounts whose sessions are announced to a datacenter at once. */
const ANNOUNCED_AT_ONCE = 16;
/** Requests of one account that a login repeats: each costs the database several statements. */
const MAX_REPEATED = 50;
/** Attempts to tell of the end of a presence while the database fails: its session is gone. */
const MAX_ATTEMPTS = 10;

/** A session of this node. */
type SessionHere = ReturnType<RosterDeps["sessions"]["here"]>[number];

/** The end of a session's presence. */
interface Ending {
  readonly end: Stanza;
  /** Says what the session's list hid as it ended: its list is forgotten with the session. */
  readonly view: PresenceView;
}

/** A presence to tell of, or its end, or the news that the session is no longer here. */
type Change = Stanza | Ending | "left";

/** Accounts whose sessions are to be announced, by bare JID: one session of each, and the presences. */
type Announced = Map<string, { readonly jid: FullJid; readonly presences: Set<Stanza> }>;

/** The way in which presence goes to many accounts. */
interface Sending {
  readonly hosts: AccountHosts;
  /** True for the first presence of a session. */
  readonly isInitial: boolean;
  readonly pace: PacedTask;
}

/** Contacts of a session whose presence is told, and where they have sessions. */
interface Looked {
  readonly contacts: readonly RosterContact[];
  readonly told: readonly Jid[];
  /** Those who were told of the session before, and are not to be told any more. */
  readonly former: readonly Jid[];
  readonly probed: readonly Jid[];
  readonly found: SessionsByAccount;
  readonly hosts: AccountHosts;
}

/**
 * Presence between an account and its contacts (RFC 6121 §4): it is broadcast to those who may see
 * it, and asked for where the account may see it.
 *
 * A probe is allowed or refused by the first node that has the contact's roster. From there it goes
 * to each datacenter where the contact has sessions, and each node there answers for its own.
 */
export class ContactPresence {
  readonly #deps: ContactPresenceDeps;
  /** Contacts that were sent the presence of an available session here, by full JID. */
  readonly #told = new Map<string, readonly Jid[]>();
  /** Changes of sessions that are still to be told, by full JID. A session has an entry while it is told. */
  readonly #changes = new Map<string, Change[]>();
  readonly #retries: PresenceRetries<Stanza | Ending>;
  /** Those who wait for the contacts of a session whose presence is told, by full JID. */
  readonly #askers = new Map<string, PromiseWithResolvers<readonly RosterContact[] | undefined>>();
  /** Contacts whose subscription has ended while a session here is told, by full JID. */
  readonly #parted = new Map<string, Set<string>>();
  /** Full JIDs of told sessions whose account is gone, with its roster. */
  readonly #orphans = new Set<string>();
  /** Accounts that are still to be announced, by datacenter that is told of them. */
  readonly #announced = new Map<string, Announced>();
  readonly #secondLook: SecondLook;
  /** Requests that were repeated so far: each login goes on with the next ones. */
  #repeated = 0;
  #isClosed = false;

  constructor(deps: ContactPresenceDeps) {
    this.#deps = deps;
    this.#retries = new PresenceRetries(deps.clock);
    this.#secondLook = new SecondLook(deps);
  }

  /** Broadcasts what a session of this node has told the account's resources here. */
  changed(jid: FullJid, presence: Stanza): void {
    if (this.#deps.hosts.store(jid.domainpart) === undefined) return;
    this.#retries.giveUp(jid.text);
    const isEnd = presence.type === "unavailable";
    this.#add(jid, isEnd ? { end: presence, view: this.#viewOf(jid) } : presence);
  }

  /**
   * Takes over an available session that comes from another node: its contacts know of it.
   * @param isNew true when that node may not have told all of them, and will not any more
   */
  arrived(jid: FullJid, isNew: boolean): void {
    // It is back before the rest of its presence was dropped.
    if (this.#hasMoved(jid)) this.#changes.get(jid.text)!.pop();
    // What an earlier session with its full JID has left untold, its own presence has made outdated.
    this.#retries.giveUp(jid.text);
    this.#told.set(jid.text, []);
    if (isNew && this.#deps.hosts.store(jid.domainpart) !== undefined) this.#lookForNew(jid);
  }

  /** Forgets a session that has ended, or has moved to another node. */
  left(jid: FullJid): void {
    if (!isEnding(this.#retries.waiting(jid.text))) this.#retries.giveUp(jid.text);
    const isKnown = this.#told.has(jid.text) || this.#orphans.has(jid.text);
    if (isKnown || this.#changes.has(jid.text)) this.#add(jid, "left");
  }

  /** Notes that the rosters no longer say who knows of these sessions here: their account is gone. */
  gone(sessions: readonly FullJid[]): void {
    for (const { text } of sessions) if (this.#told.has(text)) this.#orphans.add(text);
  }

  /**
   * Tells contacts and the client of a session here what a change of its privacy list means: who no
   * longer sees whom sees them leave, and who sees them again sees them come (XEP-0191 §3.3, §3.4).
   */
  reviewed(
    jid: FullJid,
    change: { readonly before: PresenceView; readonly after: PresenceView },
  ): void {
    if (this.#deps.hosts.store(jid.domainpart) === undefined) return;
    const { turns, toldTo } = this.#deps;
    // By now: presence that the new list keeps out counts as never told.
    const told = toldTo(jid);
    // Behind presence that is being told: it was told by the list before.
    turns.runAlways(jid.text, () => this.#review(jid, change, told));
  }

  /**
   * Returns the contacts of a session's account, as they are read to tell them its presence. Resolves
   * when they have been told: to undefined when that failed, or when nothing was to be told. Never
   * rejects.
   */
  async contactsTold(jid: FullJid): Promise<readonly RosterContact[] | undefined> {
    if (!this.#changes.has(jid.text)) return undefined;
    let asker = this.#askers.get(jid.text);
    if (asker === undefined) this.#askers.set(jid.text, asker = Promise.withResolvers());
    return await asker.promise;
  }

  /** Tries nothing again from now on. */
  close(): void {
    this.#isClosed = true;
    this.#secondLook.close();
    this.#retries.close();
  }

  /** True while contacts may still be told of a session's last presence. */
  isTelling({ text }: FullJid): boolean {
    return this.#changes.has(text) || this.#retries.waiting(text) !== undefined;
  }

  /**
   * Sends the presence of all sessions of this node to their contacts at one datacenter, which did
   * not know of them while it was cut off. A few accounts at a time: there may be very many. While
   * an earlier announcement runs, those accounts join it that it has done already.
   */
  announceAll(host: string): void {
    const { turns, metrics } = this.#deps;
    const running = this.#announced.get(host);
    if (running !== undefined) return this.#collect(running);
    const accounts: Announced = new Map();
    this.#announced.set(host, accounts);
    const cost = { payer: `announce ${host}`, bytes: 0, kind: "patient" } as const;
    const isTaken = turns.run(cost.payer, async () => {
      try {
        this.#collect(accounts);
        while (accounts.size > 0 && !this.#isClosed) await this.#announceSome(accounts, host);
      } finally {
        this.#announced.delete(host);
      }
    }, cost);
    if (isTaken) return;
    this.#announced.delete(host);
    metrics.failures.inc();
  }

  /** Replaces `accounts` by those of all available sessions here. */
  #collect(accounts: Announced): void {
    const { sessions, hosts } = this.#deps;
    accounts.clear();
    for (const { jid, lastPresence } of sessions.all()) {
      if (lastPresence === undefined || hosts.store(jid.domainpart) === undefined) continue;
      const account = accounts.get(jid.bare.text);
      if (account === undefined) {
        accounts.set(jid.bare.text, { jid, presences: new Set([lastPresence]) });
      } else account.presences.add(lastPresence);
    }
  }

  async #announceSome(accounts: Announced, host: string): Promise<void> {
    const steps: Promise<void>[] = [];
    for (const [text, { jid, presences }] of accounts) {
      accounts.delete(text);
      steps.push(this.#deps.paced.run(() => this.#announceAccount(jid, presences, host)));
      if (steps.length === ANNOUNCED_AT_ONCE) break;
    }
    await Promise.all(steps);
  }

  /** Sends those of an account's presences to one datacenter that still hold after the lookups. */
  async #announceAccount(
    jid: FullJid,
    presences: ReadonlySet<Stanza>,
    host: string,
  ): Promise<void> {
    const { sessions, reach, routes } = this.#deps;
    const contacts = await this.#contactsOf(jid);
    if (contacts === undefined) return;
    const subscribers = subscribersIn(contacts);
    const found = await reach.hostsOf([...subscribers, jid.bare]);
    for (const { jid: session, lastPresence } of sessions.here(jid.bare.text)) {
      // Another one has been told since.
      if (lastPresence === undefined || !presences.has(lastPresence)) continue;
      for (const to of [...this.#seenBy(session, subscribers), session.bare]) {
        if (found.get(to.text)?.has(host) !== true) continue;
        routes.sendTo(host, readdress(lastPresence, to));
      }
    }
  }

  /** Sends the presence of all sessions of `owner` to `contact`, who may see it from now on. */
  async announce(owner: Jid, contact: Jid): Promise<void> {
    const { reach, routes, hosts } = this.#deps;
    this.#deps.approved?.(owner, contact);
    const { globalHost, localHost } = hosts;
    const { domainpart } = contact;
    const isOurs = domainpart !== globalHost && domainpart !== localHost &&
      hosts.store(domainpart) !== undefined;
    if (!isOurs) {
      return await reach.spread([owner], (to) => probe(contact, to));
    }
    // Other datacenters take nothing from us in the name of people of our further hosts.
    routes.sendTo(localHost, probe(contact, owner));
  }

  /**
   * Sends `contact` the end of the presence of all sessions of `owner`. Each node tells of its own
   * sessions: it knows which of them are available, and what their lists hide.
   */
  async hide(owner: Jid, contact: Jid): Promise<void> {
    const { sessions, reach } = this.#deps;
    await Promise.all([
      this.#endFor(contact, sessions.here(owner.text)),
      reach.pushElsewhere(owner, partedPayload(contact)),
    ]);
  }

  /** Does as another node asks for a session here. False when the session is not here. */
  asked({ kind, session, contact }: PresenceSignal): boolean {
    const all = this.#deps.sessions.here(session.bare.text);
    const found = all.filter(({ jid }) => jid.text === session.text);
    if (kind === "parted") this.#spawn(this.#endFor(contact, found));
    else if (!this.#viewOf(session).hidesFrom(contact)) {
      for (const each of found) each.repeatDirected?.(contact);
    }
    return found.length > 0;
  }

  /**
   * Sends a contact the end of the presence of sessions here. A session that is not available, or that
   * its list hides from the contact, has ended for it before, or has never been there.
   */
  async #endFor(contact: Jid, sessions: readonly SessionHere[]): Promise<void> {
    const { reach } = this.#deps;
    const seen: FullJid[] = [];
    for (const { jid, lastPresence } of sessions) {
      this.#part(jid, contact);
      const told = this.#told.get(jid.text);
      if (told !== undefined) {
        this.#told.set(jid.text, told.filter(({ text }) => text !== contact.text));
      }
      // The end of its presence may wait to be told to those who are contacts then.
      const wasSeen = lastPresence !== undefined || this.isTelling(jid);
      if (wasSeen && !this.#viewOf(jid).hidesFrom(contact)) seen.push(jid);
    }
    if (seen.length === 0) return;
    const hosts = await reach.hostsOf([contact]);
    for (const jid of seen) reach.send(unavailable(jid, contact), hosts);
  }

  /** Has a session that is being told say nothing more to a contact. */
  #part({ text }: FullJid, contact: Jid): void {
    if (!this.#changes.has(text)) return;
    const parted = this.#parted.get(text);
    if (parted === undefined) this.#parted.set(text, new Set([contact.text]));
    else parted.add(contact.text);
  }

  /** Answers a probe with the presence of the account's sessions at this node. */
  answer(asker: Jid, account: Jid): void {
    const { routes, reach } = this.#deps;
    for (const presence of this.shownTo(asker, account)) {
      if (asker !== asker.bare) routes.route(readdress(presence, asker));
      else this.#spawn(reach.spread([asker], (to) => readdress(presence, to)));
    }
  }

  /** Returns the presences of the account's sessions at this node that do not hide from `asker`. */
  shownTo(asker: Jid, account: Jid): readonly Stanza[] {
    return this.#deps.sessions.here(account.text).flatMap(({ jid, lastPresence }) =>
      lastPresence === undefined || this.#viewOf(jid).hidesFrom(asker) ? [] : [lastPresence]
    );
  }

  /** Notes presence of a session elsewhere that is delivered to the sessions of an account here. */
  heard(presence: Stanza): void {
    const { from, to } = presence;
    if (!this.#secondLook.isWaiting || from === from.bare) return;
    for (const { jid } of this.#deps.sessions.here(to.bare.text)) {
      if (to === to.bare || to.text === jid.text) this.#secondLook.heard(jid, presence);
    }
  }

  /** Sends an allowed probe to all sessions of the account. */
  async forward(asker: Jid, account: Jid): Promise<void> {
    await this.#deps.reach.spread([account], (to) => probe(asker, to));
  }

  /**
   * Adds a change to what is to be told of a session. It replaces what would be told before it and
   * says nothing any more, so that a session has two presences waiting at most, however slow the
   * database is. None is left out: nobody else would tell of it.
   */
  #add(jid: FullJid, change: Change): void {
    const { turns } = this.#deps;
    const changes = this.#changes.get(jid.text);
    if (changes === undefined) {
      this.#changes.set(jid.text, [change]);
      // It has its place among other work from now on, however many log in later.
      const task = this.#deps.paced.task();
      return turns.runAlways(jid.text, () => this.#tellAll(jid, task), this.#kindOf(jid, change));
    }
    while (change !== "left" && isReplacedBy(changes.at(-1), change)) changes.pop();
    changes.push(change);
  }

  /** Returns the kind of the step that tells a change. */
  #kindOf({ text }: FullJid, change: Change): StepKind {
    if (change === "left") return "prompt";
    const told = this.#told.get(text);
    // The first presence of a session waits while very many log in. Nothing else waits for it.
    if (told === undefined && !isEnding(change)) return "patient";
    // Nobody here knows how many contacts were told of a session that has come from another node.
    const count = told?.length ?? 0;
    return count > 0 && count <= SENT_AT_ONCE ? "prompt" : "portioned";
  }

  async #tellAll(jid: FullJid, first: PacedTask): Promise<void> {
    let task = first;
    const changes = this.#changes.get(jid.text)!; // it stays until all is told
    let contacts: readonly RosterContact[] | undefined;
    try {
      for (let next = changes.shift(); next !== undefined; next = changes.shift()) {
        if (next === "left") this.#forget(jid);
        else if (isEnding(next)) await this.#withdraw(jid, next, task);
        else contacts = await this.#broadcast(jid, next, task);
        // Somebody who changes presence all the time does not go before others all the time.
        task = this.#deps.paced.task();
      }
    } finally {
      this.#changes.delete(jid.text);
      this.#parted.delete(jid.text);
      this.#askers.get(jid.text)?.resolve(contacts);
      this.#askers.delete(jid.text);
    }
  }

  #forget(jid: FullJid): void {
    this.#told.delete(jid.text);
    this.#orphans.delete(jid.text);
    this.#secondLook.forget(jid);
  }

  /** Tells of a presence or its end later, as the database failed. A newer one makes that needless. */
  #tryLater(jid: FullJid, change: Stanza | Ending): void {
    const followers = this.#changes.get(jid.text) ?? [];
    const isEnd = isEnding(change);
    // A session is gone as soon as its presence has ended: nobody else tells of the end.
    const isOutdated = followers.some((each) => !isEnd || each !== "left");
    if (isOutdated) return this.#retries.giveUp(jid.text);
    this.#retries.later(jid.text, change, {
      maxAttempts: isEnd ? MAX_ATTEMPTS : Infinity,
      again: () => this.#add(jid, change),
    });
  }

  /** Returns the contacts, as they were read for it; undefined when the database failed. */
  async #broadcast(
    jid: FullJid,
    presence: Stanza,
    task: PacedTask,
  ): Promise<readonly RosterContact[] | undefined> {
    const { paced } = this.#deps;
    const isInitial = !this.#told.has(jid.text);
    // Each piece of a first presence goes behind what came meanwhile. A later presence keeps its place.
    const pace = isInitial ? paced : task;
    // Its roster is read beside the check: the name may have another owner.
    const isCurrent = isInitial ? this.#deps.isCurrent?.(jid, "read")() : undefined;
    const looked = isInitial
      ? await paced.run(() => this.#lookUp(jid, isInitial, isCurrent))
      : await this.#lookUp(jid, isInitial);
    if (looked === "former") return undefined;
    if (looked === undefined) {
      this.#tryLater(jid, presence);
      return undefined;
    }
    const { contacts, told, former, probed, found, hosts } = looked;
    this.#endForFormer(this.#stillIn(jid, former), unavailable(jid, jid.bare), hosts);
    const isWhole = await this.#tell(jid, presence, { contacts: told, hosts, isInitial, pace });
    // Subscriptions may have ended while it waited: those contacts have been told so.
    this.#told.set(jid.text, this.#stillIn(jid, told));
    if (!isInitial) return contacts;
    // If it has moved and come back, all are told by the second look of its return.
    if (isWhole) this.#lookAgain(jid, { found, probed });
    await this.#sendEach(probed, { hosts, isInitial, pace, make: (to) => probe(jid, to) });
    await paced.run(() => {
      this.#toOwnElsewhere(jid, probe(jid, jid.bare), hosts);
      this.#bringRequests(jid, contacts);
    });
    return contacts;
  }

  /**
   * Finds those whom a presence is told, and who are asked for theirs; undefined: the database failed.
   * @param isCurrent resolves to false for a session of an account that is gone, which tells nobody
   */
  async #lookUp(
    jid: FullJid,
    isInitial: boolean,
    isCurrent?: Promise<boolean>,
  ): Promise<Looked | "former" | undefined> {
    const { reach } = this.#deps;
    const contacts = await this.#contactsOf(jid, { withRequests: isInitial });
    if (await isCurrent === false) {
      this.#told.set(jid.text, []);
      this.#orphans.add(jid.text); // nor of its end
      return "former";
    }
    if (contacts === undefined) return undefined;
    this.#retries.giveUp(jid.text);
    const told = this.#seenBy(jid, subscribersIn(contacts));
    const former = without(this.#told.get(jid.text) ?? [], told);
    this.#told.set(jid.text, told);
    const probed = isInitial ? this.#probedBy(jid, contacts) : [];
    // One lookup serves both ways.
    const all = [...told, ...former, ...probed, jid.bare];
    const found = await reach.sessionsOf(all);
    return { contacts, told, former, probed, found, hosts: reach.hostsWith(all, found) };
  }

  /**
   * Tells contacts, and the account's own clients, whose sessions were not known yet, and asks for
   * their presence: it may have come here before this session could get it.
   */
  #lookAgain(
    jid: FullJid,
    { found, probed }: { readonly found: SessionsByAccount; readonly probed: readonly Jid[] },
  ): void {
    this.#secondLook.later({
      jid,
      found,
      accounts: () => {
        const told = this.#told.get(jid.text);
        return Promise.resolve(told && this.#currentOf(jid) && [...told, ...probed, jid.bare]);
      },
      missed: async (all) => {
        // Subscriptions may have ended since the login.
        const contacts = await this.#contactsOf(jid);
        if (contacts !== undefined) this.#meet(jid, contacts, all);
      },
    });
  }

  /**
   * Makes the second look for a session that has come from another node. Nobody here knows whom the
   * first look found, so all contacts are told and asked.
   */
  #lookForNew(jid: FullJid): void {
    let contacts: readonly RosterContact[] | undefined;
    this.#secondLook.later({
      jid,
      found: new Map(),
      isFromElsewhere: true,
      accounts: async () => {
        if (this.#currentOf(jid) === undefined) return undefined;
        contacts = await this.#contactsOf(jid);
        if (contacts === undefined) return undefined;
        const told = this.#seenBy(jid, subscribersIn(contacts));
        return [...told, ...this.#sightsOf(jid, contacts).probed, jid.bare];
      },
      missed: (all) => Promise.resolve(contacts && this.#meet(jid, contacts, all)),
    });
  }

  /** Tells those whom the first look has missed, and asks for their presence. */
  #meet(jid: FullJid, contacts: readonly RosterContact[], missed: readonly Missed[]): void {
    const { routes } = this.#deps;
    const presence = this.#currentOf(jid);
    if (presence === undefined) return;
    const told = textsOf([...this.#seenBy(jid, subscribersIn(contacts)), jid.bare]);
    const asked = textsOf([...this.#sightsOf(jid, contacts).probed, jid.bare]);
    for (const { account, host, isNew, isUnheard } of missed) {
      if (isNew && told.has(account.text)) routes.sendTo(host, readdress(presence, account));
      // By this session itself: its node drops presence for the account that it has had.
      if (isUnheard && asked.has(account.text)) routes.sendTo(host, probe(jid, account));
    }
  }

  /** Returns the presence that a session here has broadcast last; undefined: it is not available. */
  #currentOf({ bare, text }: FullJid): Stanza | undefined {
    return this.#deps.sessions.here(bare.text).find(({ jid }) => jid.text === text)?.lastPresence;
  }

  async #withdraw(jid: FullJid, ending: Ending, task: PacedTask): Promise<void> {
    const { end, view } = ending;
    const found = await this.#contactsOf(jid);
    const told = this.#told.get(jid.text) ?? [];
    this.#told.delete(jid.text);
    // Without the database, those are told who were told of the presence.
    const isOrphan = this.#orphans.has(jid.text);
    const all = found === undefined || isOrphan ? told : subscribersIn(found);
    const contacts = all.filter((contact) => !view.hidesFrom(contact));
    const former = without(told, contacts);
    if (found === undefined) this.#tryLater(jid, ending);
    else this.#retries.giveUp(jid.text);
    const hosts = await this.#deps.reach.hostsOf([...contacts, ...former, jid.bare]);
    this.#endForFormer(former, bareEnd(end), hosts);
    await this.#tell(jid, end, { contacts, hosts, isInitial: false, pace: task });
  }

  /**
   * Ends the presence of a session for those who were told of it, and may not see it any more. The
   * request to do so, or the change of the list, may not have had its effect here.
   */
  #endForFormer(former: readonly Jid[], end: Stanza, hosts: AccountHosts): void {
    for (const to of former) this.#deps.reach.send(readdress(end, to), hosts);
  }

  /**
   * Sends to contacts, and to the account's own resources in other datacenters. Nobody is told the
   * presence of a session that has moved meanwhile: its end at the other node may come first.
   *
   * @returns false when somebody was not told for that reason
   */
  async #tell(jid: FullJid, presence: Stanza, { contacts, ...sending }: Sending & {
    readonly contacts: readonly Jid[];
  }): Promise<boolean> {
    const { hosts } = sending;
    const isEnd = presence.type === "unavailable";
    let isWhole = true;
    const holds = () => {
      const isOurs = isEnd || !this.#hasMoved(jid);
      if (!isOurs) isWhole = false;
      return isOurs;
    };
    const mayHear = ({ text }: Jid) =>
      holds() && (isEnd || this.#parted.get(jid.text)?.has(text) !== true);
    await this.#sendEach(contacts, {
      ...sending,
      make: (to) => mayHear(to) ? readdress(presence, to) : undefined,
    });
    if (holds()) this.#toOwnElsewhere(jid, presence, hosts);
    return isWhole;
  }

  /** True for a session that is told, and is at another node by now, which tells of it. */
  #hasMoved({ text }: FullJid): boolean {
    const changes = this.#changes.get(text);
    // Without an end, the session has not ended but moved.
    return changes?.at(-1) === "left" &&
      !changes.some(isEnding);
  }

  /**
   * Sends presence to accounts that have sessions: a few at a time if there are more, or if it is the
   * first of a session.
   * @param options.make returns the stanza for an account when its turn comes; undefined: none
   */
  async #sendEach(accounts: readonly Jid[], { hosts, isInitial, pace, make }: Sending & {
    readonly make: (to: Jid) => Stanza | undefined;
  }): Promise<void> {
    const { reach } = this.#deps;
    const reached = accounts.filter((account) => reach.reaches(account, hosts));
    const sendTo = (some: readonly Jid[]) => {
      for (const to of some) {
        const stanza = make(to);
        if (stanza !== undefined) reach.send(stanza, hosts);
      }
    };
    if (!isInitial && reached.length <= SENT_AT_ONCE) return sendTo(reached);
    for (let start = 0; start < reached.length; start += SENT_AT_ONCE) {
      await pace.run(() => sendTo(reached.slice(start, start + SENT_AT_ONCE)));
    }
  }

  /** Returns those of the contacts whose subscriptions have not ended while the session was told. */
  #stillIn({ text }: FullJid, contacts: readonly Jid[]): readonly Jid[] {
    const parted = this.#parted.get(text);
    return parted === undefined
      ? contacts
      : contacts.filter((contact) => !parted.has(contact.text));
  }

  #toOwnElsewhere({ bare }: FullJid, presence: Stanza, hosts: AccountHosts): void {
    const { routes, hosts: { localHost } } = this.#deps;
    for (const host of hosts.get(bare.text) ?? []) {
      if (host !== localHost) routes.sendTo(host, presence);
    }
  }

  /**
   * Returns the contacts whose rosters let the owner see their presence, as the same query has
   * found. Contacts whose rosters lie elsewhere get a probe that is decided on there.
   */
  #probedBy(session: FullJid, contacts: readonly RosterContact[]): readonly Jid[] {
    const { probed, elsewhere } = this.#sightsOf(session, contacts);
    for (const contact of elsewhere) this.#deps.routes.route(probe(session.bare, contact));
    return probed;
  }

  /**
   * Returns the contacts whose presence the owner may see by both rosters, and those whose rosters
   * lie elsewhere.
   */
  #sightsOf(session: FullJid, contacts: readonly RosterContact[]): {
    readonly probed: readonly Jid[];
    readonly elsewhere: readonly Jid[];
  } {
    const view = this.#viewOf(session);
    const probed: Jid[] = [];
    const elsewhere: Jid[] = [];
    for (const { jid, subscription, reverse } of contacts) {
      if (!isSeen(subscription)) continue;
      const contact = parseJid(jid);
      if (view.isDeafTo(contact)) continue;
      if (!this.#hasRosterHere(session, contact)) elsewhere.push(contact);
      else if (seesPresence(reverse)) probed.push(contact);
    }
    return { probed, elsewhere };
  }

  /** Brings open requests to the client, and repeats the account's own (RFC 6121 §3.1.2). */
  #bringRequests(jid: FullJid, contacts: readonly RosterContact[]): void {
    const { routes } = this.#deps;
    for (const { jid: contact, request } of contacts) {
      if (request !== undefined) {
        routes.offer(jid, requestOf(parseJid(contact), jid.bare, request));
      }
    }
    const view = this.#viewOf(jid);
    const asked = contacts.filter((each) => each.isAsking && !view.hidesFrom(parseJid(each.jid)));
    const count = Math.min(asked.length, MAX_REPEATED);
    for (let i = 0; i < count; i++) {
      const { jid: contact } = asked[(this.#repeated + i) % asked.length]!;
      routes.route(subscribe(jid.bare, parseJid(contact)));
    }
    this.#repeated += count;
  }

  async #review(
    jid: FullJid,
    { before, after }: { readonly before: PresenceView; readonly after: PresenceView },
    toldBefore: readonly string[],
  ): Promise<void> {
    const { sessions, routes, reach } = this.#deps;
    const current = sessions.here(jid.bare.text).find((each) => each.jid.text === jid.text);
    if (current === undefined) return;
    const isParted = (contact: Jid) => !before.hidesFrom(contact) && after.hidesFrom(contact);
    const left = unavailable(jid, jid.bare);
    for (const to of current.directed) if (isParted(to)) routes.route(readdress(left, to));
    const presence = current.lastPresence;
    if (presence === undefined) return;
    const contacts = await this.#contactsOf(jid);
    if (contacts === undefined) return;
    const subscribers = subscribersIn(contacts);
    const parted = subscribers.filter(isParted);
    const met = subscribers.filter((to) => before.hidesFrom(to) && !after.hidesFrom(to));
    this.#told.set(jid.text, this.#seenBy(jid, subscribers));
    await reach.spread(parted, (to) => unavailable(jid, to));
    await reach.spread(met, (to) => readdress(presence, to));
    const changed = (was: PresenceView, is: PresenceView) =>
      contacts.filter(({ jid: contact, subscription }) => {
        const address = parseJid(contact);
        return isSeen(subscription) && !was.isDeafTo(address) && is.isDeafTo(address);
      });
    this.#takeLeave(jid, changed(before, after), toldBefore);
    const heard = changed(after, before);
    if (heard.length === 0) return;
    const probed = this.#probedBy(jid, heard);
    const hosts = await reach.hostsOf(probed);
    for (const contact of probed) reach.send(probe(jid, contact), hosts);
  }

  /**
   * Tells a client that contacts whose presence it no longer gets are gone (XEP-0016 §2.10): those of
   * their resources that it was told of. Others may hide from it.
   *
   * @param told full JIDs of the resources elsewhere that the client was told of
   */
  #takeLeave(to: FullJid, contacts: readonly RosterContact[], told: readonly string[]): void {
    const { sessions, routes } = this.#deps;
    if (contacts.length === 0) return;
    const known = new Map<string, Set<string>>(contacts.map(({ jid }) => [jid, new Set()]));
    for (const text of told) known.get(accountIn(text))?.add(text);
    for (const contact of contacts) {
      const resources = known.get(contact.jid)!; // it has each of them
      for (const session of sessions.here(contact.jid)) {
        if (this.#isShownTo(to, contact, session)) resources.add(session.jid.text);
      }
      for (const text of resources) routes.deliver(to, unavailable(parseJid(text), to));
    }
  }

  /** True when a contact's session at this node has told its presence to another session here. */
  #isShownTo(
    to: FullJid,
    contact: RosterContact,
    { jid, lastPresence, directed }: SessionHere,
  ): boolean {
    if (this.#viewOf(jid).hidesFrom(to)) return false;
    if (directed.some(({ text }) => text === to.text || text === to.bare.text)) return true;
    if (lastPresence === undefined) return false;
    if (this.#hasRosterHere(to, jid)) return seesPresence(contact.reverse);
    return this.#told.get(jid.text)?.some(({ text }) => text === to.bare.text) === true;
  }

  /** True when one query finds what the rosters of an account and of its contact say. */
  #hasRosterHere(owner: Jid, { domainpart }: Jid): boolean {
    const { hosts } = this.#deps;
    return hosts.store(domainpart) !== undefined && hosts.isShared(owner.domainpart, domainpart);
  }

  #viewOf(jid: FullJid): PresenceView {
    return this.#deps.privacy?.viewOf(jid) ?? OPEN_VIEW;
  }

  /** Returns those of the contacts from whom the session's list does not hide it. */
  #seenBy(jid: FullJid, contacts: readonly Jid[]): readonly Jid[] {
    const view = this.#viewOf(jid);
    return view === OPEN_VIEW ? contacts : contacts.filter((contact) => !view.hidesFrom(contact));
  }

  async #contactsOf(
    jid: FullJid,
    options = { withRequests: false },
  ): Promise<readonly RosterContact[] | undefined> {
    const { hosts, log, metrics } = this.#deps;
    try {
      return await hosts.store(jid.domainpart)!.contacts(jid.bare.text, options); // asked before
    } catch (thrown) {
      metrics.failures.inc();
      log.warn("roster.presence-failed", { error: describeError(thrown) });
      return undefined;
    }
  }

  #spawn(work: Promise<void>): void {
    work.catch((thrown) => {
      this.#deps.log.error("roster.bug", { error: describeError(thrown) });
    });
  }
}

const OPEN_VIEW: PresenceView = { hidesFrom: () => false, isDeafTo: () => false };

/** True when nobody needs to be told of `earlier` any more, as `later` follows it. */
function isReplacedBy(earlier: Change | undefined, later: Stanza | Ending): boolean {
  if (earlier === undefined || earlier === "left") return false;
  return isEnding(later) || !isEnding(earlier);
}

function isEnding(change: Change | undefined): change is Ending {
  return typeof change === "object" && "end" in change;
}

/** Returns those of `jids` that are not among `others`. */
function without(jids: readonly Jid[], others: readonly Jid[]): readonly Jid[] {
  if (jids.length === 0) return jids;
  const texts = textsOf(others);
  return jids.filter(({ text }) => !texts.has(text));
}

/** Returns the account of a full JID. */
function accountIn(fullJid: string): string {
  return fullJid.slice(0, fullJid.indexOf("/"));
}

function textsOf(jids: readonly Jid[]): ReadonlySet<string> {
  return new Set(jids.map(({ text }) => text));
}

function subscribersIn(contacts: readonly RosterContact[]): readonly Jid[] {
  return contacts.filter(({ subscription }) => seesPresence(subscription))
    .map(({ jid }) => parseJid(jid));
}
