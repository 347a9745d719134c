import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import { readdress } from "../../xmpp/mod.ts";
import type { AccountReach } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { ContactSights } from "./contact_sights.ts";
import { subscribersIn } from "./contact_sights.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { RosterDeps } from "./roster_ports.ts";

/** Collaborators of `DatacenterAnnouncer`. */
export interface DatacenterAnnouncerDeps extends Pick<RosterDeps, "hosts" | "sessions" | "paced"> {
  readonly reach: Pick<AccountReach, "hostsOf" | "sendAgain">;
  readonly turns: AccountTurns;
  readonly metrics: RosterMetrics;
}

/** Accounts whose sessions are announced to a datacenter at once. */
const ANNOUNCED_AT_ONCE = 16;

/** Accounts whose sessions are to be announced, by bare JID: one session of each, and the presences. */
type Announced = Map<string, { readonly jid: FullJid; readonly presences: Set<Stanza> }>;

/** Tells a datacenter that was cut off, or other nodes of this one, of the sessions of this node. */
export class DatacenterAnnouncer {
  readonly #deps: DatacenterAnnouncerDeps;
  readonly #sights: ContactSights;
  /** Accounts that are still to be announced, by datacenter that is told of them. */
  readonly #announced = new Map<string, Announced>();
  #isClosed = false;

  constructor(deps: DatacenterAnnouncerDeps, sights: ContactSights) {
    this.#deps = deps;
    this.#sights = sights;
  }

  /** Announces no further accounts. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Sends the presence of all sessions of this node to their contacts at one datacenter, which did
   * not know of them while it was cut off. A few accounts at a time: there may be very many. While
   * an earlier announcement runs, those accounts join it that it has done already.
   */
  announce(host: string): void {
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
    const { sessions, reach } = this.#deps;
    const contacts = await this.#sights.contactsOf(jid);
    if (contacts === undefined) return;
    const subscribers = subscribersIn(contacts);
    const found = await reach.hostsOf([...subscribers, jid.bare]);
    for (const { jid: session, lastPresence } of sessions.here(jid.bare.text)) {
      // Another one has been told since.
      if (lastPresence === undefined || !presences.has(lastPresence)) continue;
      for (const to of [...this.#sights.seenBy(session, subscribers), session.bare]) {
        if (found.get(to.text)?.has(host) !== true) continue;
        reach.sendAgain(host, readdress(lastPresence, to));
      }
    }
  }
}
