import type { FullJid } from "../jid/jid.ts";
import type { FrozenSession, Relay, SessionState } from "../sm/moving_session.ts";
import type { C2sSession } from "./c2s_session.ts";
import type { PresenceState } from "./presence_state.ts";
import type { SessionManagement } from "./session_management.ts";

/** Parts of a client's session that freezing needs. */
export interface FreezableParts {
  readonly management: SessionManagement;
  readonly presence: PresenceState;
  readonly lang: string | undefined;
  readonly resendingMs: number;
  /** Called when the time to resume the session is over. */
  expired(): void;
  /** Takes the session out of the registry and sends its contacts nothing. */
  vanish(): Promise<void>;
}

/** A client's session on its way to another node. */
export class FrozenC2sSession implements FrozenSession {
  readonly jid: FullJid;
  readonly #session: C2sSession;
  readonly #parts: FreezableParts;

  constructor(session: C2sSession, parts: FreezableParts) {
    this.jid = session.jid;
    this.#session = session;
    this.#parts = parts;
  }

  get isCovered(): boolean {
    return this.#parts.management.acks.isCovered;
  }

  get kept(): number {
    return this.#parts.management.acks.unacknowledged;
  }

  get isFull(): boolean {
    return this.#parts.management.acks.isFull;
  }

  get unrelayed(): number {
    return this.#parts.management.acks.unrelayed;
  }

  state(): SessionState {
    const { management, presence, lang, resendingMs } = this.#parts;
    const { acks, resumeTimeoutMs } = management;
    return {
      jid: this.jid,
      received: acks.receivedH,
      covered: acks.coveredH,
      acknowledged: acks.acknowledgedH,
      resumeTimeoutMs,
      resendingMs,
      lang,
      priority: presence.priority,
      presence: presence.last,
      directed: presence.directed,
    };
  }

  relay(relay: Relay, from: number): void {
    this.#parts.management.acks.relay(relay, from);
  }

  relayMore(): void {
    this.#parts.management.acks.relayMore();
  }

  settle(count: number): void {
    this.#parts.management.acks.relayed(count);
  }

  isElsewhere(): Promise<boolean> {
    return this.#parts.management.shared.isElsewhere(this.jid);
  }

  thaw(): void {
    this.#parts.management.thaw(() => this.#parts.expired());
  }

  give(process: number): void {
    this.#parts.management.give(process);
  }

  leave(): Promise<void> {
    return this.#session.isOpen ? this.#parts.vanish() : Promise.resolve();
  }

  giveBack(mayBeRepeat: boolean): void {
    this.#parts.management.giveBack(mayBeRepeat);
  }
}
