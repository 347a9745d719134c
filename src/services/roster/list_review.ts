import type { RosterContact } from "../../storage/mod.ts";
import { isSeen, seesPresence } from "../../storage/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import { parseJid, readdress } from "../../xmpp/mod.ts";
import type { AccountReach } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { ContactSights } from "./contact_sights.ts";
import { subscribersIn, textsOf } from "./contact_sights.ts";
import { PresenceRetries } from "./presence_retries.ts";
import { probe, unavailable } from "./presence_stanzas.ts";
import type { PresenceView, RosterDeps } from "./roster_ports.ts";

/** Collaborators of `ListReview`. */
export interface ListReviewDeps extends Pick<RosterDeps, "sessions" | "routes" | "clock"> {
  readonly reach: AccountReach;
  readonly turns: AccountTurns;
  readonly sights: ContactSights;
  /** Contacts that were sent the presence of an available session here, by full JID. */
  readonly told: Map<string, readonly Jid[]>;
}

/** A session of this node. */
type SessionHere = ReturnType<RosterDeps["sessions"]["here"]>[number];

/** State of a session before a change of its list. */
interface Earlier {
  readonly before: PresenceView;
  /** Full JIDs of the resources elsewhere that its client was told of. */
  readonly toldBefore: readonly string[];
}

/** Tells contacts and clients what changes of privacy lists mean for presence. */
export class ListReview {
  readonly #deps: ListReviewDeps;
  /** States before the changes that the database has kept from being told. */
  readonly #retries: PresenceRetries<Earlier>;
  /**
   * Contacts from whom its list hides a session and who do not see it, by full JID: it was hidden as
   * others were told, or they have been told of its end. The list before may have shown it to them.
   */
  readonly #spared = new Map<string, Set<string>>();

  constructor(deps: ListReviewDeps) {
    this.#deps = deps;
    this.#retries = new PresenceRetries(deps.clock);
  }

  /** Forgets a session that has ended, or has moved to another node. */
  forget({ text }: FullJid): void {
    this.#retries.giveUp(text);
    this.#spared.delete(text);
  }

  /** Notes that a contact does not see a session, as its list hides the session. */
  spare({ text }: FullJid, contact: Jid): void {
    const spared = this.#spared.get(text);
    if (spared === undefined) this.#spared.set(text, new Set([contact.text]));
    else spared.add(contact.text);
    const { told } = this.#deps;
    const others = told.get(text)?.filter((each) => each.text !== contact.text);
    if (others !== undefined) told.set(text, others);
  }

  /** Notes that presence of a session goes to a contact. */
  tell({ text }: FullJid, contact: Jid): void {
    this.#spared.get(text)?.delete(contact.text);
  }

  /** True for a contact noted by `spare`, until a presence of the session goes to that contact. */
  isSpared({ text }: FullJid, contact: Jid): boolean {
    return this.#spared.get(text)?.has(contact.text) === true;
  }

  /** Tries nothing again from now on. */
  close(): void {
    this.#retries.close();
  }

  /** Does what `PresenceBroadcasts.reviewed` says. Its turn has come. */
  async review(
    jid: FullJid,
    { before, after }: { readonly before: PresenceView; readonly after: PresenceView },
    toldBefore: readonly string[],
  ): Promise<void> {
    const { routes } = this.#deps;
    const left = unavailable(jid, jid.bare);
    for (const to of this.#find(jid)?.directed ?? []) {
      if (!before.hidesFrom(to) && after.hidesFrom(to)) routes.route(readdress(left, to));
    }
    // A change that was not told is told with this one.
    const earlier = this.#retries.waiting(jid.text);
    await this.#tell(jid, {
      before: earlier?.before ?? before,
      toldBefore: [...new Set([...earlier?.toldBefore ?? [], ...toldBefore])],
    }, after);
  }

  #find({ bare, text }: FullJid): SessionHere | undefined {
    return this.#deps.sessions.here(bare.text).find(({ jid }) => jid.text === text);
  }

  /** Tells of a change again, as the list is by now. */
  async #tellAgain(jid: FullJid): Promise<void> {
    const earlier = this.#retries.waiting(jid.text);
    if (earlier !== undefined) await this.#tell(jid, earlier, this.#deps.sights.viewOf(jid));
  }

  async #tell(jid: FullJid, earlier: Earlier, after: PresenceView): Promise<void> {
    const { reach, told, turns } = this.#deps;
    const presence = this.#find(jid)?.lastPresence;
    if (presence === undefined) return this.forget(jid);
    const contacts = await this.#deps.sights.contactsOf(jid);
    if (this.#find(jid) === undefined) return;
    if (contacts === undefined) {
      return this.#retries.later(jid.text, earlier, {
        maxAttempts: Infinity,
        again: () => turns.runAlways(jid.text, () => this.#tellAgain(jid)),
      });
    }
    this.#retries.giveUp(jid.text);
    const { before, toldBefore } = earlier;
    // Its first presence may wait behind this. It goes by the new list, and asks the contacts for theirs.
    const isTold = told.has(jid.text);
    if (isTold) {
      const subscribers = subscribersIn(contacts);
      const heard = textsOf(told.get(jid.text) ?? []);
      const wasHidden = (to: Jid) =>
        !heard.has(to.text) && (before.hidesFrom(to) || this.isSpared(jid, to));
      // Contacts who were told meanwhile were told by the list as it is now.
      const isHidden = (to: Jid) => this.#deps.sights.viewOf(jid).hidesFrom(to);
      const parted = subscribers.filter((to) => !wasHidden(to) && isHidden(to));
      const met = subscribers.filter((to) => wasHidden(to) && !isHidden(to));
      const seen = this.#deps.sights.seenBy(jid, subscribers);
      told.set(jid.text, seen);
      const changedFor = [...parted, ...met];
      const places = await reach.sessionsOf(changedFor);
      // Then the next presence of the session tells them, or its end.
      if (places === undefined) told.set(jid.text, [...seen, ...parted]);
      const hostsOfAll = reach.hostsWith(changedFor, places);
      for (const to of parted) {
        reach.send(unavailable(jid, to), hostsOfAll);
        if (places !== undefined) this.spare(jid, to);
      }
      for (const to of met) {
        if (isHidden(to)) {
          this.spare(jid, to);
          continue;
        }
        this.tell(jid, to);
        reach.send(readdress(presence, to), hostsOfAll);
      }
    }
    const seen = contacts.filter(({ subscription }) => isSeen(subscription));
    this.#takeLeave(jid, seen, { before, after, toldBefore });
    const heard = isTold ? heardAgain(seen, { before, after }) : [];
    if (heard.length === 0) return;
    const probed = this.#deps.sights.probedBy(jid, heard);
    const hosts = await reach.hostsOf(probed);
    for (const contact of probed) reach.send(probe(jid, contact), hosts);
  }

  /**
   * Tells a client that those are gone whose presence it no longer gets (XEP-0016 §2.10): the resources
   * of contacts that it was told of. Others may hide from it.
   */
  #takeLeave(
    to: FullJid,
    contacts: readonly RosterContact[],
    { before, after, toldBefore }: Earlier & { readonly after: PresenceView },
  ): void {
    const { sessions, routes } = this.#deps;
    const known = new Map<string, Set<string>>(contacts.map(({ jid }) => [jid, new Set()]));
    for (const text of toldBefore) known.get(accountIn(text))?.add(text);
    for (const contact of contacts) {
      const resources = known.get(contact.jid)!; // it has each of them
      for (const session of sessions.here(contact.jid)) {
        if (this.#isShownTo(to, contact, session)) resources.add(session.jid.text);
      }
      for (const text of resources) {
        const resource = parseJid(text);
        if (before.isDeafTo(resource) || !after.isDeafTo(resource)) continue;
        routes.deliver(to, unavailable(resource, to));
      }
    }
  }

  /** True when a contact's session at this node has told its presence to another session here. */
  #isShownTo(
    to: FullJid,
    contact: RosterContact,
    { jid, lastPresence, directed }: SessionHere,
  ): boolean {
    if (this.#deps.sights.viewOf(jid).hidesFrom(to)) return false;
    if (directed.some(({ text }) => text === to.text || text === to.bare.text)) return true;
    if (lastPresence === undefined) return false;
    if (this.#deps.sights.hasRosterHere(to, jid)) return seesPresence(contact.reverse);
    return this.#deps.told.get(jid.text)?.some(({ text }) => text === to.bare.text) === true;
  }
}

/** Returns those of the contacts whose presence, or that of one of their clients, comes again. */
function heardAgain(
  contacts: readonly RosterContact[],
  { before, after }: { readonly before: PresenceView; readonly after: PresenceView },
): readonly RosterContact[] {
  const comesAgain = (jid: Jid) => before.isDeafTo(jid) && !after.isDeafTo(jid);
  const freed = new Set(before.devices.filter(comesAgain).map(({ bare }) => bare.text));
  return contacts.filter(({ jid }) => freed.has(jid) || comesAgain(parseJid(jid)));
}

/** Returns the account of a full JID. */
function accountIn(fullJid: string): string {
  return fullJid.slice(0, fullJid.indexOf("/"));
}
