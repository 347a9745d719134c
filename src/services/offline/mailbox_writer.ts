import type { Holders } from "../../base/mod.ts";
import { CausewayError, describeError, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { OfflineMessage } from "../../storage/mod.ts";
import type { BareJid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { recipientHolders, senderHolders } from "../../xmpp/mod.ts";
import type { BackgroundWork } from "./background_work.ts";
import type { BusyAccounts } from "./busy_accounts.ts";
import type { DiscreetRefusals } from "./discreet_refusals.ts";
import { isForOffline, withDelay } from "./offline_form.ts";
import type {
  KeepOutcome,
  OfflineHostOptions,
  OfflineMessagesDeps,
} from "./offline_messages_deps.ts";
import type { OfflineMetrics } from "./offline_metrics.ts";
import type { SilentEnds } from "./silent_ends.ts";
import { takeBack } from "./taken_back.ts";

/** Messages that one step writes. */
const MESSAGES_AT_ONCE = 64;
/** Messages of one account that may wait to be written. */
const MAX_PENDING_OF_ACCOUNT = 1_000;

/** Objects behind `MailboxWriter`. */
export interface MailboxWriterDeps extends
  Pick<
    OfflineMessagesDeps,
    "hosts" | "storeOf" | "creationOf" | "isUserHost" | "randomId" | "budget" | "logger" | "clock"
  > {
  readonly refusals: DiscreetRefusals;
  readonly silentEnds: Pick<SilentEnds, "take">;
  readonly busy: BusyAccounts;
  readonly background: BackgroundWork;
  readonly metrics: Pick<OfflineMetrics, "kept" | "refused" | "failed">;
  /** Nothing of the account waits to be written any more. */
  written(account: BareJid): void;
}

/** A message that is to be kept. */
interface Pending {
  readonly stanza: Stanza;
  readonly message: OfflineMessage;
  readonly outcome: KeepOutcome;
  readonly holders: Holders;
  readonly bytes: number;
}

/** End of a message: it is kept, finds no room, or is refused with that condition. */
type End = "kept" | "no-room" | StanzaErrorCondition;

/**
 * Writes messages for accounts of which no resource takes them to the store. One write at a time goes
 * on for an account, so that its messages keep their order.
 */
export class MailboxWriter {
  readonly #deps: MailboxWriterDeps;
  /** Messages that are to be kept, in their order, by the bare JIDs of accounts that are written for. */
  readonly #queues = new Map<string, Pending[]>();

  constructor(deps: MailboxWriterDeps) {
    this.#deps = deps;
  }

  /** Messages that wait to be written. */
  get pending(): number {
    let count = 0;
    for (const queue of this.#queues.values()) count += queue.length;
    return count;
  }

  /**
   * Takes over a message. Returns false for one that no store keeps.
   *
   * @param sentAtMs wall-clock milliseconds when the server accepted it
   */
  keep(stanza: Stanza, sentAtMs: number, outcome: KeepOutcome): boolean {
    const { hosts, isUserHost, refusals, budget, background, metrics, clock } = this.#deps;
    const { to: { bare: account }, from } = stanza;
    const host = hosts.get(account.domainpart);
    if (host === undefined || account.localpart === "") return false;
    if (!isForOffline(stanza)) return false;
    const isOfUser = isUserHost(from.domainpart);
    const own = senderHolders(from, isOfUser);
    const theirs = recipientHolders(account.text);
    const holders = { ...own, singles: [...own.singles, ...theirs.singles] };
    const bytes = withDelay(stanza, account.domainpart, sentAtMs);
    const cost = bytes.length + RETAINED_OVERHEAD_BYTES;
    const queue = this.#queues.get(account.text);
    const isCrowded = queue !== undefined && queue.length >= MAX_PENDING_OF_ACCOUNT;
    if (isCrowded || !budget.mayHold(holders, cost)) {
      metrics.refused.inc();
      background.spawn(refusals.refuse(stanza, "resource-constraint", outcome));
      return true;
    }
    budget.hold(holders, cost);
    const message = {
      sender: isOfUser && from.localpart !== "" ? from.bare.text : from.domainpart,
      stanza: bytes,
      sentAtMs,
      expiresAtMs: clock.wallMs() + host.lifetimeMs,
    };
    const pending = { stanza, message, outcome, holders, bytes: cost };
    if (queue !== undefined) queue.push(pending);
    else background.spawn(this.#write(account, pending, host));
    return true;
  }

  /** Writes a message for an account, and all that come meanwhile. */
  async #write(account: BareJid, first: Pending, host: OfflineHostOptions): Promise<void> {
    const { budget, busy, background, written } = this.#deps;
    const queue = [first];
    this.#queues.set(account.text, queue);
    busy.begin(account);
    while (queue.length > 0) {
      const batch = queue.slice(0, MESSAGES_AT_ONCE);
      const ends = await this.#keepAll(account, batch, host);
      queue.splice(0, batch.length);
      for (const [index, pending] of batch.entries()) {
        budget.release(pending.holders, pending.bytes);
        // Work of its own: what one of them throws concerns no other message.
        background.spawn(this.#end(pending, ends[index]!));
      }
    }
    this.#queues.delete(account.text);
    written(account);
    busy.end(account);
  }

  async #end({ stanza, outcome }: Pending, end: End): Promise<void> {
    const { refusals, silentEnds } = this.#deps;
    if (end === "kept") return outcome.kept();
    if (end === "no-room") return await refusals.refuse(stanza, "resource-constraint", outcome);
    // Nobody would notice who asks with such a message which accounts exist.
    const silent = end === "service-unavailable" ? silentEnds.take(stanza, outcome) : undefined;
    if (silent === undefined) outcome.refused(end);
    else await silent;
  }

  /** Resolves to what becomes of each message. Never rejects. */
  async #keepAll(
    account: BareJid,
    batch: readonly Pending[],
    host: OfflineHostOptions,
  ): Promise<readonly End[]> {
    const { storeOf, creationOf, randomId, metrics, logger } = this.#deps;
    const refusal = batch.map((): End => "service-unavailable");
    try {
      const store = storeOf(account.domainpart);
      const creation = await creationOf(account);
      if (creation === undefined) {
        metrics.refused.inc(batch.length);
        return refusal;
      }
      const messages = batch.map(({ message }) => message);
      const kept = await store.keep(account.localpart, messages, host);
      if (!await this.#isStill(account, creation)) {
        // It was deleted meanwhile. Nobody who takes the name gets its messages.
        const stanzas = messages.map(({ stanza }) => stanza);
        await takeBack(store, account.localpart, { stanzas, id: randomId() });
        metrics.refused.inc(batch.length);
        return refusal;
      }
      const count = kept.filter((isKept) => isKept).length;
      metrics.kept.inc(count);
      metrics.refused.inc(kept.length - count);
      return kept.map((isKept) => isKept ? "kept" : "no-room");
    } catch (thrown) {
      const code = thrown instanceof CausewayError ? thrown.code : "";
      const isTooLarge = code === "storage/value-too-large";
      if (isTooLarge && batch.length > 1) return await this.#keepEach(account, batch, host);
      metrics.failed.inc(batch.length);
      logger.debug("offline.not-kept", { error: describeError(thrown) });
      // A client that is online takes a message of any size.
      if (isTooLarge) return ["no-room"];
      const isFull = code === "storage/pool-full";
      return batch.map(() => isFull ? "resource-constraint" : "internal-server-error");
    }
  }

  /** Keeps messages one by one, as one of them is too large for the store. */
  async #keepEach(
    account: BareJid,
    batch: readonly Pending[],
    host: OfflineHostOptions,
  ): Promise<readonly End[]> {
    const ends: End[] = [];
    for (const each of batch) ends.push(...await this.#keepAll(account, [each], host));
    return ends;
  }

  /**
   * Returns false for an account that was deleted while its messages were kept, even if its name has a
   * new owner. When nobody can tell, the messages are on the disk: a sender who got an error would send
   * them again.
   */
  async #isStill(account: BareJid, creation: string): Promise<boolean> {
    try {
      return await this.#deps.creationOf(account) === creation;
    } catch (thrown) {
      this.#deps.logger.debug("offline.not-checked", { error: describeError(thrown) });
      return true;
    }
  }
}
