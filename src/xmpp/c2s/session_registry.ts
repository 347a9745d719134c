import { isPresenceForServer, ruleForAccount, ruleForMissingResource } from "../delivery_rules.ts";
import { FullJid } from "../jid.ts";
import type { AccountRule } from "../delivery_rules.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { Stanza } from "../stanza.ts";
import type { StanzaErrorCondition } from "../stanza_error.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import type { DeliveryOutcome } from "../stream/stanza_sink.ts";
import { Turns } from "../stream/turns.ts";
import type { LocalSession, SessionHooks } from "./local_session.ts";

/** What a registry is given. */
export interface SessionRegistryOptions {
  readonly hooks: SessionHooks;
  /**
   * Answers IQ requests to a bare JID on behalf of the account (RFC 6121 §8.5.1, §8.5.2.1.3). Asked whether
   * or not the account exists and has a session here, so that the answer does not tell.
   */
  accountIq(stanza: Stanza): DeliveryOutcome;
  /** Sessions of one account at once; 1 to 10 000. @default 50 */
  readonly maxSessionsPerAccount?: number;
}

/** Sessions of one account at once, unless configured. */
export const DEFAULT_MAX_SESSIONS_PER_ACCOUNT = 50;

/**
 * The sessions that are connected to this process, and delivery to them.
 *
 * A session that keeps what its client has not acknowledged has its place until everybody knows that
 * it is over: what comes meanwhile waits in its queue, and is given back behind what was there.
 */
export class SessionRegistry {
  readonly #hooks: SessionHooks;
  readonly #accountIq: (stanza: Stanza) => DeliveryOutcome;
  readonly #maxPerAccount: number;
  readonly #byFullJid = new Map<string, LocalSession>();
  readonly #byBareJid = new Map<string, LocalSession[]>();
  /** Steps for one JID or domain run one after another. */
  readonly #turns = new Turns();

  constructor(options: SessionRegistryOptions) {
    const max = options.maxSessionsPerAccount ?? DEFAULT_MAX_SESSIONS_PER_ACCOUNT;
    if (!Number.isInteger(max) || max < 1 || max > 10_000) {
      throw new RangeError(
        `Cannot set maxSessionsPerAccount to ${max}: it must be an integer from 1 to 10000`,
      );
    }
    this.#hooks = options.hooks;
    this.#accountIq = options.accountIq;
    this.#maxPerAccount = max;
  }

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

  /** The sessions of an account, in the order in which they came; not to be kept. */
  ofAccount(bareJid: string): readonly LocalSession[] {
    return this.#byBareJid.get(bareJid) ?? [];
  }

  /**
   * Makes `session` reachable, taking the place of one with the same full JID, which is ended with
   * `conflict` (RFC 6120 §7.7.2.2).
   *
   * @returns "opened", or why not: the condition that answers the bind request
   */
  open(session: LocalSession): Promise<"opened" | StanzaErrorCondition> {
    return this.#turns.run(session.jid.text, async () => {
      const older = this.#byFullJid.get(session.jid.text);
      if (older === undefined && !this.#hasRoom(session)) return "resource-constraint";
      if (older !== undefined) {
        if (!older.isManaged) this.#remove(older);
        older.end("conflict");
        await this.#hooks.closed(session.jid);
      }
      if (session.isOpen) {
        await this.#hooks.opened(session.jid);
        if (session.isOpen && this.#hasRoom(session)) {
          // The older one's own end finds that somebody else has its place.
          if (older !== undefined) this.#remove(older);
          this.#add(session);
          session.opened();
          older?.giveBack();
          this.#hooks.reachable?.(session.jid);
          return "opened";
        }
        await this.#hooks.closed(session.jid);
      }
      if (older !== undefined) this.#takePlace(older);
      return session.isOpen ? "resource-constraint" : "gone";
    });
  }

  /** `session` has told the account's resources here of its presence. */
  toldPresence(session: LocalSession, presence: Stanza): void {
    const isOver = presence.type === "unavailable";
    this.#hooks.presence?.(presence, isOver ? undefined : session.priority);
  }

  /** `session` has come from another node, and is here what it was there. */
  arrived(session: LocalSession): void {
    this.#hooks.arrived?.(session.jid, session.priority);
  }

  /** `session` has sent its initial presence: what is for the account's bare JID may reach it. */
  becameAvailable(session: LocalSession): void {
    this.#hooks.available?.(session.jid);
    this.#hooks.reachable?.(session.jid);
  }

  /**
   * Forgets `session`; where another has taken its place, that is all. Resolves when the hooks have been
   * told of what happened to its full JID until now.
   */
  close(session: LocalSession): Promise<void> {
    const { jid, isManaged } = session;
    const wasHere = isManaged || this.#remove(session);
    return this.#turns.run(jid.text, async () => {
      if (!wasHere || (isManaged && this.#byFullJid.get(jid.text) !== session)) return;
      await this.#hooks.closed(jid);
      this.#takePlace(session);
    });
  }

  /** Ends all streams, and waits until everyone has been told that the sessions are gone. */
  async closeAll(condition: StreamErrorCondition): Promise<void> {
    for (const session of [...this.#byFullJid.values()]) if (session.isOpen) session.end(condition);
    await this.settled();
  }

  /** Waits until the hooks have been told of all that has happened so far. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /**
   * Delivers to the sessions here by RFC 6121 §8.5.
   *
   * "no-session" says that somebody elsewhere, or somebody in a moment, may do better: no session of
   * the account is here; or none is available yet, and a client that has just bound is about to send
   * its initial presence; or the addressed full JID is not here, and RFC 6121 knows no other resource
   * to give the stanza to (requests, and all messages but chat).
   * "ignored" is what §8.5 wants to vanish: errors to a bare JID, results and presence to nobody.
   *
   * @param delivery lent to sessions that keep the stanza until their client has acknowledged it
   */
  deliver(stanza: Stanza, delivery?: Delivery): DeliveryOutcome {
    const { to } = stanza;
    if (to instanceof FullJid) {
      const session = this.#byFullJid.get(to.text);
      if (session === undefined) return this.#deliverToMissing(stanza, delivery);
      if (!isPresenceForServer(stanza)) {
        return session.send(stanza, delivery) ? "delivered" : "resource-constraint";
      }
    }
    const rule = ruleForAccount(stanza);
    if (rule !== undefined) return this.#answerFor(stanza, rule);
    const sessions = this.#byBareJid.get(to.bare.text);
    return sessions === undefined ? "no-session" : this.#deliverToBare(sessions, stanza, delivery);
  }

  /** RFC 6121 §8.5.3.2: the full JID is not here. */
  #deliverToMissing(stanza: Stanza, delivery: Delivery | undefined): DeliveryOutcome {
    const sessions = this.#byBareJid.get(stanza.to.bare.text);
    if (sessions === undefined) return "no-session";
    const rule = ruleForMissingResource(stanza, delivery?.isRerouted === true);
    switch (rule) {
      case "account":
        return this.#deliverToBare(sessions, stanza, delivery);
      case "refuse":
        return "no-session"; // it may be somewhere else, or come in a moment
      case "ignore":
        return "ignored";
      default:
        return rule satisfies never;
    }
  }

  #answerFor(stanza: Stanza, rule: AccountRule): DeliveryOutcome {
    switch (rule) {
      case "answer":
        return this.#accountIq(stanza);
      case "refuse":
        return "service-unavailable";
      case "ignore":
        return "ignored";
      default:
        return rule satisfies never;
    }
  }

  /** RFC 6121 §8.5.2, where the resources of the account decide. */
  #deliverToBare(
    sessions: readonly LocalSession[],
    stanza: Stanza,
    delivery: Delivery | undefined,
  ): DeliveryOutcome {
    if (stanza.kind === "message") {
      return stanza.type === "headline"
        ? deliverToAll(sessions, stanza, { minPriority: 0, delivery })
        : deliverToMostAvailable(sessions, stanza, delivery);
    }
    // Probes and errors concern the server: without rosters it has nothing to say to them.
    return stanza.type === "probe" || stanza.type === "error"
      ? "ignored"
      : deliverToAll(sessions, stanza, { minPriority: -128, delivery });
  }

  /** Whoever is here goes before whoever may come back: of a full account the first that waits ends. */
  #hasRoom(session: LocalSession): boolean {
    const hasRoom = () => {
      const open = this.ofAccount(session.jid.bare.text).filter(({ isOpen }) => isOpen);
      return open.length < this.#maxPerAccount;
    };
    if (hasRoom()) return true;
    this.ofAccount(session.jid.bare.text).find(({ isHibernating }) => isHibernating)
      ?.end("resource-constraint");
    return hasRoom();
  }

  #takePlace(session: LocalSession): void {
    this.#remove(session);
    session.giveBack();
  }

  #add(session: LocalSession): void {
    this.#byFullJid.set(session.jid.text, session);
    const account = this.#byBareJid.get(session.jid.bare.text);
    if (account === undefined) this.#byBareJid.set(session.jid.bare.text, [session]);
    else account.push(session);
  }

  #remove(session: LocalSession): boolean {
    if (this.#byFullJid.get(session.jid.text) !== session) return false;
    this.#byFullJid.delete(session.jid.text);
    const left = this.ofAccount(session.jid.bare.text).filter((other) => other !== session);
    if (left.length === 0) this.#byBareJid.delete(session.jid.bare.text);
    else this.#byBareJid.set(session.jid.bare.text, left);
    return true;
  }
}

/** To every available resource of at least that priority; nobody is no fault. */
function deliverToAll(
  sessions: readonly LocalSession[],
  stanza: Stanza,
  { minPriority, delivery }: {
    readonly minPriority: number;
    readonly delivery: Delivery | undefined;
  },
): DeliveryOutcome {
  let outcome: DeliveryOutcome = "ignored";
  for (const session of sessions) {
    if (session.priority === undefined || session.priority < minPriority) continue;
    if (session.send(stanza, delivery)) {
      outcome = "delivered";
      if (delivery !== undefined && !session.isManaged) delivery.written();
    } else if (outcome === "ignored") outcome = "resource-constraint";
  }
  return outcome;
}

/** RFC 6121 §8.5.2.1.1: to the highest non-negative priority, all of them if several share it. */
function deliverToMostAvailable(
  sessions: readonly LocalSession[],
  stanza: Stanza,
  delivery: Delivery | undefined,
): DeliveryOutcome {
  let highest = -1;
  for (const session of sessions) {
    if (session.priority !== undefined && session.priority > highest) highest = session.priority;
  }
  return highest < 0
    ? "no-session"
    : deliverToAll(sessions, stanza, { minPriority: highest, delivery });
}
