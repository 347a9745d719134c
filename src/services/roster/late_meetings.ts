import type { RosterContact } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { readdress } from "../../xmpp/mod.ts";
import type { SessionsByAccount } from "./account_reach.ts";
import type { ContactSights } from "./contact_sights.ts";
import { subscribersIn, textsOf } from "./contact_sights.ts";
import { probe } from "./presence_stanzas.ts";
import type { RosterDeps } from "./roster_ports.ts";
import type { Missed, SecondLookDeps } from "./second_look.ts";
import { SecondLook } from "./second_look.ts";

/** Collaborators of `LateMeetings`. */
export interface LateMeetingsDeps extends SecondLookDeps, Pick<RosterDeps, "sessions" | "routes"> {
  readonly sights: ContactSights;
  /** Contacts that were sent the presence of an available session here, by full JID. */
  readonly told: ReadonlyMap<string, readonly Jid[]>;
}

/** Makes sessions of this node meet those of contacts that the first look has missed. */
export class LateMeetings {
  readonly #deps: LateMeetingsDeps;
  readonly #secondLook: SecondLook;

  constructor(deps: LateMeetingsDeps) {
    this.#deps = deps;
    this.#secondLook = new SecondLook(deps);
  }

  /**
   * Tells contacts, and the account's own clients, whose sessions were not known yet, and asks for
   * their presence: it may have come here before this session could get it.
   */
  afterLogin(
    jid: FullJid,
    { found, probed }: { readonly found: SessionsByAccount; readonly probed: readonly Jid[] },
  ): void {
    this.#secondLook.later({
      jid,
      found,
      accounts: () => {
        const told = this.#deps.told.get(jid.text);
        return Promise.resolve(told && this.#currentOf(jid) && [...told, ...probed, jid.bare]);
      },
      missed: async (all) => {
        // Subscriptions may have ended since the login.
        const contacts = await this.#deps.sights.contactsOf(jid);
        if (contacts !== undefined) this.#meet(jid, contacts, all);
        return contacts !== undefined;
      },
    });
  }

  /**
   * Makes the second look for a session that has come from another node. Nobody here knows whom the
   * first look found, so all contacts are told and asked.
   */
  afterMove(jid: FullJid): void {
    let contacts: readonly RosterContact[] = [];
    this.#secondLook.later({
      jid,
      found: new Map(),
      isFromElsewhere: true,
      accounts: async () => {
        if (this.#currentOf(jid) === undefined) return undefined;
        const read = await this.#deps.sights.contactsOf(jid);
        if (read === undefined) return "unreadable";
        contacts = read;
        const told = this.#deps.sights.seenBy(jid, subscribersIn(contacts));
        return [...told, ...this.#deps.sights.sightsOf(jid, contacts).probed, jid.bare];
      },
      missed: (all) => {
        this.#meet(jid, contacts, all);
        return Promise.resolve(true);
      },
    });
  }

  /** Tells those whom the first look has missed, and asks for their presence. */
  #meet(jid: FullJid, contacts: readonly RosterContact[], missed: readonly Missed[]): void {
    const { routes } = this.#deps;
    const presence = this.#currentOf(jid);
    if (presence === undefined) return;
    const told = textsOf([...this.#deps.sights.seenBy(jid, subscribersIn(contacts)), jid.bare]);
    const asked = textsOf([...this.#deps.sights.sightsOf(jid, contacts).probed, jid.bare]);
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

  /** Notes presence of a session elsewhere that is delivered to the sessions of an account here. */
  heard(presence: Stanza): void {
    const { from, to } = presence;
    if (!this.#secondLook.isWaiting || from === from.bare) return;
    for (const { jid } of this.#deps.sessions.here(to.bare.text)) {
      if (to === to.bare || to.text === jid.text) this.#secondLook.heard(jid, presence);
    }
  }

  /** Forgets a session: it has ended. */
  forget(jid: FullJid): void {
    this.#secondLook.forget(jid);
  }

  /** Looks again for nobody from now on. */
  close(): void {
    this.#secondLook.close();
  }
}
