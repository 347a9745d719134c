import type { OfflineStore } from "../../storage/mod.ts";
import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { BusyAccounts } from "./busy_accounts.ts";
import { DiscreetRefusals } from "./discreet_refusals.ts";
import { HeldClaims } from "./held_claims.ts";
import { MailboxDelivery } from "./mailbox_delivery.ts";
import { MailboxRounds } from "./mailbox_rounds.ts";
import { MailboxWriter } from "./mailbox_writer.ts";
import type { KeepOutcome, OfflineMessagesDeps } from "./offline_messages_deps.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import { SilentEnds } from "./silent_ends.ts";

/**
 * Keeps messages for accounts of which no resource takes them, and delivers them to the first client
 * that becomes available with a priority of 0 or more (XEP-0160).
 *
 * A message is kept at the moment when its sender would get an error. It is settled when it is on the
 * disk. A store that fails gives the sender that error.
 *
 * The messages of an account go to one client, in their order (`MessageClaim` says how). Messages
 * that arrive for the account meanwhile wait behind them (`holds`), for two seconds at most.
 *
 * The work is done by its parts: `MailboxWriter` keeps messages, `MailboxDelivery` delivers them under
 * claims that `HeldClaims` renews, and `MailboxRounds` finds those that came to the store too late.
 */
export class OfflineMessages {
  readonly #deps: OfflineMessagesDeps;
  readonly #stores = new Map<string, OfflineStore>();
  readonly #background: BackgroundWork;
  readonly #silentEnds: SilentEnds;
  readonly #busy: BusyAccounts;
  readonly #writer: MailboxWriter;
  readonly #claims: HeldClaims;
  readonly #delivery: MailboxDelivery;
  readonly #rounds: MailboxRounds;

  constructor(deps: OfflineMessagesDeps) {
    const metrics = new OfflineMetrics(deps.metrics, () => this.pending);
    const background = new BackgroundWork(deps);
    const busy = new BusyAccounts({
      clock: deps.clock,
      rested: (account) => {
        if (delivery.hasTarget(account)) deps.revealed(account);
      },
    });
    const refusals = new DiscreetRefusals(deps);
    const claims = new HeldClaims({ ...deps, background, metrics });
    const storeOf = (host: string) => this.#storeOf(host);
    const delivery = new MailboxDelivery({ ...deps, storeOf, claims, busy, background });
    this.#deps = deps;
    this.#background = background;
    const silentEnds = this.#silentEnds = new SilentEnds({ ...deps, refusals });
    this.#busy = busy;
    this.#claims = claims;
    this.#delivery = delivery;
    this.#writer = new MailboxWriter({
      ...deps,
      storeOf,
      refusals,
      silentEnds,
      busy,
      background,
      metrics,
      written: (account) => {
        // A client may have come while the messages were written.
        if (delivery.hasTarget(account)) delivery.open(account);
      },
    });
    this.#rounds = new MailboxRounds({
      ...deps,
      storeOf,
      background,
      metrics,
      found: (account) => delivery.open(account),
    });
  }

  /** True for a host that keeps messages. */
  serves(host: string): boolean {
    return this.#deps.hosts.has(host);
  }

  /** Messages that wait to be written. */
  get pending(): number {
    return this.#writer.pending;
  }

  /** Begins to look for waiting messages, again and again. */
  start(): void {
    this.#rounds.start();
  }

  /** Ends the looking, and waits for unfinished writes. Messages under way stay claimed. */
  async close(): Promise<void> {
    await this.#background.close();
    await this.#claims.flush();
  }

  /**
   * Takes over a message for which its sender would get an error. Returns false for a message that is
   * not kept, and whose sender may know that it found nobody.
   *
   * @param sentAtMs wall-clock milliseconds when the server accepted it
   */
  keep(stanza: Stanza, sentAtMs: number, outcome: KeepOutcome): boolean {
    if (this.#background.isClosed) return false;
    if (this.#writer.keep(stanza, sentAtMs, outcome)) return true;
    return this.#isSpawned(this.#silentEnds.take(stanza, outcome));
  }

  /**
   * Takes over a message that found nobody and could not wait, as there was no room. Returns false
   * for one whose sender may know so.
   */
  refuse(stanza: Stanza, outcome: Pick<KeepOutcome, "refused" | "dropped">): boolean {
    if (this.#background.isClosed) return false;
    return this.#isSpawned(this.#silentEnds.takeWithoutRoom(stanza, outcome));
  }

  #isSpawned(ending: Promise<void> | undefined): boolean {
    if (ending !== undefined) this.#background.spawn(ending);
    return ending !== undefined;
  }

  /**
   * Returns true for a message that has to wait, because older ones for its account are on their
   * way. Costs a comparison while there are none.
   */
  holds(stanza: Stanza): boolean {
    return this.#busy.holds(stanza);
  }

  /** Notes presence that a client of this node has broadcast. */
  presence(jid: FullJid, priority: number | undefined): void {
    if (!this.#deps.hosts.has(jid.domainpart)) return;
    if (priority === undefined || priority < 0) return this.closed(jid);
    if (this.#rounds.add(jid)) this.#delivery.open(jid.bare);
  }

  /** Notes a session that came from another node, which has delivered what waited. */
  arrived(jid: FullJid, priority: number | undefined): void {
    if (priority === undefined || priority < 0) return;
    if (this.#deps.hosts.has(jid.domainpart)) this.#rounds.add(jid);
  }

  /** Notes the end of a session. */
  closed(jid: FullJid): void {
    this.#rounds.delete(jid);
  }

  /** Returns the one store of a host that all its claims have. */
  #storeOf(host: string): OfflineStore {
    let store = this.#stores.get(host);
    if (store === undefined) this.#stores.set(host, store = this.#deps.storeOf(host));
    return store;
  }
}
