import type { FullJid } from "../jid/jid.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { FrozenSession, Relay, SessionState } from "../sm/moving_session.ts";
import type { LocalSession } from "./local_session.ts";
import type { PresenceState } from "./presence_state.ts";
import type { SessionManagement } from "./session_management.ts";

/** Parts of a client's session that freezing needs. */
export interface FrozenC2sSessionDeps {
  readonly management: SessionManagement;
  readonly presence: PresenceState;
  readonly lang: string | undefined;
  readonly resendingMs: number;
  readonly cameBy: number | undefined;
  /** True for a stanza that the session has got at a node before, or by way of it. */
  hasFollowed(delivery: Delivery): boolean;
  /** Returns the stanzas that other sessions of the account here keep. */
  keptByOthers(): readonly Delivery[];
  /** Returns true while contacts may not have been told of the session's presence. */
  isNewlyAvailable(): boolean;
  /** Called when the time to resume the session is over. */
  expired(): void;
  /** Ends the wait for stanzas that follow from the node before this one. */
  caughtUp(): void;
  /** Called when nothing of the session is kept here any more. */
  over(): void;
  /** Takes the session out of the registry and sends its contacts nothing. */
  vanish(): Promise<void>;
}

/** A client's session on its way to another node. */
export class FrozenC2sSession implements FrozenSession {
  readonly jid: FullJid;
  readonly #session: LocalSession;
  readonly #deps: FrozenC2sSessionDeps;

  constructor(session: LocalSession, deps: FrozenC2sSessionDeps) {
    this.jid = session.jid;
    this.#session = session;
    this.#deps = deps;
  }

  get cameBy(): number | undefined {
    return this.#deps.cameBy;
  }

  get isCovered(): boolean {
    return this.#deps.management.covered.isComplete;
  }

  get kept(): number {
    return this.#deps.management.acks.unacknowledged;
  }

  get isFull(): boolean {
    return this.#deps.management.acks.isFull;
  }

  get waiting(): readonly Delivery[] {
    const { management, hasFollowed } = this.#deps;
    return management.acks.waiting(hasFollowed);
  }

  get unrelayed(): number {
    return this.#deps.management.acks.unrelayed;
  }

  keptByOthers(): readonly Delivery[] {
    return this.#deps.keptByOthers();
  }

  state(): SessionState {
    const { management, presence, lang, resendingMs } = this.#deps;
    const { acks, covered, resumeTimeoutMs } = management;
    return {
      jid: this.jid,
      received: covered.receivedH,
      covered: covered.coveredH,
      acknowledged: acks.acknowledgedH,
      resumeTimeoutMs,
      resendingMs,
      lang,
      priority: presence.priority,
      presence: presence.last,
      directed: presence.directed,
      hasCarbons: this.#session.hasCarbons,
      isNewlyAvailable: this.#deps.isNewlyAvailable(),
    };
  }

  relay(relay: Relay, from: number): void {
    this.#deps.management.acks.relay(relay, from);
  }

  relayMore(): void {
    this.#deps.management.acks.relayMore();
  }

  settle(count: number): void {
    this.#deps.management.acks.relayed(count);
  }

  isElsewhere(): Promise<boolean> {
    return this.#deps.management.shared.isElsewhere(this.jid);
  }

  thaw(): void {
    this.#deps.management.thaw(() => this.#deps.expired());
  }

  give(process: number): void {
    this.#deps.management.give(process);
  }

  leave(): Promise<void> {
    this.#deps.caughtUp();
    return this.#session.isOpen ? this.#deps.vanish() : Promise.resolve();
  }

  giveBack(relayed: number, mayBeRepeat: boolean): void {
    this.#deps.management.giveBack(relayed, mayBeRepeat ? "perhaps-delivered" : "passed-on");
    this.#deps.over();
  }
}
