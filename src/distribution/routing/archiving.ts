import type { Clock } from "../../base/mod.ts";
import { FullJid, ruleForAccount } from "../../xmpp/mod.ts";
import { isRoomDomain, isUserHost } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { isUser } from "./addresses.ts";
import { keepOpen } from "./copy_envelope.ts";
import type { Domains } from "./decision.ts";
import type { Archive, ArchiveSide, LocalDelivery, Noting } from "./ports.ts";
import { isForAccount } from "./refusals.ts";

/** The parts that `Archiving` works with. */
export interface ArchivingDeps {
  readonly archive: Archive;
  readonly domains: Domains;
  readonly local: LocalDelivery;
  readonly clock: Clock;
  /** True for a message of which sessions here get carbons alone. */
  isToldHere(envelope: Envelope): boolean;
}

/** The wait of a message for its recipient's archive, or the reason why it cannot wait. Undefined: none. */
export type Noted = Noting | "resource-constraint" | undefined;

/** A message on its way into one archive. */
interface Part {
  /** Undefined when the archive does not take the message. */
  readonly noting: Noting | undefined;
  /** True once the message went on. */
  hasGoneOn: boolean;
  /** True once it went on to sessions here, without an answer whether the archive takes it. */
  isDelivered?: boolean;
  /** True when its archive began with it while earlier ones of its sender were waiting. */
  isForeseen?: boolean;
}

/** State of one message in the archives: it may be routed several times. */
interface Parts {
  sender?: Part;
  /** For the recipient, before anybody is there to get the message. */
  absent?: Part;
  /** For the recipient, at the moment of delivery. */
  recipient?: Part;
  /** Monotonic milliseconds when archives were first asked about the message here. */
  readonly sinceMs: number;
  /** The side of which the archive had no room. */
  without?: ArchiveSide;
  /** True while its sender's archive is to begin with it, before later ones of its sender. */
  isNext?: boolean;
  /** True once the message is refused: no archive is to begin with it. */
  isRefused?: boolean;
}

/**
 * Makes archives take messages on their way.
 *
 * The sender's archive takes a message where it enters the mesh. The message goes on meanwhile, and is
 * unsettled until the archive has it. The recipient's archive takes it on each node that is about to
 * deliver it, when its turn has come: only then is its place among the other messages that reach the
 * account certain. It also takes a message that begins to bounce, which may find nobody in the end.
 */
export class Archiving {
  readonly #deps: ArchivingDeps;
  /**
   * Each sender's queued messages with which its archive has not begun for lack of room, in order, by
   * the sender's address. None that comes later goes before them. Once the first has room, the archive
   * begins with as many of the others as it has room for: each would else wait for a transaction of
   * its own.
   */
  readonly #next = new Map<string, Set<Envelope>>();

  constructor(deps: ArchivingDeps) {
    this.#deps = deps;
  }

  /** Makes the sender's archive begin with a message that waits behind others of its sender. */
  foresee(envelope: Envelope): void {
    const { from, to } = envelope.stanza;
    if (envelope.arrival !== "here") this.#partsOf(envelope); // its time to wait for room begins
    if (envelope.arrival !== "here" || envelope.isCopy) return;
    // The archive of a message to oneself is that of its recipient, too.
    if (from.bare.text === to.bare.text) return;
    const parts = this.#partsOf(envelope);
    if (parts.sender !== undefined) return; // it comes back, and the archive has begun with it before
    const isFree = !this.#next.has(from.text);
    if (isFree && this.#beginForSender(envelope, parts, true)) return;
    this.#isFirst(envelope, parts);
  }

  /** Notes that no later message of the sender's may come before this one in its archive. */
  #isFirst(envelope: Envelope, parts: Parts): void {
    if (parts.isNext === true) return;
    parts.isNext = true;
    const { text } = envelope.stanza.from;
    const next = this.#next.get(text);
    if (next === undefined) this.#next.set(text, new Set([envelope]));
    else next.add(envelope);
  }

  /**
   * Makes the sender's archive take a message before it is routed. Returns false when there is no room.
   * @param isEarly true when the router asks again in the end, if there is no room now
   */
  forSender(envelope: Envelope, isEarly = false): boolean {
    if (envelope.arrival !== "here" || envelope.isCopy) return true;
    const parts = this.#partsOf(envelope);
    if (parts.sender === undefined) {
      const hadNoRoom = parts.isNext === true;
      if (!this.#beginForSender(envelope, parts, isEarly)) return false;
      if (hadNoRoom) this.#beginWithNext(envelope);
    }
    const sender = parts.sender!;
    const open = openOf(sender);
    sender.hasGoneOn = true;
    open?.whenSettled(keepOpen(envelope));
    return true;
  }

  /** Returns false when there is no room. */
  #beginForSender(envelope: Envelope, parts: Parts, isEarly: boolean): boolean {
    const noting = this.#deps.archive.note(envelope, "sender", isEarly);
    if (noting === "resource-constraint") {
      parts.without = "sender";
      return false;
    }
    parts.sender = { noting, hasGoneOn: false };
    this.#isNoLonger(envelope, parts);
    return true;
  }

  /** Makes the archive begin with messages of the same sender for which there was no room before. */
  #beginWithNext({ stanza: { from } }: Envelope): void {
    for (const envelope of this.#next.get(from.text) ?? []) {
      if (!this.#beginForSender(envelope, this.#partsOf(envelope), true)) return;
    }
  }

  /** Notes that a message waits no longer for its sender's archive to begin with it. */
  #isNoLonger(envelope: Envelope, parts: Parts): void {
    if (parts.isNext !== true) return;
    parts.isNext = false;
    const sender = envelope.stanza.from.text;
    const next = this.#next.get(sender)!;
    next.delete(envelope);
    if (next.size === 0) this.#next.delete(sender);
  }

  /**
   * True for a message that found no room and may wait for it: its sender is slowed meanwhile. That is
   * a session or a component, here or at the node that passed the message on. Nobody slows a room
   * down, and a message that a session or the bounce queue gave back has waited enough.
   */
  mayWait({ arrival, isCopy, stanza: { from } }: Envelope): boolean {
    if (arrival === "taken-back" || (arrival === "here" && isCopy)) return false;
    const { domains } = this.#deps;
    if (isUserHost(from.domainpart, domains)) return from instanceof FullJid;
    return !isRoomDomain(from.domainpart, domains);
  }

  /**
   * Makes a message wait until an archive that had no room takes it.
   * @param ask begins with it, if there is room now
   * @returns false when it has waited for too long
   */
  async whenRoom(envelope: Envelope, ask: () => boolean): Promise<boolean> {
    const parts = this.#partsOf(envelope);
    const { sinceMs, without } = parts;
    if (without === undefined || parts.isRefused === true) return true;
    if (without === "sender") this.#isFirst(envelope, parts);
    return await this.#deps.archive.whenRoom(envelope, {
      side: without,
      sinceMs,
      attempt: () => parts.isRefused === true || ask(),
    });
  }

  /**
   * Makes the recipient's archive begin with a message while earlier ones of its sender wait for the
   * same archive. It goes the same way as they do, and the archive answers in the order in which it
   * was asked, so the message will be delivered in its place among all others of the recipient.
   */
  foreseeDelivery(envelope: Envelope, before: Envelope, head: Envelope): boolean {
    const { recipient } = this.#partsOf(head);
    if (recipient === undefined || openOf(recipient) === undefined) return false;
    if (!goesAfter(envelope, before)) return false;
    const parts = this.#partsOf(envelope);
    if (parts.absent !== undefined) return false;
    if (envelope.arrival === "here") {
      this.foresee(envelope);
      if (parts.sender === undefined) return false;
    }
    this.forRecipient(envelope, true);
    if (parts.recipient === undefined) return false;
    parts.recipient.isForeseen = true;
    return true;
  }

  /** True for a message that goes the way of an earlier one, without a lookup of its own. */
  isForeseen(envelope: Envelope): boolean {
    return partsIn(envelope)?.recipient?.isForeseen === true;
  }

  /**
   * Returns what a message waits for before it is delivered to sessions here, if there are any.
   * @param isEarly true when its turn has not come
   */
  forRecipient(envelope: Envelope, isEarly = false): Noted {
    // A message that was kept while its recipient was offline has its place since then.
    if (envelope.isArchived || envelope.hasKeeper || !this.#mayBeTaken(envelope)) return undefined;
    const { archive } = this.#deps;
    if (!archive.isHere(envelope)) return undefined;
    const parts = this.#partsOf(envelope);
    if (parts.absent !== undefined) {
      const open = openOf(parts.absent);
      if (open !== undefined) return open;
      envelope.isArchived = parts.absent.noting?.isStored === true;
      if (envelope.isArchived) return undefined;
      if (parts.absent.noting?.isSettled === false) {
        parts.absent.isDelivered = true;
        return undefined;
      }
    }
    if (parts.recipient === undefined) {
      const noting = archive.note(envelope, "recipient", isEarly);
      if (noting === "resource-constraint") {
        parts.without = "recipient";
        return noting;
      }
      parts.recipient = { noting, hasGoneOn: false };
    }
    const open = openOf(parts.recipient);
    if (open === undefined) envelope.isArchived = parts.recipient.noting?.isStored === true;
    return open;
  }

  /** Makes the recipient's archive take a message that begins to bounce. */
  forAbsent(envelope: Envelope): void {
    const { stanza, isCopy, isArchived } = envelope;
    if (stanza.kind !== "message" || isCopy || isArchived) return;
    const { archive, domains, local } = this.#deps;
    // The others come back to their senders.
    if (!isForAccount(envelope) || !isUser(stanza.to, domains)) return;
    // It only waits for others, and takes its place behind those that are delivered meanwhile.
    if (local.sessionsOf(stanza.to).isHere) return;
    const parts = this.#partsOf(envelope);
    if (parts.absent !== undefined || parts.recipient !== undefined) return;
    const noting = archive.note(envelope, "absent");
    if (noting === "resource-constraint") return; // it is asked again in the end
    parts.absent = { noting, hasGoneOn: false };
  }

  /** Notes that a message is refused because an archive has no room for it. */
  refused(envelope: Envelope): void {
    this.#isNoLonger(envelope, this.#partsOf(envelope));
  }

  /** Takes a message back that is refused at once. */
  takeBack(envelope: Envelope): void {
    const parts = this.#partsOf(envelope);
    parts.isRefused = true;
    this.#isNoLonger(envelope, parts);
    for (const part of [parts.sender, parts.absent, parts.recipient]) part?.noting?.takeBack();
  }

  /**
   * Takes a message back that its recipient's archive refuses in the end. Returns false when the archive
   * has it, since it began to bounce.
   */
  takeBackAbsent(envelope: Envelope): boolean {
    const noting = partsIn(envelope)?.absent?.noting;
    if (noting?.isStored === true) return false;
    noting?.takeBack();
    return true;
  }

  /** Notes the end of the wait for `noting`, of the recipient's archive. */
  goOn(envelope: Envelope, noting: Noting): void {
    const { absent, recipient } = this.#partsOf(envelope);
    for (const part of [absent, recipient]) {
      if (part === undefined || part.noting !== noting || part.hasGoneOn) continue;
      if (noting.isStored) envelope.isArchived = true;
      if (!noting.isSettled) this.#goOn(envelope, part);
    }
  }

  /** Keeps a message unsettled that goes on before an archive has it. */
  #goOn(envelope: Envelope, part: Part): void {
    part.hasGoneOn = true;
    const settle = keepOpen(envelope);
    part.noting!.whenSettled(() => {
      const again = this.#catchUp(envelope, part);
      if (again === undefined) settle();
      else again.whenSettled(settle);
    });
  }

  /**
   * Makes the recipient's archive take a message after all that was delivered while it was being asked
   * whether there is an account: the answer was that there is none, or failed, and there is one.
   */
  #catchUp(envelope: Envelope, { noting, isDelivered }: Part): Noting | undefined {
    if (isDelivered !== true || noting!.isStored) return undefined;
    const parts = this.#partsOf(envelope);
    if (parts.recipient !== undefined) return undefined;
    const again = this.#deps.archive.note(envelope, "recipient");
    if (again === "resource-constraint") return undefined; // counted by the archive
    parts.recipient = { noting: again, hasGoneOn: true };
    return again;
  }

  #partsOf(envelope: Envelope): Parts {
    const parts = partsIn(envelope) ?? { sinceMs: this.#deps.clock.monotonicMs() };
    envelope.archiving = parts;
    return parts;
  }

  /** False for a message that no session here gets, by the rules of RFC 6121 §8.5 or as a carbon. */
  #mayBeTaken(envelope: Envelope): boolean {
    const { domains, local } = this.#deps;
    const { stanza, isCopy, isCarbon, isRerouted, arrival } = envelope;
    const { from, to, type } = stanza;
    if (!isUser(to, domains) || ruleForAccount(stanza) !== undefined) return false;
    // The message of a copy that was made here was archived, as was the one that a carbon wraps.
    if (isCopy && arrival === "here") return false;
    if (isCarbon) return from.bare.text !== to.bare.text;
    const { isResourceHere, priority } = local.sessionsOf(to);
    if (to instanceof FullJid) {
      if (isResourceHere) return true;
      if (type !== "chat" && !isRerouted) return this.#deps.isToldHere(envelope);
    }
    const isReachable = priority !== undefined && priority >= 0;
    return isReachable || this.#deps.isToldHere(envelope);
  }
}

function partsIn({ archiving }: Envelope): Parts | undefined {
  return archiving as Parts | undefined; // nobody else writes it
}

/** Returns what a message still has to wait for. */
function openOf({ noting, hasGoneOn }: Part): Noting | undefined {
  return noting === undefined || noting.isSettled || hasGoneOn ? undefined : noting;
}

/** True when a message goes the way of another one: from one session to one address. */
function goesAfter(
  { arrival, isCopy, isCarbon, isSpread, stanza: { from, to } }: Envelope,
  before: Envelope,
): boolean {
  return before.stanza.kind === "message" && arrival === before.arrival &&
    isCopy === before.isCopy && isCarbon === before.isCarbon && isSpread === before.isSpread &&
    from.text === before.stanza.from.text && to.text === before.stanza.to.text;
}
