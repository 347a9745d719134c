import type { Envelope, UserHosts } from "../distribution/mod.ts";
import { isUserHost } from "../distribution/mod.ts";
import { copyEnvelope } from "../distribution/routing/mod.ts";
import type { NodeOutcome, NodeSide, OwnSessions } from "../distribution/routing/mod.ts";
import type { OwnClient } from "../services/mod.ts";
import type { AccountWatch } from "../services/accounts/mod.ts";
import type { Carbons } from "../services/carbons/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { MucServer } from "../services/muc/mod.ts";
import type { CopyOrder, RoomServer } from "../services/muc_light/mod.ts";
import type { PepServer } from "../services/pep/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { Delivery, Jid, LocalSession, Stanza } from "../xmpp/mod.ts";
import { FullJid, isSubscription, leastPriority, readdress } from "../xmpp/mod.ts";
import { isAccountProbe } from "./account_probe.ts";

/** Dependencies of `LocalSide`. */
export interface LocalSideDeps extends UserHosts {
  readonly sessions: {
    deliver(stanza: Stanza, delivery: Delivery): NodeOutcome;
    deliverTo(
      session: Pick<LocalSession, "jid" | "send">,
      stanza: Stanza,
      delivery: Delivery,
    ): NodeOutcome;
    find(jid: FullJid): (OwnClient & Pick<LocalSession, "jid" | "priority" | "send">) | undefined;
    ofAccount(bareJid: string): readonly Pick<LocalSession, "jid" | "lastPresence" | "priority">[];
    /** @default they keep none */
    replaceCopies?(delivery: Delivery): boolean;
  };
  readonly components: {
    find(domain: string): unknown;
    deliver(stanza: Stanza, delivery: Delivery): NodeOutcome;
  };
  readonly services: { handle(stanza: Stanza, client?: OwnClient): NodeOutcome };
  /** Copies for a person's other devices. */
  readonly carbons?: Pick<Carbons, "received" | "told">;
  /** Messages that wait for accounts. A message that `holds` names waits behind them. */
  readonly offline?: { holds(message: Stanza): boolean };
  /** Archives, which give messages to their accounts an id. @default there are none */
  readonly archive?: { stamped(message: Envelope): Stanza };
  /** Rosters and presence. */
  readonly rosters?: Pick<
    RosterServer,
    "serves" | "probed" | "takes" | "asTold" | "saw" | "refused"
  >;
  /** Privacy lists. @default nobody has any */
  readonly privacy?: Pick<PrivacyServer, "refusesPresence" | "takes">;
  /** Watch over the accounts of the sessions here. */
  readonly accountWatch?: Pick<AccountWatch, "takes">;
  /** MUC Light rooms. @default there are none */
  readonly rooms?: Pick<RoomServer<Envelope>, "serves" | "take">;
  /** The order of messages of MUC Light rooms. @default that in which they come */
  readonly copyOrder?: Pick<CopyOrder<Envelope>, "take">;
  /** Multi-User Chat rooms. @default there are none */
  readonly muc?: Pick<MucServer<Envelope>, "serves" | "take">;
  /** Personal eventing. */
  readonly pep?: Pick<PepServer, "answered" | "notified">;
  /** Sends a service's answer. The answer takes over the duty of `request`. */
  answer(reply: Stanza, request: Envelope | undefined): void;
}

/**
 * Sessions, components and services of this node behind the one interface that routing knows.
 *
 * A stanza handed to a session's or component's output is settled at once: it leaves with this
 * turn's write. If a session with stream management keeps the stanza, it is settled when the client
 * acknowledges it. A request that a service takes is settled together with its answer.
 */
export class LocalSide implements NodeSide {
  readonly #deps: LocalSideDeps;
  /** Envelopes of requests that wait for their answer, by stanza. Services see only the stanza. */
  readonly #asked = new Map<Stanza, Envelope>();
  #current: Envelope | undefined;

  constructor(deps: LocalSideDeps) {
    this.#deps = deps;
  }

  servesDomain(domain: string): boolean {
    return this.#deps.components.find(domain) !== undefined;
  }

  ownSessions(to: Jid): OwnSessions {
    const sessions = this.#deps.sessions.ofAccount(to.bare.text);
    let priority: number | undefined;
    let isResourceHere = false;
    for (const session of sessions) {
      if (session.jid.text === to.text) isResourceHere = true;
      if (session.priority === undefined) continue;
      if (priority === undefined || session.priority > priority) priority = session.priority;
    }
    return { isHere: sessions.length > 0, isResourceHere, priority };
  }

  replaceCopies(message: Envelope): boolean {
    return this.#deps.sessions.replaceCopies?.(message) === true;
  }

  deliver(envelope: Envelope): NodeOutcome {
    // A subscription request that reaches a client here stays kept here until the contact answers
    // it. The client's acknowledgement does not end it.
    const { stanza } = envelope;
    const { rooms, muc } = this.#deps;
    const { domainpart } = stanza.to;
    const isForRooms = rooms?.serves(domainpart) === true;
    if (isForRooms || muc?.serves(domainpart) === true) {
      envelope.detach(); // it waits for the database
      return (isForRooms ? rooms : muc!).take(envelope); // which settles it later
    }
    const isOrdered = stanza.kind === "message" && stanza.type === "groupchat" &&
      !envelope.isCarbon && rooms?.serves(stanza.from.domainpart) === true &&
      isUserHost(domainpart, this.#deps);
    envelope.isHeldForOrder = isOrdered && this.#isHere(stanza.to) &&
      this.#deps.copyOrder?.take(envelope) === true;
    if (envelope.isHeldForOrder) return "delivered";
    return this.#deliver(envelope);
  }

  /**
   * Delivers a message of a room that had to wait for others. False: no session here took it, as its
   * person may have moved meanwhile. The caller then has the duty to settle it.
   */
  deliverLate(envelope: Envelope): boolean {
    return this.#deliver(envelope) === "delivered";
  }

  /**
   * Gives one session here a copy of a message of a room that waits for others, if the session is to get
   * it.
   */
  deliverTo(jid: FullJid, message: Envelope): void {
    const { sessions, archive } = this.#deps;
    const session = sessions.find(jid);
    if (session?.priority === undefined) return;
    if (session.priority < leastPriority(message.stanza, [session])) return;
    const [copy] = copyEnvelope(message, 1);
    const stanza = archive?.stamped(message) ?? message.stanza;
    const outcome = sessions.deliverTo(session, stanza, copy!);
    if (outcome !== "delivered" || !copy!.isKept) copy!.settle();
  }

  #deliver(envelope: Envelope): NodeOutcome {
    const { stanza } = envelope;
    const keeper = stanza.kind === "presence" && envelope.hasKeeper ? envelope.fate : undefined;
    if (keeper !== undefined) envelope.fate = undefined;
    const before = this.#current;
    this.#current = envelope;
    const outcome = this.#hand(envelope);
    this.#current = before;
    if (keeper !== undefined) {
      if (outcome === "delivered") keeper.stays?.(0);
      else envelope.fate = keeper;
      return outcome;
    }
    if (outcome === "delivered" && !envelope.isKept && !this.#asked.has(stanza)) envelope.settle();
    return outcome;
  }

  #isHere({ bare }: Jid): boolean {
    return this.#deps.sessions.ofAccount(bare.text).length > 0;
  }

  /** Answers a request on behalf of an account. Called within `deliver`. */
  askServices(stanza: Stanza): NodeOutcome {
    const envelope = this.#current;
    if (envelope?.stanza === stanza) this.#asked.set(stanza, envelope);
    const outcome = this.#deps.services.handle(stanza, this.#clientOf(stanza));
    if (outcome !== "delivered") this.#asked.delete(stanza);
    return outcome;
  }

  /**
   * Returns the client that sent a stanza. Undefined for a stanza that another node or a component
   * brought, whatever its sender is called.
   */
  #clientOf({ from }: Stanza): OwnClient | undefined {
    const isOwn = this.#current?.arrival === "here" && from instanceof FullJid;
    return isOwn ? this.#deps.sessions.find(from) : undefined;
  }

  /**
   * Takes a service's answer, at once or later.
   * @param isLast true when the session that asked ends next. The answer then passes by what else goes
   * out in the account's name, behind which it would come too late.
   */
  answered(reply: Stanza, request: Stanza, isLast = false): void {
    const envelope = this.#asked.get(request);
    this.#asked.delete(request);
    const client = isLast && reply.to instanceof FullJid
      ? this.#deps.sessions.find(reply.to)
      : undefined;
    if (client?.send(reply) === true) return envelope?.settle();
    this.#deps.answer(reply, envelope);
  }

  /** Sends the presence of the account's available resources here to a resource on another node. */
  #tellPresences(probe: Stanza): NodeOutcome {
    for (const { lastPresence } of this.#deps.sessions.ofAccount(probe.to.bare.text)) {
      if (lastPresence !== undefined) {
        this.#deps.answer(readdress(lastPresence, probe.from), undefined);
      }
    }
    return "ignored";
  }

  /** Handles the stanzas of the server itself for accounts with rosters; undefined for others. */
  #handFromServer(envelope: Envelope): NodeOutcome | undefined {
    const { rosters, privacy, sessions } = this.#deps;
    const { stanza } = envelope;
    const { kind, type, to } = stanza;
    if (rosters === undefined || !rosters.serves(to.domainpart)) return undefined;
    if (kind === "iq") {
      if (rosters.takes(stanza)) return "ignored";
      const told = rosters.asTold(stanza);
      return told === stanza ? undefined : sessions.deliver(told, envelope);
    }
    if (type === "probe") {
      rosters.probed(stanza);
      return "ignored"; // its answers are stanzas of their own
    }
    if (privacy?.refusesPresence(stanza) === true) {
      rosters.refused(stanza, envelope);
      return "ignored";
    }
    if (!isSubscription(stanza)) return rosters.saw(stanza, envelope) ? undefined : "ignored";
    if (!(to instanceof FullJid)) return undefined;
    const session = sessions.find(to);
    // A request waits for the client's presence. It is brought then.
    if (session === undefined) return "ignored";
    if (type === "subscribe" && session.priority === undefined) return "ignored";
    return sessions.deliverTo(session, stanza, envelope);
  }

  /** Delivers a message, and tells the account's other sessions here of it (XEP-0280). */
  #handMessage(envelope: Envelope): NodeOutcome {
    const { sessions, carbons, archive } = this.#deps;
    const stanza = archive?.stamped(envelope) ?? envelope.stanza;
    if (envelope.isCarbon) return carbons?.told(stanza) === true ? "delivered" : "ignored";
    const outcome = sessions.deliver(stanza, envelope);
    if (outcome !== "delivered" && !envelope.isCopy) return outcome;
    // A session that ended without acknowledging it has given it back.
    if (envelope.isTold || carbons?.received(stanza) !== true) return outcome;
    envelope.isTold = true;
    return "delivered";
  }

  #hand(envelope: Envelope): NodeOutcome {
    const { stanza } = envelope;
    const { sessions, components, privacy } = this.#deps;
    const { localpart, domainpart } = stanza.to;
    if (isUserHost(domainpart, this.#deps)) {
      if (localpart === "") {
        return this.#deps.pep?.answered(stanza) === true ? "delivered" : this.askServices(stanza);
      }
      if (stanza.kind === "message") {
        const notified = stanza.type === "headline" ? this.#deps.pep?.notified(stanza) : undefined;
        if (notified !== undefined) return notified;
        // A copy, which nobody would send again, may overtake them.
        const mayWait = !envelope.isCopy && !envelope.hasKeeper;
        if (mayWait && this.#deps.offline?.holds(stanza) === true) return "no-session";
        return this.#handMessage(envelope);
      }
      if (isAccountProbe(stanza)) return this.#tellPresences(stanza);
      if (this.#deps.accountWatch?.takes(stanza) === true) return "ignored";
      if (privacy?.takes(stanza) === true) return "ignored"; // its client gets it a moment later
      return this.#handFromServer(envelope) ?? sessions.deliver(stanza, envelope);
    }
    return components.find(domainpart) === undefined
      ? "no-session"
      : components.deliver(stanza, envelope);
  }
}
