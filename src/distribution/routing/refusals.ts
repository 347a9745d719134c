import type { Logger } from "../../observe/mod.ts";
import { errorReply, FullJid, isReply, isSubscription } from "../../xmpp/mod.ts";
import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { isUserHost } from "../mod.ts";
import type { UserHosts } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { isUser } from "./addresses.ts";
import type { Archive, OfflineKeeper } from "./ports.ts";
import type { DropReason, RoutingMetrics, WaitingPlace } from "./routing_metrics.ts";
import type { StopOrder } from "./stop_order.ts";

/** The parts that `Refusals` works with. */
export interface RefusalsDeps {
  readonly hosts: UserHosts;
  readonly stop: StopOrder;
  readonly metrics: RoutingMetrics;
  readonly log: Logger;
  readonly offline?: OfflineKeeper | undefined;
  readonly archive?: Archive | undefined;
  /** Sends a message that finds no room here to where others may have it; false when nobody may. */
  readonly passBy: (envelope: Envelope) => boolean;
  /**
   * Takes a message back from its recipient's archive, which may have begun with it before it refused
   * it; false when the archive has it.
   */
  readonly takeBack: (envelope: Envelope) => boolean;
  /** Sends an error on its way; it takes over the duty of the stanza that it answers. */
  readonly answer: (reply: Stanza, request: Envelope) => void;
}

/** Ends stanzas that cannot be delivered: with an error to the sender, or counted as dropped. */
export class Refusals {
  readonly #deps: RefusalsDeps;

  constructor(deps: RefusalsDeps) {
    this.#deps = deps;
  }

  /**
   * Answers the sender with an error, or counts the stanza as dropped if none may be sent.
   *
   * @param isWithoutTaker true for a stanza that has found nobody
   */
  refuse(
    envelope: Envelope,
    condition: StanzaErrorCondition,
    reason: DropReason,
    isWithoutTaker = reason === "no-route",
  ): void {
    const { stop } = this.#deps;
    if (stop.isStopping && envelope.isHeldBefore) {
      envelope.trace?.note("returned", { reason: "left to the node before, as this one stops" });
      return stop.leaveOpen(envelope);
    }
    if (envelope.isCopy) return this.drop(envelope, reason); // the original is answered
    if (condition === "resource-constraint" && this.#deps.passBy(envelope)) return;
    const { stanza } = envelope;
    if (stanza.kind === "message") {
      if (envelope.hasKeeper) {
        // A message that is kept already waits for the account's next client.
        if (condition !== "not-acceptable") return envelope.leaveToKeeper();
        // It has ended its clients' streams each time, and would end those of the next one too.
        envelope.settle();
      }
      if (isWithoutTaker && this.#isTakenOver(envelope, condition, reason)) return;
      // Its recipient finds it in the archive, as somebody does who is offline.
      if (envelope.isArchived && condition !== "not-acceptable") {
        envelope.trace?.note("stored", { source: "archive" });
        return envelope.settle();
      }
    }
    this.#answer(envelope, condition, reason);
  }

  /** True when a message that has found nobody is dealt with. */
  #isTakenOver(
    envelope: Envelope,
    condition: StanzaErrorCondition,
    reason: DropReason,
  ): boolean {
    if (!isForAccount(envelope)) return false;
    if (condition === "service-unavailable") return this.#isKept(envelope, reason);
    if (condition !== "resource-constraint" || envelope.isArchived) return false;
    return this.#isRefusedDiscreetly(envelope, reason);
  }

  /**
   * True when it is still to be found out whether the sender may know that there was no room. A
   * message to somebody who is online needs none there, so the error shows who is offline.
   */
  #isRefusedDiscreetly(envelope: Envelope, reason: DropReason): boolean {
    const { offline } = this.#deps;
    if (offline === undefined) return false;
    envelope.detach();
    return offline.refuse(envelope.stanza, {
      refused: (condition) => this.#answer(envelope, condition, reason),
      dropped: () => this.drop(envelope, reason),
    });
  }

  /**
   * True when the message is dealt with: it waits for its recipient, or its sender will get an error.
   * The archive comes first, so that the message waits with its id in the archive.
   */
  #isKept(envelope: Envelope, reason: DropReason): boolean {
    const { offline, archive } = this.#deps;
    if (offline === undefined && archive === undefined) return false;
    envelope.detach();
    const kept = (isStored: boolean): void => {
      envelope.isArchived = isStored;
      if (isStored) envelope.trace?.note("stored", { source: "archive" });
      // From now on its recipient finds it in the archive, even if it is not delivered.
      const settle = () => envelope.settle();
      const outcome = { kept: settle, refused: settle, dropped: settle };
      if (!isStored || !this.#isKeptOffline(envelope, outcome)) settle();
    };
    const isArchiving = archive?.keep(envelope, {
      kept,
      refused: (condition) => {
        if (!this.#deps.takeBack(envelope)) return kept(true);
        if (!this.#isRefusedByArchive(envelope, condition, reason)) {
          this.#answer(envelope, condition, reason);
        }
      },
    });
    return isArchiving === true || this.#waitsOffline(envelope, reason);
  }

  /** True when a message that its recipient's archive does not take is dealt with. */
  #isRefusedByArchive(
    envelope: Envelope,
    condition: StanzaErrorCondition,
    reason: DropReason,
  ): boolean {
    // The account may be without an archive, or may want none of this message.
    if (condition === "service-unavailable") return this.#waitsOffline(envelope, reason);
    return condition === "resource-constraint" && this.#isRefusedDiscreetly(envelope, "refused");
  }

  /** True for a message that waits for its account's next client, or is answered later. */
  #waitsOffline(envelope: Envelope, reason: DropReason): boolean {
    return this.#isKeptOffline(envelope, {
      kept: () => {
        envelope.trace?.note("stored", { source: "offline" });
        envelope.settle();
      },
      refused: (condition) => this.#answer(envelope, condition, reason),
      dropped: () => this.drop(envelope, "refused"),
    });
  }

  #isKeptOffline(
    envelope: Envelope,
    outcome: Parameters<OfflineKeeper["keep"]>[2],
  ): boolean {
    const { offline, archive } = this.#deps;
    if (offline === undefined) return false;
    const stanza = archive?.stamped(envelope) ?? envelope.stanza;
    return offline.keep(stanza, Math.trunc(envelope.sentAtUs / 1000), outcome);
  }

  #answer(envelope: Envelope, condition: StanzaErrorCondition, reason: DropReason): void {
    const { metrics, answer } = this.#deps;
    const { stanza } = envelope;
    const reply = this.#isSilent(stanza, condition) ? undefined : errorReply(stanza, condition);
    if (reply === undefined) {
      const isWithoutRoom = envelope.isOwed && condition === "resource-constraint";
      return this.drop(envelope, isWithoutRoom ? "owed" : reason);
    }
    metrics.errorsSent.inc();
    envelope.trace?.note("answered", { reason: condition, source: reason });
    answer(reply, envelope);
  }

  /** Refuses a stanza that would have to wait where there is no room. */
  refuseForRoom(envelope: Envelope, place: WaitingPlace): void {
    this.#deps.metrics.noRoom[place].inc();
    this.refuse(envelope, "resource-constraint", "refused", place === "bounce");
  }

  /** Settles the stanza and counts it as dropped; one that has a keeper is left to it. */
  drop(envelope: Envelope, reason: DropReason): void {
    if (envelope.hasKeeper) return envelope.leaveToKeeper();
    this.#deps.metrics.dropped[reason].inc();
    envelope.trace?.note("dropped", { reason });
    this.#deps.log.debug("routing.dropped", { reason, kind: envelope.stanza.kind });
    envelope.settle();
  }

  /** RFC 6121 §8.5.1: no error may show whether the account exists or is online. */
  #isSilent(stanza: Stanza, condition: StanzaErrorCondition): boolean {
    if (isReply(stanza)) return true;
    if (stanza.kind === "presence") {
      return !isSubscription(stanza) || isUser(stanza.to, this.#deps.hosts);
    }
    return condition === "service-unavailable" && this.#isHeadlineForAccount(stanza);
  }

  /**
   * RFC 6121 §8.5.2.2.1: no error says that a headline found nobody, as it would tell who is
   * online.
   */
  #isHeadlineForAccount({ type, to }: Stanza): boolean {
    return type === "headline" && to.localpart !== "" && !(to instanceof FullJid) &&
      isUserHost(to.domainpart, this.#deps.hosts);
  }
}

/**
 * True for a message that any resource of the account may get. One for a resource that is gone is not,
 * except of type `chat` (RFC 6121 §8.5.3.2.1), or when that resource had it and left without it.
 */
export function isForAccount({ stanza: { to, type }, isRerouted }: Envelope): boolean {
  return !(to instanceof FullJid) || type === "chat" || isRerouted;
}
