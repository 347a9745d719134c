import type { CancelTimer } from "../../base/mod.ts";
import { parseHandled } from "../sm/counter.ts";
import type { Delivery, SessionReturn } from "../sm/delivery.ts";
import type { EnableRequest } from "../sm/enable_request.ts";
import type { FreezeOwner, SessionState, Unfreezing } from "../sm/moving_session.ts";
import type { AckLink, SessionAcksEvents } from "../sm/session_acks.ts";
import { CoveredStanzas } from "../sm/covered_stanzas.ts";
import { SessionAcks } from "../sm/session_acks.ts";
import type { ManagedEnd } from "../sm/sm_metrics.ts";
import { enabledXml, handledTooHighContent } from "../sm/sm_xml.ts";
import type { ManagedSession, StreamManagement } from "../sm/stream_management.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StreamMetrics } from "../stream/stream_metrics.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";

/** A session, as its own stream management sees it. */
export interface ManagedStreamSession extends ManagedSession {
  /** As in `ManagedSession`. `content` stands beside the condition. */
  end(condition: StreamErrorCondition, content?: string): void;
  /** Ends the connection of a client that acknowledges nothing. */
  cutOff(): void;
}

/** Objects that a session needs for stream management. */
export interface SessionManagementDeps {
  readonly shared: StreamManagement;
  readonly metrics: StreamMetrics;
}

/** Start of a managed session. */
interface Beginning {
  /** Id by which the stream can be resumed; undefined when it cannot. */
  readonly id: string | undefined;
  readonly resumeTimeoutMs: number;
  /** Link that carries the session; undefined while it has no connection. */
  readonly link: AckLink | undefined;
  /** State that the session had at another node; undefined for a new session. */
  readonly state: SessionState | undefined;
}

/** The part of a session that exists with stream management: from `<enable/>` on, over all its streams. */
export class SessionManagement {
  readonly shared: StreamManagement;
  /** The client's stanzas, until it may forget them. */
  readonly covered: CoveredStanzas;
  /** The stanzas for the client, until it has acknowledged them. */
  readonly acks: SessionAcks;
  /** Milliseconds in which its stream can be resumed. */
  readonly resumeTimeoutMs: number;
  /** Reason why the session ends. */
  endReason: ManagedEnd = "closed";
  readonly #session: ManagedStreamSession;
  readonly #id: string | undefined;
  #isHibernating = false;
  #isGiven = false;
  #cancelTimeout: CancelTimer | undefined;
  /** Owner of a freeze: the code that moves the session to another node. */
  #freezer: FreezeOwner | undefined;

  private constructor(
    session: ManagedStreamSession,
    { shared, metrics }: SessionManagementDeps,
    { id, resumeTimeoutMs, link, state }: Beginning,
  ) {
    this.shared = shared;
    this.resumeTimeoutMs = resumeTimeoutMs;
    this.#session = session;
    this.#id = id;
    const events: SessionAcksEvents = {
      overflowed: () => {
        this.endReason = "overflow";
        metrics.limitHit("unacknowledged-stanzas");
        session.end("resource-constraint");
      },
      unresponsive: () => {
        metrics.limitHit("unacknowledged-time");
        session.cutOff();
      },
      lookAround: () => shared.lookFor(session),
    };
    this.covered = new CoveredStanzas(link, shared, state?.received);
    const { jid } = session;
    const acknowledged = state?.acknowledged ?? 0;
    this.acks = new SessionAcks(link, { management: shared, events, jid, acknowledged });
  }

  /**
   * Begins as `<enable/>` asks for (XEP-0198 §3). The answer must be written at once, because counting
   * begins with it.
   */
  static enable(
    session: ManagedStreamSession,
    request: EnableRequest,
    { shared, metrics, link }: SessionManagementDeps & { readonly link: AckLink },
  ): { readonly management: SessionManagement; readonly answer: string } {
    const limitMs = shared.options.resumeTimeoutMs;
    // A request for 0 s leaves no time to resume.
    const resumeTimeoutMs = Math.min((request.maxSeconds ?? Infinity) * 1000, limitMs);
    const id = shared.enabled(session, request.isResumable && resumeTimeoutMs > 0);
    const maxSeconds = Math.ceil(resumeTimeoutMs / 1000);
    const beginning = { id, resumeTimeoutMs, link, state: undefined };
    return {
      management: new SessionManagement(session, { shared, metrics }, beginning),
      answer: enabledXml(id === undefined ? undefined : { id, maxSeconds }),
    };
  }

  /** Continues with the state of another node's session, which was resumed here by `id`. */
  static adopt(
    session: ManagedStreamSession,
    { state, id, ...deps }: SessionManagementDeps & {
      readonly state: SessionState;
      readonly id: string;
    },
  ): SessionManagement {
    const { resumeTimeoutMs } = state;
    return new SessionManagement(session, deps, { id, resumeTimeoutMs, link: undefined, state });
  }

  /** True while the session waits, without a connection, to be resumed. */
  get isHibernating(): boolean {
    return this.#isHibernating;
  }

  /** True once the session belongs to another node. */
  get isGiven(): boolean {
    return this.#isGiven;
  }

  get isResumable(): boolean {
    return this.#id !== undefined;
  }

  /** Handles the client's `<a/>` (XEP-0198 §4). */
  acknowledged(answer: ScannedElement): void {
    const { acks } = this;
    const h = parseHandled(answer.attribute("h"));
    if (h === undefined) return this.#session.end("bad-format");
    if (acks.acknowledged(h)) return;
    this.#session.end("undefined-condition", handledTooHighContent(h, acks.sentCount));
  }

  /**
   * Calls `go` once the client may forget all that it has sent: when all is covered, or after
   * `endHoldMs` at the latest.
   * @returns a function that stops waiting
   */
  whenCovered(go: () => void): CancelTimer {
    const { covered, shared } = this;
    if (covered.isComplete) {
      go();
      return () => {};
    }
    const cancel = shared.clock.after(shared.options.endHoldMs, () => {
      covered.watch(undefined);
      covered.coverAll();
      go();
    });
    covered.watch(() => {
      covered.watch(undefined);
      cancel();
      go();
    });
    return cancel;
  }

  /** Registers the session under the id that it had on its old node. */
  adopted(): void {
    if (this.#id !== undefined) this.shared.adopted(this.#session, this.#id);
  }

  /** Waits for the client after a lost connection; calls `expired` when nobody has resumed in time. */
  hibernate(expired: () => void): void {
    const { metrics, log } = this.shared;
    this.#isHibernating = true;
    this.#unlink();
    metrics.hibernated.inc();
    log.info("sm.hibernating", {
      jid: this.#session.jid.text,
      unacknowledged: this.acks.unacknowledged,
      timeoutMs: this.resumeTimeoutMs,
    });
    this.#expireLater(expired);
  }

  /** Carries the session over `link` from now on; `h` was already told. */
  resume(link: AckLink): void {
    this.covered.resume(link);
    this.acks.resume(link);
  }

  /** Ends the wait, because the session goes on or is over. */
  wake(): void {
    this.#isHibernating = false;
    this.#cancelTimeout?.();
    this.#cancelTimeout = undefined;
    this.#letGo("superseded");
  }

  /** Freezes the session for another node. Until the move is decided, it only keeps what comes. */
  freeze(freezer: FreezeOwner): void {
    this.#letGo("superseded");
    this.#cancelTimeout?.();
    this.#cancelTimeout = undefined;
    if (!this.#isHibernating) this.#unlink();
    this.#isHibernating = true;
    this.#freezer = freezer;
    this.covered.watch(() => freezer.covered());
  }

  /** Undoes `freeze`: the session waits for its client as before. */
  thaw(expired: () => void): void {
    this.#freezer = undefined;
    this.covered.watch(undefined);
    this.acks.endRelay();
    this.#expireLater(expired);
  }

  /** Marks the session as moved to the process `process`. */
  give(process: number): void {
    this.#isGiven = true;
    if (this.#id !== undefined) this.shared.passed(this.#session, this.#id, process);
  }

  /** Reports to the owner of a freeze that the session can no longer move. */
  lost(): void {
    this.#letGo("ended");
  }

  /** Ends the session: its id finds it no more. */
  close(): void {
    this.lost();
    this.wake();
    const { endReason: reason } = this;
    this.shared.ended(this.#session, this.#id, { h: this.covered.receivedH, reason });
  }

  /**
   * Returns what the client has not acknowledged. Called after everybody knows that the session is gone.
   * @param relayed number of the last stanza that another node was sent
   * @param reason why those come back
   */
  giveBack(relayed = 0, reason: SessionReturn = "unacknowledged"): void {
    const sent = relayed - this.acks.settledByRelay;
    const unacknowledged = this.end();
    this.shared.log.info("sm.ended", {
      jid: this.#session.jid.text,
      reason: this.#isGiven ? "given" : this.endReason,
      unacknowledged: unacknowledged.length,
    });
    this.shared.giveBack(unacknowledged, sent, reason);
  }

  /** Ends both counts; returns the unacknowledged stanzas, in order, to the caller. */
  end(): Delivery[] {
    this.covered.end();
    return this.acks.end();
  }

  #unlink(): void {
    this.covered.unlink();
    this.acks.unlink();
  }

  #expireLater(expired: () => void): void {
    this.#cancelTimeout = this.shared.clock.after(this.resumeTimeoutMs, () => {
      this.endReason = "timeout";
      expired();
    });
  }

  #letGo(reason: Unfreezing): void {
    const freezer = this.#freezer;
    if (freezer === undefined) return;
    this.#freezer = undefined;
    this.covered.watch(undefined);
    if (!this.#isGiven) this.acks.endRelay();
    freezer.ended(reason);
  }
}
