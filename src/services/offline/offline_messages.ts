import { describeError } from "../../base/mod.ts";
import type { OfflineStore, WaitingMessage } from "../../storage/mod.ts";
import type { BareJid, FullJid, Stanza } from "../../xmpp/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { BusyAccounts } from "./busy_accounts.ts";
import { HeldClaims } from "./held_claims.ts";
import { MailboxRounds } from "./mailbox_rounds.ts";
import { MailboxWriter } from "./mailbox_writer.ts";
import type { MessageClaim } from "./message_claim.ts";
import { readOffline } from "./offline_form.ts";
import type { KeepOutcome, OfflineMessagesDeps } from "./offline_messages_deps.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import { SilentEnds } from "./silent_ends.ts";

/** Messages that are read at once to be delivered. */
const PAGE = 50;
/** Attempts to give a message to a client that reads slowly, and milliseconds between them. */
const [SLOW_ATTEMPTS, SLOW_PAUSE_MS] = [50, 100];

/** Delivery of one account's messages. */
interface Delivery {
  /** True when messages may have been kept, or a client may have come, since it looked. */
  isAgain: boolean;
}

/**
 * Keeps messages for accounts of which no resource takes them, and delivers them to the first client
 * that becomes available with a priority of 0 or more (XEP-0160).
 *
 * A message is kept at the moment when its sender would get an error. It is settled when it is on the
 * disk. A store that fails gives the sender that error.
 *
 * The messages of an account go to one client, in their order (`MessageClaim` says how). Messages
 * that arrive for the account meanwhile wait behind them (`holds`), for two seconds at most.
 */
export class OfflineMessages {
  readonly #deps: OfflineMessagesDeps;
  readonly #background: BackgroundWork;
  readonly #silentEnds: SilentEnds;
  readonly #busy: BusyAccounts;
  readonly #writer: MailboxWriter;
  readonly #claims: HeldClaims;
  readonly #rounds: MailboxRounds;
  readonly #stores = new Map<string, OfflineStore>();
  /** Deliveries that go on, by bare JID. */
  readonly #deliveries = new Map<string, Delivery>();

  constructor(deps: OfflineMessagesDeps) {
    const metrics = new OfflineMetrics(deps.metrics, () => this.pending);
    const background = new BackgroundWork(deps);
    const busy = new BusyAccounts({
      clock: deps.clock,
      rested: (account) => {
        if (this.#targetOf(account) !== undefined) deps.revealed(account);
      },
    });
    const storeOf = (host: string) => this.#storeOf(host);
    this.#deps = deps;
    this.#background = background;
    this.#silentEnds = new SilentEnds(deps);
    this.#busy = busy;
    this.#claims = new HeldClaims({ ...deps, background, metrics });
    this.#writer = new MailboxWriter({
      ...deps,
      storeOf,
      busy,
      background,
      metrics,
      written: (account) => {
        // A client may have come while the messages were written.
        if (this.#targetOf(account) !== undefined) this.#open(account);
      },
    });
    this.#rounds = new MailboxRounds({
      ...deps,
      storeOf,
      background,
      metrics,
      found: (account) => this.#open(account),
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
    const ending = this.#silentEnds.take(stanza, outcome);
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
    if (this.#rounds.add(jid)) this.#open(jid.bare);
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

  // ---- delivering --------------------------------------------------------------------------

  /** Begins to deliver the messages of an account to a client of this node. */
  #open(account: BareJid): void {
    if (this.#background.isClosed) return;
    const delivery = this.#deliveries.get(account.text);
    if (delivery !== undefined) delivery.isAgain = true;
    else this.#background.spawn(this.#deliverAll(account));
  }

  /** Returns the available client of this node with the highest priority; the latest of several. */
  #targetOf({ text }: BareJid): FullJid | undefined {
    let [target, highest]: [FullJid | undefined, number] = [undefined, 0];
    for (const { jid, priority, isOpen } of this.#deps.sessionsOf(text)) {
      if (!isOpen || priority === undefined || priority < highest) continue;
      [target, highest] = [jid, priority];
    }
    return target;
  }

  async #deliverAll(account: BareJid): Promise<void> {
    const delivery = { isAgain: false };
    this.#deliveries.set(account.text, delivery);
    this.#busy.begin(account);
    this.#busy.holdAnew(account);
    const store = this.#storeOf(account.domainpart);
    try {
      for (;;) {
        delivery.isAgain = false;
        const claim = await this.#claim(store, account);
        if (claim === undefined && !delivery.isAgain) break;
        if (claim === undefined) continue;
        if (await this.#deliverPages(claim, account).finally(() => claim.finish())) continue;
        // Another client may have come since the last one went. The rest is free before it asks.
        if (!delivery.isAgain || this.#targetOf(account) === undefined) break;
        await claim.flush();
      }
    } catch (thrown) {
      this.#deps.logger.debug("offline.not-delivered", { error: describeError(thrown) });
    } finally {
      this.#deliveries.delete(account.text);
      this.#claims.flushLater(); // claims that are done are forgotten
      this.#busy.end(account);
    }
  }

  /** Claims what waits for an account; undefined: nothing, or nobody may have it. */
  async #claim(store: OfflineStore, account: BareJid): Promise<MessageClaim | undefined> {
    const { localpart } = account;
    const nowMs = this.#deps.clock.wallMs();
    // Nothing waits for most logins, and to look is no write.
    if ((await store.waiting([localpart], nowMs)).length === 0) return undefined;
    const target = this.#targetOf(account);
    if (target !== undefined && !await this.#deps.isCurrent(target)) return undefined;
    return await this.#claims.claim(store, { localpart, nowMs });
  }

  /**
   * Delivers what is claimed, page by page. Resolves to false when no client takes messages any more:
   * then the rest is free again.
   */
  async #deliverPages(claim: MessageClaim, account: BareJid): Promise<boolean> {
    const { store, localpart, id } = claim;
    let isTaking = true;
    for (let after = 0, refusals = 0;;) {
      // A client that reads slowly is asked with one message at a time. None waits in memory for it.
      const limit = refusals === 0 ? PAGE : 1;
      const page = await store.claimed(localpart, id, { after, limit });
      if (page.length === 0) return isTaking;
      const count = isTaking ? this.#deliverPage(account, claim, page) : 0;
      if (count > 0) {
        after = page[count - 1]!.sequence;
        refusals = 0;
      }
      if (count === page.length) continue;
      const hasTarget = this.#targetOf(account) !== undefined;
      isTaking &&= hasTarget && !this.#background.isClosed && ++refusals < SLOW_ATTEMPTS;
      if (isTaking) await this.#pause(SLOW_PAUSE_MS);
      else {
        claim.giveBack(page.slice(count).map((each) => each.sequence));
        after = page.at(-1)!.sequence;
        refusals = 0;
      }
    }
  }

  /** Gives messages to clients until none takes the next one. Returns how many were taken. */
  #deliverPage(account: BareJid, claim: MessageClaim, page: readonly WaitingMessage[]): number {
    const count = page.findIndex((message) => !this.#deliverOne(account, claim, message));
    return count < 0 ? page.length : count;
  }

  /** Returns false when no client takes the message now. */
  #deliverOne(
    account: BareJid,
    claim: MessageClaim,
    { stanza: bytes, sequence, sentAtMs }: WaitingMessage,
  ): boolean {
    let stanza: Stanza;
    try {
      stanza = readOffline(bytes);
    } catch (thrown) {
      // Nobody could ever get it, and everything behind it would wait for ever.
      this.#deps.logger.error("offline.unreadable", { error: describeError(thrown) });
      claim.sending(sequence);
      claim.settle(sequence);
      return true;
    }
    const target = this.#background.isClosed ? undefined : this.#targetOf(account);
    if (target === undefined) return false;
    claim.sending(sequence);
    if (this.#deps.deliver(target, stanza, { fate: claim, number: sequence, sentAtMs })) {
      return true;
    }
    claim.unsent(sequence);
    return false;
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#deps.clock.after(forMs, resolve));
  }
}
