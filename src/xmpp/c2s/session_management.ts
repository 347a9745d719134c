import type { CancelTimer } from "../../base/mod.ts";
import { parseHandled } from "../sm/counter.ts";
import type { AckLink, AckOwner } from "../sm/session_acks.ts";
import { SessionAcks } from "../sm/session_acks.ts";
import type { ManagedEnd } from "../sm/sm_metrics.ts";
import { enabledXml } from "../sm/sm_xml.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import type { C2sSession } from "./c2s_session.ts";

/** What turns stream management on for a session. */
export interface EnableTerms {
  readonly shared: StreamManagement<C2sSession>;
  readonly link: AckLink;
  readonly owner: AckOwner;
}

/** What a session with stream management has besides: from `<enable/>` on, over all its streams. */
export class SessionManagement {
  readonly shared: StreamManagement<C2sSession>;
  readonly acks: SessionAcks;
  /** Why the session ends, unless it just closes. */
  endReason: ManagedEnd = "closed";
  readonly #session: C2sSession;
  /** By which its stream can be resumed; undefined when it cannot. */
  readonly #id: string | undefined;
  readonly #resumeTimeoutMs: number;
  #isHibernating = false;
  #cancelTimeout: CancelTimer | undefined;

  /** Answers `<enable/>` (XEP-0198 §3); counting begins behind the answer. */
  constructor(session: C2sSession, enable: ScannedElement, { shared, link, owner }: EnableTerms) {
    const resume = enable.attribute("resume");
    const max = parseHandled(enable.attribute("max"));
    const limitMs = shared.options.resumeTimeoutMs;
    // `max` is what the client would like, in seconds; 0 is no time to come back in.
    const resumeTimeoutMs = max === undefined ? limitMs : Math.min(max * 1000, limitMs);
    const isResumable = (resume === "true" || resume === "1") && resumeTimeoutMs > 0;
    const id = shared.enabled(session, isResumable);
    const maxSeconds = Math.ceil(resumeTimeoutMs / 1000);
    link.sendNonza(enabledXml(id === undefined ? undefined : { id, maxSeconds }));
    this.shared = shared;
    this.acks = new SessionAcks(link, { management: shared, owner });
    this.#session = session;
    this.#id = id;
    this.#resumeTimeoutMs = resumeTimeoutMs;
  }

  /** True while the session waits, without a connection, to be resumed. */
  get isHibernating(): boolean {
    return this.#isHibernating;
  }

  get isResumable(): boolean {
    return this.#id !== undefined;
  }

  /** The connection is gone; `expired` is called when nobody has come back in time. */
  hibernate(expired: () => void): void {
    const { metrics, log, clock } = this.shared;
    this.#isHibernating = true;
    this.acks.unlink();
    metrics.hibernated.inc();
    log.info("sm.hibernating", {
      jid: this.#session.jid.text,
      unacknowledged: this.acks.unacknowledged,
      timeoutMs: this.#resumeTimeoutMs,
    });
    this.#cancelTimeout = clock.after(this.#resumeTimeoutMs, () => {
      this.endReason = "timeout";
      expired();
    });
  }

  /** It goes on, or it is over. */
  wake(): void {
    this.#isHibernating = false;
    this.#cancelTimeout?.();
    this.#cancelTimeout = undefined;
  }

  /** The session is over: it cannot be found any more. */
  close(): void {
    this.wake();
    const { endReason: reason } = this;
    this.shared.ended(this.#session, this.#id, { h: this.acks.receivedH, reason });
  }

  /** Gives back what the client has not acknowledged; after everybody knows that the session is gone. */
  giveBack(): void {
    const unacknowledged = this.acks.end();
    this.shared.log.info("sm.ended", {
      jid: this.#session.jid.text,
      reason: this.endReason,
      unacknowledged: unacknowledged.length,
    });
    this.shared.giveBack(unacknowledged);
  }
}
