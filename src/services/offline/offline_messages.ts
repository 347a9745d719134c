import type { Holders } from "../../base/mod.ts";
import { CausewayError, describeError, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { OfflineMessage, OfflineStore, WaitingMessage } from "../../storage/mod.ts";
import type { BareJid, FullJid, Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { recipientHolders, senderHolders } from "../../xmpp/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { HeldClaims } from "./held_claims.ts";
import { MailboxRounds } from "./mailbox_rounds.ts";
import type { MessageClaim } from "./message_claim.ts";
import { isForOffline, readOffline, withDelay } from "./offline_form.ts";
import type {
  KeepOutcome,
  OfflineHostOptions,
  OfflineMessagesDeps,
} from "./offline_messages_deps.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import { SilentEnds } from "./silent_ends.ts";

/** Messages that one step writes. */
const MESSAGES_AT_ONCE = 64;
/** Messages of one account that may wait to be written. */
const MAX_PENDING_OF_ACCOUNT = 1_000;
/** Messages that are read at once to be delivered. */
const PAGE = 50;
/** Milliseconds for which messages to an account wait for older ones. A slow store holds up no longer. */
const HOLD_MS = 2_000;
/** Attempts to give a message to a client that reads slowly, and milliseconds between them. */
const [SLOW_ATTEMPTS, SLOW_PAUSE_MS] = [50, 100];

/** A message that is to be kept. */
interface Pending {
  readonly from: Jid;
  readonly message: OfflineMessage;
  readonly outcome: KeepOutcome;
  readonly holders: Holders;
  readonly bytes: number;
}

/** State of an account whose messages are being written or delivered at this node. */
interface Busy {
  readonly account: BareJid;
  /** Messages to write, in their order. */
  readonly pending: Pending[];
  isWriting: boolean;
  isDelivering: boolean;
  /** True when messages may have been kept since the delivery began. */
  isAgain: boolean;
  /** Monotonic milliseconds until which new messages wait. */
  holdUntilMs: number;
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
  readonly #metrics: OfflineMetrics;
  readonly #silentEnds: SilentEnds;
  readonly #claims: HeldClaims;
  readonly #rounds: MailboxRounds;
  readonly #stores = new Map<string, OfflineStore>();
  readonly #busy = new Map<string, Busy>();

  constructor(deps: OfflineMessagesDeps) {
    this.#deps = deps;
    this.#background = new BackgroundWork(deps);
    this.#silentEnds = new SilentEnds(deps);
    this.#metrics = new OfflineMetrics(deps.metrics, () => this.pending);
    const [background, metrics] = [this.#background, this.#metrics];
    this.#claims = new HeldClaims({ ...deps, background, metrics });
    this.#rounds = new MailboxRounds({
      ...deps,
      storeOf: (host) => this.#storeOf(host),
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
    let count = 0;
    for (const { pending } of this.#busy.values()) count += pending.length;
    return count;
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
    if (this.#keep(stanza, sentAtMs, outcome)) return true;
    const ending = this.#silentEnds.take(stanza, outcome);
    if (ending !== undefined) this.#background.spawn(ending);
    return ending !== undefined;
  }

  #keep(stanza: Stanza, sentAtMs: number, outcome: KeepOutcome): boolean {
    const { to: { bare: account }, from } = stanza;
    const host = this.#deps.hosts.get(account.domainpart);
    if (host === undefined || account.localpart === "") return false;
    if (!isForOffline(stanza)) return false;
    const isOfUser = this.#deps.isUserHost(from.domainpart);
    const own = senderHolders(from, isOfUser);
    const theirs = recipientHolders(account.text);
    const holders = { ...own, singles: [...own.singles, ...theirs.singles] };
    const bytes = withDelay(stanza, account.domainpart, sentAtMs);
    const cost = bytes.length + RETAINED_OVERHEAD_BYTES;
    const busy = this.#busyWith(account);
    const isCrowded = busy.pending.length >= MAX_PENDING_OF_ACCOUNT;
    if (isCrowded || !this.#deps.budget.mayHold(holders, cost)) {
      this.#metrics.refused.inc();
      outcome.refused("resource-constraint");
      this.#rest(busy);
      return true;
    }
    this.#deps.budget.hold(holders, cost);
    const message = {
      sender: isOfUser && from.localpart !== "" ? from.bare.text : from.domainpart,
      stanza: bytes,
      sentAtMs,
      expiresAtMs: this.#deps.clock.wallMs() + host.lifetimeMs,
    };
    busy.pending.push({ from, message, outcome, holders, bytes: cost });
    if (!busy.isWriting) this.#background.spawn(this.#write(busy, host));
    return true;
  }

  /**
   * Returns true for a message that has to wait, because older ones for its account are on their
   * way. Costs a comparison while there are none.
   */
  holds({ to, type }: Stanza): boolean {
    if (this.#busy.size === 0 || (type !== "chat" && type !== "normal")) return false;
    const busy = this.#busy.get(to.bare.text);
    return busy !== undefined && this.#deps.clock.monotonicMs() < busy.holdUntilMs;
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

  // ---- keeping -----------------------------------------------------------------------------

  #busyWith(account: BareJid): Busy {
    let busy = this.#busy.get(account.text);
    if (busy === undefined) {
      busy = {
        account,
        pending: [],
        isWriting: false,
        isDelivering: false,
        isAgain: false,
        holdUntilMs: this.#deps.clock.monotonicMs() + HOLD_MS,
      };
      this.#busy.set(account.text, busy);
    }
    return busy;
  }

  /** Forgets an account with which nothing more is to be done, and lets its other messages pass. */
  #rest(busy: Busy): void {
    if (busy.isWriting || busy.isDelivering || busy.pending.length > 0) return;
    this.#busy.delete(busy.account.text);
    if (this.#targetOf(busy.account) !== undefined) this.#deps.revealed(busy.account);
  }

  async #write(busy: Busy, host: OfflineHostOptions): Promise<void> {
    busy.isWriting = true;
    while (busy.pending.length > 0) {
      const batch = busy.pending.slice(0, MESSAGES_AT_ONCE);
      const outcomes = await this.#keepAll(busy.account, batch, host);
      busy.pending.splice(0, batch.length);
      for (const [index, { outcome, holders, bytes }] of batch.entries()) {
        this.#deps.budget.release(holders, bytes);
        const condition = outcomes[index];
        if (condition === undefined) outcome.kept();
        else if (condition === "dropped") outcome.dropped();
        else outcome.refused(condition);
      }
    }
    busy.isWriting = false;
    // A client may have come while the messages were written.
    if (this.#targetOf(busy.account) !== undefined) this.#open(busy.account);
    this.#rest(busy);
  }

  /** Resolves to what becomes of each message that was not kept. Never rejects. */
  async #keepAll(
    account: BareJid,
    batch: readonly Pending[],
    host: OfflineHostOptions,
  ): Promise<readonly (StanzaErrorCondition | "dropped" | undefined)[]> {
    const { exists, logger } = this.#deps;
    const store = this.#storeOf(account.domainpart);
    const refusal = batch.map((): StanzaErrorCondition => "service-unavailable");
    try {
      if (!await exists(account)) {
        this.#metrics.refused.inc(batch.length);
        return refusal;
      }
      const messages = batch.map(({ message }) => message);
      const kept = await store.keep(account.localpart, messages, host);
      if (!await this.#stillExists(account)) {
        // It was deleted meanwhile. Nobody who takes the name later gets its messages.
        await store.removeAll(account.localpart);
        this.#metrics.refused.inc(batch.length);
        return refusal;
      }
      const count = kept.filter((isKept) => isKept).length;
      this.#metrics.kept.inc(count);
      this.#metrics.refused.inc(kept.length - count);
      const refusals = new Map<string, StanzaErrorCondition | "dropped">();
      // One after another: a flood at a full mailbox must not take all connections to the database.
      for (const [index, { from }] of batch.entries()) {
        if (kept[index] || refusals.has(from.bare.text)) continue;
        refusals.set(from.bare.text, await this.#withoutRoom(from, account));
      }
      return batch.map(({ from }, index) => kept[index] ? undefined : refusals.get(from.bare.text));
    } catch (thrown) {
      this.#metrics.failed.inc(batch.length);
      logger.debug("offline.not-kept", { error: describeError(thrown) });
      const isFull = thrown instanceof CausewayError && thrown.code === "storage/pool-full";
      return batch.map(() => isFull ? "resource-constraint" : "internal-server-error");
    }
  }

  /**
   * Returns what becomes of a message for a full mailbox. An error would show that the account is
   * offline: XEP-0160 §2 names that of an account which does not exist, and a client that is online
   * takes all. Only those who may know it get one. It is that of a client without room.
   */
  async #withoutRoom(from: Jid, account: BareJid): Promise<StanzaErrorCondition | "dropped"> {
    try {
      return await this.#deps.maySee(from, account) ? "resource-constraint" : "dropped";
    } catch (thrown) {
      this.#deps.logger.debug("offline.not-checked", { error: describeError(thrown) });
      return "dropped";
    }
  }

  /**
   * Returns false for an account that was deleted since its messages were kept. When nobody can
   * tell, the messages are on the disk: a sender who got an error would send them again.
   */
  async #stillExists(account: BareJid): Promise<boolean> {
    try {
      return await this.#deps.exists(account);
    } catch (thrown) {
      this.#deps.logger.debug("offline.not-checked", { error: describeError(thrown) });
      return true;
    }
  }

  // ---- delivering --------------------------------------------------------------------------

  /** Begins to deliver the messages of an account to a client of this node. */
  #open(account: BareJid): void {
    if (this.#background.isClosed) return;
    const busy = this.#busyWith(account);
    if (busy.isDelivering) busy.isAgain = true;
    else this.#background.spawn(this.#deliverAll(busy));
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

  async #deliverAll(busy: Busy): Promise<void> {
    const { account } = busy;
    busy.isDelivering = true;
    busy.holdUntilMs = this.#deps.clock.monotonicMs() + HOLD_MS;
    const { domainpart } = account;
    const store = this.#storeOf(domainpart);
    try {
      for (;;) {
        busy.isAgain = false;
        const claim = await this.#claim(store, account);
        if (claim === undefined && !busy.isAgain) break;
        if (claim === undefined) continue;
        if (await this.#deliverPages(claim, account).finally(() => claim.finish())) continue;
        // Another client may have come since the last one went. The rest is free before it asks.
        if (!busy.isAgain || this.#targetOf(account) === undefined) break;
        await claim.flush();
      }
    } catch (thrown) {
      this.#deps.logger.debug("offline.not-delivered", { error: describeError(thrown) });
    } finally {
      busy.isDelivering = false;
      this.#claims.flushLater(); // claims that are done are forgotten
      this.#rest(busy);
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
