import type { BackoffOptions } from "../../base/mod.ts";
import { backoffMs, CausewayError, describeError } from "../../base/mod.ts";
import type { OfflineStore, WaitingMessage } from "../../storage/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";
import type { BackgroundWork } from "./background_work.ts";
import type { BusyAccounts } from "./busy_accounts.ts";
import type { HeldClaims } from "./held_claims.ts";
import type { MessageClaim } from "./message_claim.ts";
import { readOffline } from "./offline_form.ts";
import type { OfflineMessagesDeps, OfflineSession } from "./offline_messages_deps.ts";

/** Messages that are read at once to be delivered. */
const PAGE = 50;
/** Attempts to give a message to a client that reads slowly, and milliseconds between them. */
const [SLOW_ATTEMPTS, SLOW_PAUSE_MS] = [50, 100];
/** Pauses before a store that failed is read again. */
const READ_PAUSES: BackoffOptions = { firstMs: 500, maxMs: 15_000 };

/** Objects behind `MailboxDelivery`. */
export interface MailboxDeliveryDeps extends
  Pick<
    OfflineMessagesDeps,
    "storeOf" | "sessionsOf" | "isCurrent" | "deliver" | "logger" | "clock"
  > {
  readonly claims: HeldClaims;
  readonly busy: BusyAccounts;
  readonly background: BackgroundWork;
}

/** Delivery of one account's messages. */
interface Delivery {
  /** True when messages may have been kept, or a client may have come, since it looked. */
  isAgain: boolean;
}

/**
 * Delivers the messages that wait for accounts, in their order, to the client of each account with the
 * highest priority. It claims them first (`MessageClaim` says why). A session whose account is gone gets
 * none: the name may have a new owner, whose messages these are.
 */
export class MailboxDelivery {
  readonly #deps: MailboxDeliveryDeps;
  /** Deliveries that go on, by bare JID. */
  readonly #deliveries = new Map<string, Delivery>();

  constructor(deps: MailboxDeliveryDeps) {
    this.#deps = deps;
  }

  /** Begins to deliver the messages of an account to a client of this node. */
  open(account: BareJid): void {
    if (this.#deps.background.isClosed) return;
    const delivery = this.#deliveries.get(account.text);
    if (delivery !== undefined) delivery.isAgain = true;
    else this.#deps.background.spawn(this.#deliverAll(account));
  }

  /** True while the account has a client at this node that takes messages. */
  hasTarget(account: BareJid): boolean {
    return this.#takersOf(account).length > 0;
  }

  /**
   * Returns the client that messages go to: of those whose account still exists, the one with the
   * highest priority, and the latest of several. Undefined: nobody takes messages. Never rejects.
   */
  async #findTarget(account: BareJid): Promise<OfflineSession | undefined> {
    for (const session of this.#takersOf(account)) {
      if (await this.#deps.isCurrent(session.jid) && takesMessages(session)) return session;
    }
    return undefined;
  }

  /** Returns the sessions of this node that take messages, the one that is to have them first. */
  #takersOf({ text }: BareJid): readonly OfflineSession[] {
    return this.#deps.sessionsOf(text).filter(takesMessages).reverse()
      .sort((one, other) => other.priority! - one.priority!);
  }

  async #deliverAll(account: BareJid): Promise<void> {
    const { busy, claims, storeOf, logger } = this.#deps;
    const delivery = { isAgain: false };
    this.#deliveries.set(account.text, delivery);
    busy.begin(account);
    busy.holdAnew(account);
    try {
      const store = storeOf(account.domainpart);
      for (;;) {
        delivery.isAgain = false;
        const claim = await this.#claim(store, account);
        if (claim === undefined && !delivery.isAgain) break;
        if (claim === undefined) continue;
        if (await this.#deliverPages(claim, account).finally(() => claim.finish())) continue;
        // Another client may have come since the last one went. The rest is free before it asks.
        if (!delivery.isAgain || !this.hasTarget(account)) break;
        await claim.flush();
      }
    } catch (thrown) {
      if (!(thrown instanceof CausewayError)) throw thrown; // a bug
      logger.debug("offline.not-delivered", { error: describeError(thrown) });
    } finally {
      this.#deliveries.delete(account.text);
      claims.flushLater(); // claims that are done are forgotten
      busy.end(account);
    }
  }

  /** Claims what waits for an account; undefined: nothing, or nobody may have it. */
  async #claim(store: OfflineStore, account: BareJid): Promise<MessageClaim | undefined> {
    const { localpart } = account;
    const nowMs = this.#deps.clock.wallMs();
    // Nothing waits for most logins, and to look is no write.
    if ((await store.waiting([localpart], nowMs)).length === 0) return undefined;
    if (await this.#findTarget(account) === undefined) return undefined;
    return await this.#deps.claims.claim(store, { localpart, nowMs });
  }

  /**
   * Delivers what is claimed, page by page. Resolves to false when no client takes messages any more:
   * then the rest is free again.
   */
  async #deliverPages(claim: MessageClaim, account: BareJid): Promise<boolean> {
    const { background } = this.#deps;
    let isTaking = true;
    for (let after = 0, refusals = 0;;) {
      // A client that reads slowly is asked with one message at a time. None waits in memory for it.
      const limit = refusals === 0 ? PAGE : 1;
      const page = await this.#readPage(claim, { after, limit });
      if (page.length === 0) return isTaking;
      const target: OfflineSession | undefined = isTaking
        ? await this.#findTarget(account)
        : undefined;
      const count = target === undefined ? 0 : this.#deliverPage(target, claim, page);
      if (count > 0) {
        after = page[count - 1]!.sequence;
        refusals = 0;
      }
      if (count === page.length) continue;
      isTaking = target !== undefined && !background.isClosed && ++refusals < SLOW_ATTEMPTS;
      if (isTaking) await background.pause(SLOW_PAUSE_MS);
      else {
        claim.giveBack(page.slice(count).map((each) => each.sequence));
        after = page.at(-1)!.sequence;
        refusals = 0;
      }
    }
  }

  /**
   * Reads the next messages of a claim. When the store fails, it is asked again and again: what is not
   * read goes to no client, here or elsewhere, for as long as messages under way need the claim.
   */
  async #readPage(
    { store, localpart, id }: MessageClaim,
    options: { readonly after: number; readonly limit: number },
  ): Promise<readonly WaitingMessage[]> {
    const { background, logger } = this.#deps;
    for (let failures = 1;; failures++) {
      try {
        return await store.claimed(localpart, id, options);
      } catch (thrown) {
        if (background.isClosed) throw thrown;
        logger.debug("offline.not-delivered", { error: describeError(thrown) });
      }
      await background.pause(backoffMs(failures, READ_PAUSES));
    }
  }

  /** Gives messages to a client until it does not take the next one. Returns how many were taken. */
  #deliverPage(
    target: OfflineSession,
    claim: MessageClaim,
    page: readonly WaitingMessage[],
  ): number {
    const count = page.findIndex((message) => !this.#deliverOne(target, claim, message));
    return count < 0 ? page.length : count;
  }

  /** Returns false when the client does not take the message now. */
  #deliverOne(
    target: OfflineSession,
    claim: MessageClaim,
    { stanza: bytes, sequence, sentAtMs }: WaitingMessage,
  ): boolean {
    const { deliver, background, logger } = this.#deps;
    let stanza: Stanza;
    try {
      stanza = readOffline(bytes);
    } catch (thrown) {
      // Nobody could ever get it, and everything behind it would wait for ever.
      logger.error("offline.unreadable", { error: describeError(thrown) });
      claim.sending(sequence);
      claim.settle(sequence);
      return true;
    }
    if (background.isClosed || !takesMessages(target)) return false;
    claim.sending(sequence);
    let isTaken = false;
    try {
      isTaken = deliver(target.jid, stanza, { fate: claim, number: sequence, sentAtMs });
    } finally {
      if (!isTaken) claim.unsent(sequence);
    }
    return isTaken;
  }
}

function takesMessages({ isOpen, priority }: OfflineSession): boolean {
  return isOpen && priority !== undefined && priority >= 0;
}
