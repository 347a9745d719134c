import type { Counter, Metrics } from "../../observe/mod.ts";

/** Reason why a stream was not resumed; the metrics' label `reason`. */
export type ResumeFailure =
  | "unknown"
  | "stale"
  | "other-account"
  | "bad-request"
  | "handled-count-too-high";

/**
 * Reason why a session with stream management ended; the metrics' label `reason`. `budget`: the node's
 * budget ran out, and the queues of this session's account held most of it.
 */
export type ManagedEnd = "closed" | "timeout" | "overflow" | "budget" | "moved";

/** Counts of stream management, bound once. */
export class StreamManagementMetrics {
  readonly resumed: Counter;
  readonly hibernated: Counter;
  readonly rerouted: Counter;
  readonly unprotected: Counter;
  readonly released: Counter;
  /** Stanzas returned to their senders because they ended their recipients' streams. */
  readonly givenUp: Counter;
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    this.resumed = metrics.counter({
      name: "xmpp_sm_resumed_total",
      help: "Streams that a client resumed",
    });
    this.hibernated = metrics.counter({
      name: "xmpp_sm_hibernated_total",
      help: "Sessions that lost their connection and waited to be resumed",
    });
    this.rerouted = metrics.counter({
      name: "xmpp_sm_rerouted_total",
      help:
        "Stanzas routed again because the session they were for ended without acknowledging them",
    });
    this.released = metrics.counter({
      name: "xmpp_sm_unprotected_deliveries_total",
      help:
        "Stanzas that only this process still holds, because their client is more than unsettled_max behind",
    });
    this.givenUp = metrics.counter({
      name: "xmpp_sm_given_up_total",
      help: "Stanzas returned to their senders because their recipients' streams ended each time",
    });
    this.unprotected = metrics.counter({
      name: "xmpp_sm_unprotected_total",
      help: "Stanzas acknowledged to a client while only this process still held them",
    });
  }

  /** Registers gauges for the sessions that use stream management, and for those without a connection. */
  watch(sessions: () => number, hibernating: () => number): void {
    this.#metrics.gauge({
      name: "xmpp_sm_sessions",
      help: "Sessions that use stream management",
    }, sessions);
    this.#metrics.gauge({
      name: "xmpp_sm_hibernating_sessions",
      help: "Sessions without a connection that can be resumed",
    }, hibernating);
  }

  resumeFailed(reason: ResumeFailure): void {
    this.#metrics.counter({
      name: "xmpp_sm_resume_failures_total",
      help: "Attempts to resume a stream that failed, by reason",
      labels: { reason },
    }).inc();
  }

  ended(reason: ManagedEnd): void {
    this.#metrics.counter({
      name: "xmpp_sm_sessions_ended_total",
      help: "Sessions with stream management that ended, by reason",
      labels: { reason },
    }).inc();
  }

  /** Counts a dropped stanza that was unacknowledged and of no use to anybody else. */
  dropped(kind: string): void {
    this.#metrics.counter({
      name: "xmpp_sm_dropped_total",
      help: "Unacknowledged presence, results and errors dropped when their session ended, by kind",
      labels: { kind },
    }).inc();
  }
}
