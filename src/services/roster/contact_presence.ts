import { describeError } from "../../base/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { readdress } from "../../xmpp/mod.ts";
import type { AccountReach } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { ContactSights } from "./contact_sights.ts";
import { DatacenterAnnouncer } from "./datacenter_announcer.ts";
import type { PresenceBroadcasts } from "./presence_broadcasts.ts";
import type { PresenceSignal } from "./presence_signal.ts";
import { partedPayload } from "./presence_signal.ts";
import { probe, unavailable } from "./presence_stanzas.ts";
import { RecentEnds } from "./recent_ends.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { RosterDeps } from "./roster_ports.ts";

/** Collaborators of `ContactPresence`. */
export interface ContactPresenceDeps
  extends
    Pick<RosterDeps, "hosts" | "sessions" | "routes" | "approved" | "paced" | "clock" | "log"> {
  readonly broadcasts: Pick<PresenceBroadcasts, "isTelling" | "part" | "ended">;
  readonly sights: ContactSights;
  readonly reach: AccountReach;
  readonly turns: AccountTurns;
  readonly metrics: RosterMetrics;
}

/** A session of this node. */
type SessionHere = ReturnType<RosterDeps["sessions"]["here"]>[number];

/**
 * Presence between an account and one of its contacts (RFC 6121 §4): answers to probes, and what the
 * beginning and the end of a subscription show.
 *
 * A probe is allowed or refused by the first node that has the contact's roster. From there it goes
 * to each datacenter where the contact has sessions, and each node there answers for its own.
 */
export class ContactPresence {
  readonly #deps: ContactPresenceDeps;
  readonly #ends: RecentEnds;
  readonly #announcer: DatacenterAnnouncer;

  constructor(deps: ContactPresenceDeps) {
    this.#deps = deps;
    this.#ends = new RecentEnds(deps.clock);
    this.#announcer = new DatacenterAnnouncer(deps, deps.sights);
  }

  /**
   * Sends the presence of all sessions of this node to their contacts at one datacenter, which did
   * not know of them while it was cut off.
   */
  announceAll(host: string): void {
    this.#announcer.announce(host);
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
    else if (!this.#deps.sights.viewOf(session).hidesFrom(contact)) {
      for (const each of found) each.repeatDirected?.(contact);
    }
    return found.length > 0;
  }

  /**
   * Sends a contact the end of the presence of sessions here. A session that is not available, or that
   * its list hides from the contact, has ended for it before, or has never been there.
   */
  async #endFor(contact: Jid, sessions: readonly SessionHere[]): Promise<void> {
    const { reach, broadcasts, sights } = this.#deps;
    const seen: FullJid[] = [];
    for (const { jid, lastPresence } of sessions) {
      this.#ends.note(jid, contact);
      broadcasts.part(jid, contact);
      // The end of its presence may wait to be told to those who are contacts then.
      const wasSeen = lastPresence !== undefined || broadcasts.isTelling(jid);
      if (wasSeen && !sights.viewOf(jid).hidesFrom(contact)) seen.push(jid);
    }
    const found = await reach.sessionsOf(seen.length === 0 ? [] : [contact]);
    const hosts = reach.hostsWith([contact], found);
    for (const jid of seen) reach.send(unavailable(jid, contact), hosts);
    // Resources that may be elsewhere hear of the end with the next presence of the session, or its end.
    if (found === undefined) return;
    for (const { jid } of sessions) broadcasts.ended(jid, contact);
  }

  /**
   * Answers a probe with the presence of the account's sessions at this node. A probe of an account was
   * allowed just now. That of a session was allowed as its login began, and may have waited since.
   */
  answer(asker: Jid, account: Jid): void {
    const { routes, reach } = this.#deps;
    if (asker === asker.bare) this.#ends.forget(account, asker);
    else if (this.#ends.has(account, asker)) return;
    for (const presence of this.shownTo(asker, account)) {
      if (asker !== asker.bare) routes.route(readdress(presence, asker));
      else this.#spawn(reach.spread([asker], (to) => readdress(presence, to)));
    }
  }

  /** Returns the presences of the account's sessions at this node that do not hide from `asker`. */
  shownTo(asker: Jid, account: Jid): readonly Stanza[] {
    const { sessions, sights } = this.#deps;
    return sessions.here(account.text).flatMap(({ jid, lastPresence }) =>
      lastPresence === undefined || sights.viewOf(jid).hidesFrom(asker) ? [] : [lastPresence]
    );
  }

  /** Sends an allowed probe to all sessions of the account. */
  async forward(asker: Jid, account: Jid): Promise<void> {
    await this.#deps.reach.spread([account], (to) => probe(asker, to));
  }

  /** Announces nothing more to datacenters. */
  close(): void {
    this.#announcer.close();
  }

  #spawn(work: Promise<void>): void {
    work.catch((thrown) => {
      this.#deps.log.error("roster.bug", { error: describeError(thrown) });
    });
  }
}
