import { describeError } from "../../base/mod.ts";
import type { RosterContact } from "../../storage/mod.ts";
import { isSeen, seesPresence } from "../../storage/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { probe } from "./presence_stanzas.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { PresenceView, RosterDeps } from "./roster_ports.ts";

/** Collaborators of `ContactSights`. */
export interface ContactSightsDeps
  extends Pick<RosterDeps, "hosts" | "routes" | "privacy" | "log"> {
  readonly metrics: RosterMetrics;
  /** Called before a contact whose roster lies elsewhere is asked for its presence anew. */
  asks?(owner: Jid, contact: Jid): void;
}

const OPEN_VIEW: PresenceView = { hidesFrom: () => false, isDeafTo: () => false, devices: [] };

/** Contacts of sessions here, and which of them see whom by rosters and privacy lists. */
export class ContactSights {
  readonly #deps: ContactSightsDeps;

  constructor(deps: ContactSightsDeps) {
    this.#deps = deps;
  }

  /** Returns what the privacy list of a session here hides. */
  viewOf(jid: FullJid): PresenceView {
    return this.#deps.privacy?.viewOf(jid) ?? OPEN_VIEW;
  }

  /** Returns those of the contacts from whom the session's list does not hide it. */
  seenBy(jid: FullJid, contacts: readonly Jid[]): readonly Jid[] {
    const view = this.viewOf(jid);
    return view === OPEN_VIEW ? contacts : contacts.filter((contact) => !view.hidesFrom(contact));
  }

  /** Reads the contacts of a session's account; undefined: the database failed. */
  async contactsOf(
    jid: FullJid,
    options = { withRequests: false },
  ): Promise<readonly RosterContact[] | undefined> {
    const store = this.#deps.hosts.store(jid.domainpart)!; // asked before
    return await this.#read(() => store.contacts(jid.bare.text, options));
  }

  /**
   * Returns the contacts whose rosters let the owner see their presence, as the same query has
   * found. Contacts whose rosters lie elsewhere get a probe that is decided on there.
   */
  probedBy(session: FullJid, contacts: readonly RosterContact[]): readonly Jid[] {
    const { probed, elsewhere } = this.sightsOf(session, contacts);
    for (const contact of elsewhere) {
      this.#deps.asks?.(session.bare, contact);
      this.#deps.routes.route(probe(session.bare, contact));
    }
    return probed;
  }

  /**
   * Returns the contacts whose presence the owner may see by both rosters, and those whose rosters
   * lie elsewhere.
   */
  sightsOf(session: FullJid, contacts: readonly RosterContact[]): {
    readonly probed: readonly Jid[];
    readonly elsewhere: readonly Jid[];
  } {
    const view = this.viewOf(session);
    const probed: Jid[] = [];
    const elsewhere: Jid[] = [];
    for (const { jid, subscription, reverse } of contacts) {
      if (!isSeen(subscription)) continue;
      const contact = parseJid(jid);
      if (view.isDeafTo(contact)) continue;
      if (!this.hasRosterHere(session, contact)) elsewhere.push(contact);
      else if (seesPresence(reverse)) probed.push(contact);
    }
    return { probed, elsewhere };
  }

  /**
   * True when a contact may see the owner's presence by the owner's roster, and does not by its own:
   * the approval may be on its way, or have been lost with a node.
   */
  mayLackApproval(session: FullJid, { jid, subscription, reverse }: RosterContact): boolean {
    // Without an item for the owner, the contact has not asked.
    return seesPresence(subscription) && reverse !== undefined && !isSeen(reverse) &&
      this.hasRosterHere(session, parseJid(jid));
  }

  /** True when a contact's own roster asks for the owner's presence, as far as the database tells. */
  async isAsked(owner: Jid, contact: Jid): Promise<boolean> {
    const store = this.#deps.hosts.store(contact.domainpart)!; // the contact has a roster here
    const entry = await this.#read(() => store.find(contact.text, owner.text));
    return entry?.item?.isAsking === true;
  }

  /** True when one query finds what the rosters of an account and of its contact say. */
  hasRosterHere(owner: Jid, { domainpart }: Jid): boolean {
    const { hosts } = this.#deps;
    return hosts.store(domainpart) !== undefined && hosts.isShared(owner.domainpart, domainpart);
  }

  /** Returns undefined when the database failed. */
  async #read<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (thrown) {
      this.#deps.metrics.failures.inc();
      this.#deps.log.warn("roster.presence-failed", { error: describeError(thrown) });
      return undefined;
    }
  }
}

/** Returns those of the contacts who may see the owner's presence by the owner's roster. */
export function subscribersIn(contacts: readonly RosterContact[]): readonly Jid[] {
  return contacts.filter(({ subscription }) => seesPresence(subscription))
    .map(({ jid }) => parseJid(jid));
}

/** Returns the addresses as texts, to look others up among them. */
export function textsOf(jids: readonly Jid[]): ReadonlySet<string> {
  return new Set(jids.map(({ text }) => text));
}
