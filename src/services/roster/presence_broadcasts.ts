import type { PacedTask } from "../../base/mod.ts";
import type { RosterContact } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { readdress } from "../../xmpp/mod.ts";
import type { AccountUse } from "../iq_service.ts";
import type { AccountHosts, AccountReach, SessionsByAccount } from "./account_reach.ts";
import type { AccountTurns, StepKind } from "./account_turns.ts";
import type { ContactSights } from "./contact_sights.ts";
import { subscribersIn, textsOf } from "./contact_sights.ts";
import { LateMeetings } from "./late_meetings.ts";
import { ListReview } from "./list_review.ts";
import { OpenRequests } from "./open_requests.ts";
import { PresenceRetries } from "./presence_retries.ts";
import { sendEach, SENT_AT_ONCE } from "./presence_sending.ts";
import type { Sending } from "./presence_sending.ts";
import { bareEnd, probe, unavailable } from "./presence_stanzas.ts";
import type { PresenceView, RosterDeps } from "./roster_ports.ts";

/** Collaborators of `PresenceBroadcasts`. */
export interface PresenceBroadcastsDeps
  extends Pick<RosterDeps, "process" | "hosts" | "sessions" | "routes" | "paced" | "clock"> {
  readonly sights: ContactSights;
  readonly reach: AccountReach;
  readonly turns: AccountTurns;
  /** See `RosterServerDeps.isCurrent`. */
  isCurrent?(client: Jid, use: AccountUse): () => Promise<boolean>;
  /** Returns the full JIDs of the resources at other processes that a session here was told of. */
  toldTo(session: FullJid): readonly string[];
}

/**
 * Attempts to tell of the end of a presence while the database or the session table fails, for a quarter
 * of an hour or so: its session is gone.
 */
const MAX_ATTEMPTS = 40;

/** The end of a session's presence. */
interface Ending {
  readonly end: Stanza;
  /** Says what the session's list hid as it ended: its list is forgotten with the session. */
  readonly view: PresenceView;
}

/** A presence to tell of, or its end, or the news that the session is no longer here. */
type Change = Stanza | Ending | "left";

/** Contacts of a session whose presence is told, and where they have sessions. */
interface Looked {
  readonly contacts: readonly RosterContact[];
  readonly told: readonly Jid[];
  /** Contacts who were told of the session before, and are not to be told any more. */
  readonly former: readonly Jid[];
  readonly probed: readonly Jid[];
  /** Undefined: the session table could not tell. */
  readonly found: SessionsByAccount | undefined;
  readonly hosts: AccountHosts;
}

/**
 * Presence of the sessions of this node, as it is told to contacts: broadcast to those who may see it,
 * and asked for where the account may see it (RFC 6121 §4.2 to §4.5).
 */
export class PresenceBroadcasts {
  readonly #deps: PresenceBroadcastsDeps;
  /** Contacts that were sent the presence of an available session here, by full JID. */
  readonly #told = new Map<string, readonly Jid[]>();
  /** Changes of sessions that are still to be told, by full JID. A session has an entry while it is told. */
  readonly #changes = new Map<string, Change[]>();
  readonly #retries: PresenceRetries<Stanza | Ending>;
  /** Promises of the contacts of a session whose presence is told, by full JID. */
  readonly #askers = new Map<string, PromiseWithResolvers<readonly RosterContact[] | undefined>>();
  /** Contacts whose subscription has ended while a session here is told, by full JID. */
  readonly #parted = new Map<string, Set<string>>();
  /** Full JIDs of told sessions whose account is gone, with its roster. */
  readonly #orphans = new Set<string>();
  /**
   * Changes that were told only at this datacenter, as the session table could not tell who is elsewhere,
   * with the contacts who were told. For an end, they are those who were told of the presence before.
   */
  readonly #toldHere = new WeakMap<Stanza | Ending, readonly Jid[]>();
  /**
   * Contacts whom the end of an earlier presence of a session has not reached, by full JID: a newer
   * presence has come before the end could be told again. It may not go to all of them.
   */
  readonly #unended = new Map<string, readonly Jid[]>();
  readonly #sights: ContactSights;
  readonly #review: ListReview;
  readonly #meetings: LateMeetings;
  readonly #requests: OpenRequests;

  constructor(deps: PresenceBroadcastsDeps) {
    this.#deps = deps;
    this.#retries = new PresenceRetries(deps.clock);
    const { sights } = deps;
    const told = this.#told;
    this.#sights = sights;
    this.#review = new ListReview({ ...deps, told });
    this.#meetings = new LateMeetings({ ...deps, told });
    this.#requests = new OpenRequests({ routes: deps.routes, sights });
  }

  /** Broadcasts what a session of this node has told the account's resources here. */
  changed(jid: FullJid, presence: Stanza): void {
    if (this.#deps.hosts.store(jid.domainpart) === undefined) return;
    this.#outdate(jid, this.#retries.waiting(jid.text));
    const isEnd = presence.type === "unavailable";
    this.#add(jid, isEnd ? { end: presence, view: this.#sights.viewOf(jid) } : presence);
  }

  /**
   * Takes over an available session that comes from another node: its contacts know of it.
   * @param isNew true when that node may not have told all of them, and will not any more
   */
  arrived(jid: FullJid, isNew: boolean): void {
    // It is back before the rest of its presence was dropped.
    if (this.#hasMoved(jid)) this.#changes.get(jid.text)!.pop();
    // Its own presence outdates what an earlier session with its full JID has left untold.
    this.#retries.giveUp(jid.text);
    this.#told.set(jid.text, []);
    if (isNew && this.#deps.hosts.store(jid.domainpart) !== undefined) {
      this.#meetings.afterMove(jid);
    }
  }

  /** Forgets a session that has ended, or has moved to another node. */
  left(jid: FullJid): void {
    this.#review.forget(jid);
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
    turns.runAlways(jid.text, () => this.#review.review(jid, change, told));
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

  /** True when a session here is available to a recipient, as this node has told by now. */
  isAvailableTo(session: FullJid, to: Jid): boolean {
    const here = this.#deps.sessions.here(session.bare.text)
      .find(({ jid }) => jid.text === session.text);
    if (here === undefined) return false;
    if (here.directed.some(({ text }) => text === to.text)) return true;
    if (here.lastPresence === undefined) return false;
    const account = to.bare.text;
    return account === session.bare.text ||
      this.#told.get(session.text)?.some(({ text }) => text === account) === true;
  }

  /** Tries nothing again from now on. */
  close(): void {
    this.#review.close();
    this.#meetings.close();
    this.#retries.close();
  }

  /** True while contacts may still be told of a session's last presence. */
  isTelling({ text }: FullJid): boolean {
    return this.#changes.has(text) || this.#retries.waiting(text) !== undefined;
  }

  /** Makes a session that is being told say nothing more to a contact. */
  part({ text }: FullJid, contact: Jid): void {
    if (!this.#changes.has(text)) return;
    const parted = this.#parted.get(text);
    if (parted === undefined) this.#parted.set(text, new Set([contact.text]));
    else parted.add(contact.text);
  }

  /** Notes that a contact was told of the end of a session's presence. */
  ended({ text }: FullJid, contact: Jid): void {
    const told = this.#told.get(text);
    if (told === undefined) return;
    this.#told.set(text, told.filter((each) => each.text !== contact.text));
  }

  /** Notes presence of a session elsewhere that is delivered to the sessions of an account here. */
  heard(presence: Stanza): void {
    this.#meetings.heard(presence);
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
    this.#unended.delete(jid.text);
    this.#orphans.delete(jid.text);
    this.#meetings.forget(jid);
  }

  /**
   * Tells of a presence or its end later, as the database or the session table failed. A newer one makes
   * that needless.
   */
  #tryLater(jid: FullJid, change: Stanza | Ending): void {
    const followers = this.#changes.get(jid.text) ?? [];
    const isEnd = isEnding(change);
    // A session is gone as soon as its presence has ended: nobody else tells of the end.
    const isOutdated = followers.some((each) => !isEnd || each !== "left");
    if (isOutdated) return this.#outdate(jid, change);
    this.#retries.later(jid.text, change, {
      maxAttempts: isEnd ? MAX_ATTEMPTS : Infinity,
      again: () => this.#add(jid, change),
    });
  }

  /** Tells no more of a change, as a newer presence follows it. */
  #outdate({ text }: FullJid, change: Stanza | Ending | undefined): void {
    this.#retries.giveUp(text);
    const told = isEnding(change) ? this.#toldHere.get(change) : undefined;
    if (told !== undefined) this.#unended.set(text, told);
  }

  /** Returns those who may see a session by its presence so far. */
  #seeing({ text }: FullJid): readonly Jid[] {
    return [...this.#told.get(text) ?? [], ...this.#unended.get(text) ?? []];
  }

  /** Returns the contacts, as they were read for it; undefined when the database failed. */
  async #broadcast(
    jid: FullJid,
    presence: Stanza,
    task: PacedTask,
  ): Promise<readonly RosterContact[] | undefined> {
    const { paced, reach } = this.#deps;
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
    const isRepeat = this.#toldHere.has(presence);
    let isWhole = true;
    if (found !== undefined || !isRepeat) {
      this.#endForFormer(this.#stillIn(jid, former), unavailable(jid, jid.bare), hosts);
      isWhole = await this.#tell(jid, presence, { contacts: told, hosts, isInitial, pace });
    }
    const nowHidden = former.filter((to) => this.#sights.viewOf(jid).hidesFrom(to));
    if (found !== undefined) { for (const to of nowHidden) this.#review.spare(jid, to); }
    // Subscriptions may have ended while it waited: those contacts have been told so.
    this.#told.set(jid.text, this.#stillIn(jid, found === undefined ? [...told, ...former] : told));
    if (found === undefined) {
      this.#toldHere.set(presence, told);
      this.#tryLater(jid, presence);
    }
    if (!isInitial) return contacts;
    // If it has moved and come back, all are told by the second look of its return.
    if (isWhole) this.#meetings.afterLogin(jid, { found: found ?? new Map(), probed });
    await sendEach(probed, reach, { hosts, isInitial, pace, make: (to) => probe(jid, to) });
    await paced.run(async () => {
      this.#toOwnElsewhere(jid, probe(jid, jid.bare), hosts);
      await this.#requests.bring(jid, contacts);
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
    const contacts = await this.#sights.contactsOf(jid, { withRequests: isInitial });
    if (await isCurrent === false) {
      this.#told.set(jid.text, []);
      this.#orphans.add(jid.text); // nor of its end
      return "former";
    }
    if (contacts === undefined) return undefined;
    const subscribers = subscribersIn(contacts);
    const told = this.#sights.seenBy(jid, subscribers);
    const former = without(this.#seeing(jid), told);
    const unseeing = isInitial ? without(subscribers, [...told, ...former]) : [];
    for (const to of unseeing) this.#review.spare(jid, to);
    this.#told.set(jid.text, told);
    this.#unended.delete(jid.text);
    const probed = isInitial ? this.#sights.probedBy(jid, contacts) : [];
    // One lookup serves both ways.
    const all = [...told, ...former, ...probed, jid.bare];
    const found = await reach.sessionsOf(all);
    if (found !== undefined) this.#retries.giveUp(jid.text);
    return { contacts, told, former, probed, found, hosts: reach.hostsWith(all, found) };
  }

  async #withdraw(jid: FullJid, ending: Ending, task: PacedTask): Promise<void> {
    const { end, view } = ending;
    const { reach } = this.#deps;
    const found = await this.#sights.contactsOf(jid);
    const toldHere = this.#toldHere.get(ending);
    const seeing = this.#seeing(jid);
    const told = seeing.length > 0 ? seeing : toldHere ?? [];
    this.#told.delete(jid.text);
    this.#unended.delete(jid.text);
    // Without the database, those are told who were told of the presence.
    const isOrphan = this.#orphans.has(jid.text);
    const subscribers = found === undefined || isOrphan ? told : subscribersIn(found);
    const contacts = subscribers.filter((contact) =>
      !view.hidesFrom(contact) && !this.#review.isSpared(jid, contact)
    );
    const former = without(told, contacts);
    const all = [...contacts, ...former, jid.bare];
    const places = await reach.sessionsOf(all);
    if (places === undefined) this.#toldHere.set(ending, told);
    else this.#toldHere.delete(ending);
    if (found === undefined || places === undefined) this.#tryLater(jid, ending);
    else this.#retries.giveUp(jid.text);
    if (places === undefined && toldHere !== undefined) return;
    const hosts = reach.hostsWith(all, places);
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
    const { reach } = this.#deps;
    const { hosts } = sending;
    const isEnd = presence.type === "unavailable";
    let isWhole = true;
    const holds = () => {
      const isOurs = isEnd || !this.#hasMoved(jid);
      if (!isOurs) isWhole = false;
      return isOurs;
    };
    // While it is told, a subscription may end, and the list may begin to hide the session.
    const isParted = (to: Jid) => {
      if (this.#parted.get(jid.text)?.has(to.text) === true) return true;
      const isHidden = this.#sights.viewOf(jid).hidesFrom(to);
      if (isHidden && sending.isInitial) this.#review.spare(jid, to);
      return isHidden;
    };
    const mayHear = (to: Jid) => holds() && (isEnd || !isParted(to));
    await sendEach(contacts, reach, {
      ...sending,
      make: (to) => {
        if (!mayHear(to)) return undefined;
        if (!isEnd) this.#review.tell(jid, to);
        return readdress(presence, to);
      },
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
   * Returns those of the contacts whose subscriptions have not ended while the session was told, and
   * from whom its list has not begun to hide its first presence.
   */
  #stillIn(jid: FullJid, contacts: readonly Jid[]): readonly Jid[] {
    const parted = this.#parted.get(jid.text);
    return contacts.filter((contact) =>
      parted?.has(contact.text) !== true && !this.#review.isSpared(jid, contact)
    );
  }

  #toOwnElsewhere({ bare }: FullJid, presence: Stanza, hosts: AccountHosts): void {
    const { routes, hosts: { localHost } } = this.#deps;
    for (const host of hosts.get(bare.text) ?? []) {
      if (host !== localHost) routes.sendTo(host, presence);
    }
  }
}

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
