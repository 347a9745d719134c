import { CausewayError, describeError } from "../../base/mod.ts";
import type { RosterContact, RosterItem, RosterStore } from "../../storage/mod.ts";
import { seesPresence } from "../../storage/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { AccountReach } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { RosterChange } from "./change_roster.ts";
import type { ContactPresence } from "./contact_presence.ts";
import type { MissedChanges } from "./missed_changes.ts";
import type { RosterMetrics, SubscriptionOutcome } from "./roster_metrics.ts";
import type { RosterDeps } from "./roster_ports.ts";
import type { Rosters } from "./rosters.ts";
import type { SubscriptionStep, SubscriptionVerb } from "./subscription_state.ts";
import { endOf, stepInbound, stepOutbound } from "./subscription_state.ts";

/** Contacts that an account which is deleted leaves at once. Others need the database too. */
const PARTED_AT_ONCE = 20;

/** Stanzas that end whatever two accounts have shared, in the order of `endOf`. */
const BOTH_ENDS: readonly SubscriptionVerb[] = ["unsubscribed", "unsubscribe"];

/** Collaborators of `SubscriptionServer`. */
export interface SubscriptionServerDeps
  extends Pick<RosterDeps, "hosts" | "routes" | "bounds" | "privacy" | "creationOf" | "log"> {
  readonly rosters: Rosters;
  readonly presence: ContactPresence;
  readonly turns: Pick<AccountTurns, "runAlways">;
  readonly missed: Pick<MissedChanges, "note">;
  readonly reach: AccountReach;
  readonly metrics: RosterMetrics;
  /** Bytes of a request that is kept whole. Of a longer one only the addresses are kept. */
  readonly maxRequestBytes: number;
}

/** Result of a stanza for one roster: the condition of the error, if there is one. */
export type SubscriptionError =
  | "resource-constraint"
  | "internal-server-error"
  | "not-allowed"
  | "registration-required"
  | undefined;

/** Subscriptions between accounts (RFC 6121 §3), for the sender's roster and the recipient's. */
export class SubscriptionServer {
  readonly #deps: SubscriptionServerDeps;

  constructor(deps: SubscriptionServerDeps) {
    this.#deps = deps;
  }

  /**
   * Applies a stanza between bare JIDs to its sender's roster, and sends it on. Never rejects.
   *
   * @param written called once the change is on the disk, or was not needed
   * @param isStill true while the sender's account exists. Never rejects
   */
  async outbound(
    stanza: Stanza,
    written: () => void,
    isStill: (() => Promise<boolean>) | undefined,
  ): Promise<SubscriptionError> {
    const { from: owner, to: contact } = stanza;
    const { rosters, bounds, routes, presence } = this.#deps;
    const verb = stanza.type as SubscriptionVerb; // the caller passes subscriptions only
    return await this.#guard(async () => {
      const change = await rosters.change<SubscriptionStep | "full">(
        { owner, contact: contact.text, isStill },
        ({ item, items, requests }) => {
          const step = stepOutbound(item, verb, contact.text);
          const isListed = item?.isListed !== true && step.item?.isListed === true;
          if (isListed && items - requests >= bounds.maxItems) return { item, result: "full" };
          return { item: step.item, result: step };
        },
      );
      written();
      if (change === undefined) return this.#count("ignored", "registration-required");
      if (change.result === "full") return this.#count("full", "resource-constraint");
      const step = change.result;
      this.#count(outcomeOf(change.before, step));
      if (step.presence === "withdraw") await presence.hide(owner, contact);
      if (step.isPassedOn || this.#mayBeMissed(change, contact)) routes.route(stanza);
      if (step.presence === "announce") await this.#announce(owner, contact);
      return undefined;
    });
  }

  /**
   * Applies a stanza between bare JIDs to its recipient's roster, and gives it to the recipient's
   * clients. Nobody is told whether the recipient exists. Never rejects.
   *
   * @returns false, and nothing has happened, when the database failed
   */
  async inbound(stanza: Stanza): Promise<boolean> {
    return await this.#isDone(() => this.#applyIfAllowed(stanza));
  }

  /**
   * Ends all that an account, which is about to be deleted, shares with its contacts, and tells them
   * (XEP-0077 §3.2). Safe to repeat.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async leave(owner: Jid, store: RosterStore): Promise<void> {
    const contacts = await store.contacts(owner.text, { withRequests: true });
    for (let i = 0; i < contacts.length; i += PARTED_AT_ONCE) {
      const some = contacts.slice(i, i + PARTED_AT_ONCE);
      await Promise.all(some.map((contact) => this.#leaveOne(owner, contact)));
    }
  }

  async #leaveOne(owner: Jid, { jid, ...item }: RosterContact): Promise<void> {
    const { hosts, presence } = this.#deps;
    const contact = parseJid(jid);
    if (seesPresence(item.subscription)) await presence.hide(owner, contact);
    const isHere = hosts.store(contact.domainpart) !== undefined &&
      hosts.isShared(owner.domainpart, contact.domainpart);
    for (const verb of endOf(item)) {
      if (!isHere) this.#send(owner, contact, verb);
      // Before the roster goes, which would end it for the contact without a word.
      else await this.#applyIfAllowed(subscription(owner, contact, verb));
    }
  }

  /** Applies a stanza, or ignores it when a directory rules over this contact of the recipient. */
  async #applyIfAllowed(stanza: Stanza): Promise<void> {
    try {
      await this.#apply(stanza);
    } catch (thrown) {
      if (!isManagedElsewhere(thrown)) throw thrown;
      this.#count("ignored");
    }
  }

  /** @throws CausewayError with a code `storage/…`; then nothing has happened */
  async #apply(stanza: Stanza): Promise<void> {
    const { from: contact, to: owner } = stanza;
    const { rosters, bounds, presence, missed, reach, privacy, creationOf } = this.#deps;
    const verb = stanza.type as SubscriptionVerb; // the callers pass subscriptions only
    // Other stanzas leave nothing in a roster that has nothing of the contact.
    const isRequest = verb === "subscribe";
    const creation = isRequest ? await creationOf(owner) : undefined;
    if (isRequest && creation === undefined) return void this.#count("ignored");
    // XEP-0016 §2.2: before all other rules. The contact hears nothing (§2.14).
    if (await privacy?.refusesForAccount(stanza) === true) return void this.#count("blocked");
    const kept = { contact: contact.text, stanza: this.#kept(stanza) };
    const isStill = isRequest ? () => this.#isStill(owner, creation) : undefined;
    const change = await rosters.change<SubscriptionStep | "full">(
      { owner, contact: contact.text, isStill },
      ({ item, requests }) => {
        const step = stepInbound(item, verb, kept);
        const isKept = item?.request === undefined && step.item?.request !== undefined;
        if (isKept && requests >= bounds.maxRequests) return { item, result: "full" };
        return { item: step.item, result: step };
      },
      {
        // RFC 6121 §3.1.6: the stanza comes before the push.
        beforePush: async ({ result: step, version }) => {
          if (step === "full" || !step.isPassedOn) return;
          if (step.item?.request !== undefined) {
            missed.note(owner, contact.text, { isVisible: false, version });
          }
          await reach.toEachSession(owner, stanza);
        },
      },
    );
    if (change === undefined) return void this.#count("ignored");
    if (change.result === "full") return void this.#count("full");
    const step = change.result;
    this.#count(outcomeOf(change.before, step));
    if (step.presence === "withdraw") await presence.hide(owner, contact);
    if (step.reply !== undefined) this.#send(owner, contact, step.reply);
    if (step.presence === "announce") await this.#announce(owner, contact);
  }

  /**
   * Sends the contact the presence of the account, behind the stanza that allows it (RFC 6121 §3.1.5).
   * A contact whose roster is ours hears of that stanza in a turn of its own.
   */
  async #announce(owner: Jid, contact: Jid): Promise<void> {
    const { presence, turns } = this.#deps;
    const announce = () => presence.announce(owner, contact);
    if (this.#isOurs(contact)) turns.runAlways(contact.text, announce);
    else await announce();
  }

  /** False for an account that was deleted meanwhile, even if its name has a new owner. Never rejects. */
  async #isStill(account: Jid, creation: string | undefined): Promise<boolean> {
    try {
      return await this.#deps.creationOf(account) === creation;
    } catch (thrown) {
      // Nobody can tell, and the request is on the disk.
      this.#deps.log.debug("roster.not-checked", { error: describeError(thrown) });
      return true;
    }
  }

  /**
   * Ends what the owner and a contact, who is no longer in the roster, see of each other. A contact
   * whose roster is ours is told both ends: it may have missed an earlier one, and drops the others.
   *
   * @param before the item that the roster had; undefined: it had none
   */
  async part(owner: Jid, contact: Jid, before: RosterItem | undefined): Promise<void> {
    if (seesPresence(before?.subscription)) await this.#deps.presence.hide(owner, contact);
    const ends = before === undefined ? [] : endOf(before);
    for (const verb of this.#isOurs(contact) ? BOTH_ENDS : ends) this.#send(owner, contact, verb);
  }

  /**
   * True for an approval or its end that has changed nothing in its sender's roster, if the contact's
   * roster is ours. A node may have died before it wrote that roster. RFC 6121, appendix A.2, keeps
   * such a stanza from the contact, and so does the contact's roster unless it has missed it.
   */
  #mayBeMissed({ before, item }: RosterChange<unknown>, contact: Jid): boolean {
    // The contact has never been told of an approval in advance.
    return item === before && before?.isApproved !== true && this.#isOurs(contact);
  }

  #isOurs({ domainpart }: Jid): boolean {
    return this.#deps.hosts.store(domainpart) !== undefined;
  }

  /** True when the contact's roster lets `asker` see its presence. */
  async allows(asker: Jid, contact: Jid, store: RosterStore): Promise<boolean> {
    return seesPresence(await store.subscription(contact.text, asker.bare.text));
  }

  /** Returns the stanza, or one with its addresses alone if it is too long to be kept. */
  shortened(stanza: Stanza): Stanza {
    const { bytes, type, from, to } = stanza;
    if (bytes.length <= this.#deps.maxRequestBytes) return stanza;
    return buildStanza(element("presence", { type }), { from, to });
  }

  #send(from: Jid, to: Jid, type: SubscriptionVerb): void {
    this.#deps.routes.route(subscription(from, to, type));
  }

  #kept(stanza: Stanza): Uint8Array {
    return this.shortened(stanza).bytes.slice();
  }

  async #guard(work: () => Promise<SubscriptionError>): Promise<SubscriptionError> {
    let error: SubscriptionError;
    const isDone = await this.#isDone(async () => {
      try {
        error = await work();
      } catch (thrown) {
        if (!isManagedElsewhere(thrown)) throw thrown;
        error = this.#count("ignored", "not-allowed");
      }
    });
    return isDone ? error : this.#count("failed", "internal-server-error");
  }

  /** Returns false when the database failed. */
  async #isDone(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (thrown) {
      this.#deps.log.warn("roster.subscription-failed", { error: describeError(thrown) });
      return false;
    }
  }

  #count(outcome: SubscriptionOutcome, error?: SubscriptionError): SubscriptionError {
    this.#deps.metrics.counted(outcome);
    return error;
  }
}

/** True when a contact comes from a directory, and cannot be changed here. */
function isManagedElsewhere(thrown: unknown): boolean {
  return thrown instanceof CausewayError && thrown.code === "storage/managed-elsewhere";
}

function subscription(from: Jid, to: Jid, type: SubscriptionVerb): Stanza {
  return buildStanza(element("presence", { type }), { from, to });
}

function outcomeOf(
  before: RosterItem | undefined,
  { item }: SubscriptionStep,
): SubscriptionOutcome {
  return item === before ? "unchanged" : "applied";
}
