import { integerIn } from "../../base/mod.ts";
import { deliveryRule, leastPriority } from "../stanza/delivery_rules.ts";
import { FullJid } from "../jid/jid.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { isReply } from "../stanza/stanza.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { DeliveryOutcome } from "../stream/stanza_sink.ts";
import { Turns } from "../stream/turns.ts";
import type { LocalSession, SessionRegistryEvents } from "./local_session.ts";

/** Options of a registry. */
export interface SessionRegistryOptions {
  /**
   * Sessions of one account at once, here and elsewhere; 1 to 10 000. Logins in the same moment
   * may all be refused. @default 50
   */
  readonly maxSessionsPerAccount?: number;
}

/** Dependencies of a registry, with its options. */
export interface SessionRegistryDeps extends SessionRegistryOptions {
  readonly events: SessionRegistryEvents;
  /**
   * Answers IQ requests to a bare JID on behalf of the account (RFC 6121 §8.5.1, §8.5.2.1.3). It is
   * called whether or not the account exists and has a session here, so that the answer does not reveal
   * it.
   */
  accountIq(stanza: Stanza): DeliveryOutcome;
  /**
   * Returns true if a stanza does not come to this session, because its owner does not want it
   * (XEP-0016 §2.2). It is asked for each session that would get the stanza. @default never
   */
  refuses?(session: FullJid, stanza: Stanza): boolean;
  /** Returns true for a domain of rooms whose occupants are accounts. @default there is none */
  isRoomDomain?(domainpart: string): boolean;
}

/** Default number of sessions of one account at once. */
export const DEFAULT_MAX_SESSIONS_PER_ACCOUNT = 50;

/**
 * The sessions that are connected to this process, and delivery to them.
 *
 * A session that keeps unacknowledged stanzas holds its place until everybody knows that it is over.
 * Stanzas that arrive meanwhile wait in its queue, and are returned after the ones already there.
 */
export class SessionRegistry {
  readonly #events: SessionRegistryEvents;
  readonly #accountIq: (stanza: Stanza) => DeliveryOutcome;
  readonly #refuses: (session: FullJid, stanza: Stanza) => boolean;
  readonly #isRoomDomain: (domainpart: string) => boolean;
  #maxPerAccount = DEFAULT_MAX_SESSIONS_PER_ACCOUNT;
  readonly #byFullJid = new Map<string, LocalSession>();
  readonly #byBareJid = new Map<string, LocalSession[]>();
  /** Sessions from other nodes that are about to get their place, by full JID. */
  readonly #arriving = new Map<string, LocalSession>();
  /** Steps for one JID or domain run one after another. */
  readonly #turns = new Turns();

  constructor(deps: SessionRegistryDeps) {
    this.#events = deps.events;
    this.#accountIq = deps.accountIq;
    this.#refuses = deps.refuses ?? (() => false);
    this.#isRoomDomain = deps.isRoomDomain ?? (() => false);
    this.change(deps);
  }

  /** Takes other bounds for sessions that open from now on. */
  change({ maxSessionsPerAccount }: SessionRegistryOptions): void {
    const max = maxSessionsPerAccount ?? DEFAULT_MAX_SESSIONS_PER_ACCOUNT;
    this.#maxPerAccount = integerIn("maxSessionsPerAccount", max, { min: 1, max: 10_000 });
  }

  /** True once a session here has turned message carbons on (XEP-0280). */
  usesCarbons = false;

  /** Sessions connected here. */
  get count(): number {
    return this.#byFullJid.size;
  }

  /** All sessions, in the order in which they came. */
  sessions(): IterableIterator<LocalSession> {
    return this.#byFullJid.values();
  }

  find(jid: FullJid): LocalSession | undefined {
    const session = this.#byFullJid.get(jid.text);
    return session?.isOpen === true ? session : undefined;
  }

  /** The sessions of an account, in the order in which they came. Callers must not keep the array. */
  ofAccount(bareJid: string): readonly LocalSession[] {
    return this.#byBareJid.get(bareJid) ?? [];
  }

  /**
   * Makes `session` reachable. It replaces a session with the same full JID, which ends with `conflict`
   * (RFC 6120 §7.7.2.2). One that comes from another node gets stanzas from the start: other nodes send
   * them here as soon as they know of it, and its client has been available all the time. It gets no
   * place, but `conflict`, if a client has logged in here with its full JID.
   *
   * @returns "opened", or the condition that answers the bind request
   */
  open(session: LocalSession): Promise<"opened" | StanzaErrorCondition> {
    return this.#turns.run(session.jid.text, async () => {
      if (session.origin === undefined) return await this.#open(session);
      // The login is newer. What is left of a session that has been here before is older.
      const there = this.find(session.jid);
      if (there !== undefined && there.isGiven !== true) return "conflict";
      this.#expect(session);
      try {
        return await this.#open(session);
      } finally {
        this.#expectNoMore(session);
      }
    });
  }

  async #open(session: LocalSession): Promise<"opened" | StanzaErrorCondition> {
    const older = this.#byFullJid.get(session.jid.text);
    if (older === undefined && !this.#hasRoom(session)) return "resource-constraint";
    if (older !== undefined) {
      if (!older.isManaged) this.#remove(older);
      older.end("conflict");
      await this.#events.closed(session.jid);
    }
    if (session.isOpen) {
      await this.#events.opened(session.jid, session.origin);
      const refusal = await this.#events.opening?.(session.jid);
      const elsewhere = this.#events.elsewhere?.(session.jid.bare.text) ?? 0;
      if (refusal === undefined && session.isOpen && this.#hasRoom(session, elsewhere)) {
        // The older session's own end finds that another has its place.
        if (older !== undefined) this.#remove(older);
        this.#add(session);
        session.opened();
        older?.giveBack();
        this.#events.reachable?.(session.jid);
        return "opened";
      }
      await this.#events.closed(session.jid);
      if (refusal !== undefined) {
        if (older !== undefined) this.#takePlace(older);
        return refusal;
      }
    }
    if (older !== undefined) this.#takePlace(older);
    return session.isOpen ? "resource-constraint" : "gone";
  }

  #expect(session: LocalSession): void {
    this.#arriving.set(session.jid.text, session);
    this.#addToAccount(session);
  }

  #expectNoMore(session: LocalSession): void {
    if (!this.#arriving.delete(session.jid.text)) return;
    if (this.#byFullJid.get(session.jid.text) !== session) this.#removeFromAccount(session);
  }

  /** Ends a session here, also one that is about to get its place, for a newer one at another node. */
  displaced(jid: FullJid): void {
    this.find(jid)?.end("conflict");
    this.#arriving.get(jid.text)?.end("conflict");
  }

  /** Notes that an account may have sessions elsewhere that it had not before. */
  accountChanged(bareJid: string): void {
    for (const session of this.ofAccount(bareJid)) session.loneUntilMs = 0;
  }

  /** True unless the account's resources here have newer presence, of a login elsewhere. */
  isNews(presence: Stanza): boolean {
    return this.#events.isNews?.(presence) ?? true;
  }

  /** Returns available presence of a client as it is sent, broadcast or directed. */
  completed(presence: Stanza): Stanza {
    return this.#events.completed?.(presence) ?? presence;
  }

  /** Reports that `session` has sent its presence to the account's resources here. */
  toldPresence(session: LocalSession, presence: Stanza): void {
    const isOver = presence.type === "unavailable";
    const { priority, creation = "" } = session;
    this.#events.presence?.(presence, isOver ? undefined : priority, creation);
  }

  /** True while contacts may still be told of the last presence of a session here. */
  isTelling(jid: FullJid): boolean {
    return this.#events.isTelling?.(jid) ?? false;
  }

  /**
   * Reports that `session` came from another node, with the presence that it had there.
   * @param isNew true when it has become available a moment ago, or contacts may not have been told
   *   of its last presence
   */
  arrived(session: LocalSession, isNew: boolean): void {
    this.#events.arrived?.(session.jid, session.priority, isNew);
  }

  /**
   * Reports that `session` has sent its initial presence: stanzas for the account's bare JID may reach
   * it.
   */
  becameAvailable(session: LocalSession): void {
    this.#events.available?.(session.jid);
    this.#events.reachable?.(session.jid);
  }

  /** Reports that `session` has moved to another node, and leaves next. */
  leaving(session: LocalSession): void {
    this.#events.leaving?.(session.jid);
  }

  /**
   * Forgets `session`, unless another has taken its place. Resolves when everything
   * that has happened to its full JID until now has been reported.
   */
  close(session: LocalSession): Promise<void> {
    const { jid, isManaged } = session;
    const wasHere = isManaged || this.#remove(session);
    return this.#turns.run(jid.text, async () => {
      if (!wasHere || (isManaged && this.#byFullJid.get(jid.text) !== session)) return;
      await this.#events.closed(jid);
      this.#takePlace(session);
    });
  }

  /** Ends all streams, and waits until the end of each session has been reported. */
  async closeAll(condition: StreamErrorCondition): Promise<void> {
    for (const session of [...this.#byFullJid.values()]) if (session.isOpen) session.end(condition);
    await this.settled();
  }

  /** Waits until everything that has happened so far has been reported. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /**
   * Delivers to the sessions here by RFC 6121 §8.5.
   *
   * "no-session" says that a session elsewhere, or a moment later, may do better, in three cases. No
   * session of the account is here. Or none is available yet, and a client that has just bound is about
   * to send its initial presence. Or the addressed full JID is not here, and RFC 6121 knows no other
   * resource for the stanza (requests, and all messages but chat). "ignored" covers stanzas that §8.5
   * drops in silence: errors to a bare JID, and results and presence without a recipient.
   *
   * @param delivery lent to sessions that keep the stanza until their client has acknowledged it
   */
  deliver(stanza: Stanza, delivery?: Delivery): DeliveryOutcome {
    const { to } = stanza;
    const session = to instanceof FullJid
      ? this.#byFullJid.get(to.text) ?? this.#arriving.get(to.text)
      : undefined;
    const isFromRoom = this.#isRoomDomain(stanza.from.domainpart);
    const isRerouted = delivery?.isRerouted === true;
    const rule = deliveryRule(stanza, session !== undefined, isRerouted, isFromRoom);
    switch (rule) {
      case "resource":
        return this.deliverTo(session!, stanza, delivery);
      case "account": {
        const sessions = this.#byBareJid.get(to.bare.text);
        return sessions === undefined
          ? "no-session"
          : this.#deliverToAccount(sessions, stanza, delivery);
      }
      case "missing":
        return "no-session"; // the session may be elsewhere, or come in a moment
      case "answer":
        return this.#accountIq(stanza);
      case "refuse":
        return "service-unavailable";
      case "ignore": {
        // Without any session here, the addressed one may be elsewhere.
        const mayBeElsewhere = to instanceof FullJid && !this.#byBareJid.has(to.bare.text);
        return mayBeElsewhere ? "no-session" : "ignored";
      }
      default:
        return rule satisfies never;
    }
  }

  /**
   * Makes sessions of an account keep a stanza in the place of copies of it.
   * @returns false when none keeps any
   */
  replaceCopies(delivery: Delivery): boolean {
    let isKept = false;
    for (const session of this.ofAccount(delivery.stanza.to.bare.text)) {
      if (session.replaceCopy?.(delivery) === true) isKept = true;
    }
    return isKept;
  }

  /**
   * True when the owner of a session does not want a stanza. `deliverTo` asks it. Who wraps a stanza in
   * another one has to ask for the stanza inside: the wrapper comes from the account itself.
   */
  refuses(session: FullJid, stanza: Stanza): boolean {
    return this.#refuses(session, stanza);
  }

  /**
   * Delivers to one session, unless its owner does not want the stanza. What is refused is dropped in
   * silence, as if the client had got it and said nothing: its sender must not see a difference. Only a
   * request has to be answered, as if the client were not there.
   */
  deliverTo(
    session: Pick<LocalSession, "jid" | "send">,
    stanza: Stanza,
    delivery?: Delivery,
  ): "delivered" | "ignored" | "hidden" | "resource-constraint" {
    if (this.refuses(session.jid, stanza)) {
      const isRequest = stanza.kind === "iq" && !isReply(stanza);
      return isRequest ? "hidden" : "ignored";
    }
    return session.send(stanza, delivery) ? "delivered" : "resource-constraint";
  }

  /**
   * Delivers to every available resource that RFC 6121 §8.5.2 gives the stanza to. None at all is no
   * error, except for a message that another resource could have got.
   */
  #deliverToAccount(
    sessions: readonly LocalSession[],
    stanza: Stanza,
    delivery: Delivery | undefined,
  ): DeliveryOutcome {
    const least = leastPriority(stanza, sessions);
    if (least === Infinity) return stanza.kind === "message" ? "no-session" : "ignored";
    let outcome: DeliveryOutcome = "ignored";
    for (const session of sessions) {
      if (session.priority === undefined || session.priority < least) continue;
      const result = this.deliverTo(session, stanza, delivery);
      if (result === "delivered") {
        outcome = result;
        if (delivery !== undefined && !session.isManaged) delivery.written();
      } else if (outcome === "ignored") outcome = result;
    }
    return outcome;
  }

  /**
   * Makes room for `session` if possible. Connected sessions have priority: of a full account the first
   * hibernating sessions here end. There may be several too many, after the bound was lowered. None
   * ends in vain.
   */
  #hasRoom(session: LocalSession, elsewhere = 0): boolean {
    const others = this.ofAccount(session.jid.bare.text).filter(({ isOpen, isGiven, jid }) =>
      // It takes the place of its own full JID. Sessions that have moved count elsewhere.
      isOpen && isGiven !== true && jid.text !== session.jid.text
    );
    const tooMany = Math.max(0, others.length + elsewhere + 1 - this.#maxPerAccount);
    const asleep = others.filter(({ isHibernating }) => isHibernating).slice(0, tooMany);
    if (asleep.length < tooMany) return false;
    for (const each of asleep) each.end("resource-constraint");
    return true;
  }

  #takePlace(session: LocalSession): void {
    this.#remove(session);
    session.giveBack();
  }

  #add(session: LocalSession): void {
    this.#byFullJid.set(session.jid.text, session);
    if (this.#arriving.get(session.jid.text) !== session) this.#addToAccount(session);
  }

  #addToAccount(session: LocalSession): void {
    const account = this.#byBareJid.get(session.jid.bare.text);
    if (account === undefined) this.#byBareJid.set(session.jid.bare.text, [session]);
    else {
      account.push(session);
      this.accountChanged(session.jid.bare.text);
    }
  }

  #remove(session: LocalSession): boolean {
    if (this.#byFullJid.get(session.jid.text) !== session) return false;
    this.#byFullJid.delete(session.jid.text);
    this.#removeFromAccount(session);
    return true;
  }

  #removeFromAccount(session: LocalSession): void {
    const left = this.ofAccount(session.jid.bare.text).filter((other) => other !== session);
    if (left.length === 0) this.#byBareJid.delete(session.jid.bare.text);
    else this.#byBareJid.set(session.jid.bare.text, left);
  }
}
