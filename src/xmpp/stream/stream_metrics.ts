import type { Counter, Metrics } from "../../observe/mod.ts";
import type { StanzaKind } from "../stanza/stanza.ts";

/** Edge that a stream is on; the metrics' label `edge`. */
export type StreamEdge = "c2s" | "websocket" | "component";

/** Limits of the edge; the metrics' label `limit`. */
const LIMIT_NAMES = [
  "stanza-bounds",
  "unauthenticated-bytes",
  "late-bytes",
  "pipelined-starttls",
  "negotiation-time",
  "auth-failures",
  "pending-bytes",
  "owed-bytes",
  "slow-reader",
  "directed-presence",
  "held-presence",
  "sessions-per-account",
  "unacknowledged-stanzas",
  "unacknowledged-time",
  "waiting-bytes",
  "unauthenticated-streams",
  "streams-per-address",
  "connection-rate",
  "login-rate",
  "failed-logins",
  "session-rate",
  "stanza-rate",
  "id-bytes",
] as const;

export type StreamLimitName = typeof LIMIT_NAMES[number];

type ByKind = Readonly<Record<StanzaKind, Counter>>;

/** Counts of one edge's streams; children are bound here, once. */
export class StreamMetrics {
  readonly opened: Counter;
  /** Stanzas read from peers, by kind. */
  readonly received: ByKind;
  /** Stanzas written to peers, by kind. */
  readonly sent: ByKind;
  /** Stanzas among those that were lost with their connection. */
  readonly unwritten: Counter;
  readonly #metrics: Metrics;
  readonly #edge: StreamEdge;

  constructor(metrics: Metrics, edge: StreamEdge) {
    this.#metrics = metrics;
    this.#edge = edge;
    this.opened = metrics.counter({
      name: "xmpp_streams_opened_total",
      help: "Streams that a peer connected for",
      labels: { edge },
    });
    this.received = byKind((kind) =>
      metrics.counter({
        name: "xmpp_stanzas_received_total",
        help: "Stanzas read from peers",
        labels: { edge, kind },
      })
    );
    this.sent = byKind((kind) =>
      metrics.counter({
        name: "xmpp_stanzas_sent_total",
        help: "Stanzas written to peers",
        labels: { edge, kind },
      })
    );
    this.unwritten = metrics.counter({
      name: "xmpp_stanzas_unwritten_total",
      help: "Stanzas that still waited to be written as the connection of a component, or of a " +
        "client without stream management, ended: they are lost",
      labels: { edge },
    });
    // They start at 0: Prometheus sees no increase in a counter that begins at 1.
    for (const limit of LIMIT_NAMES) this.#limitHits(limit);
  }

  /** Registers a gauge that shows `read()` as the number of sessions or components connected here. */
  watchSessions(read: () => number): void {
    this.#metrics.gauge({
      name: "xmpp_sessions",
      help: "Sessions and components connected to this node; clients over WebSocket are under c2s",
      // A session may continue on another carrier than its first one (XEP-0198 §5).
      labels: { edge: this.#edge === "websocket" ? "c2s" : this.#edge },
    }, read);
  }

  /** Counts the end of a stream; `condition` is its stream error, `none` after an orderly end. */
  closed(condition: string): void {
    this.#metrics.counter({
      name: "xmpp_streams_closed_total",
      help: "Streams that ended, by the stream error that ended them",
      labels: { edge: this.#edge, condition },
    }).inc();
  }

  authSucceeded(mechanism: string): void {
    this.#metrics.counter({
      name: "xmpp_auth_successes_total",
      help: "Authentications that succeeded",
      labels: { edge: this.#edge, mechanism },
    }).inc();
  }

  authFailed(mechanism: string, condition: string): void {
    this.#metrics.counter({
      name: "xmpp_auth_failures_total",
      help: "Authentications that failed, by the reason given to the peer",
      labels: { edge: this.#edge, mechanism, condition },
    }).inc();
  }

  limitHit(limit: StreamLimitName): void {
    this.#limitHits(limit).inc();
  }

  #limitHits(limit: StreamLimitName): Counter {
    return this.#metrics.counter({
      name: "xmpp_limit_hits_total",
      help: "Times that a peer ran into a limit",
      labels: { edge: this.#edge, limit },
    });
  }
}

function byKind(bind: (kind: StanzaKind) => Counter): ByKind {
  return { message: bind("message"), presence: bind("presence"), iq: bind("iq") };
}
