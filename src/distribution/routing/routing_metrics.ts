import type { Counter, Gauge, Histogram, Metrics } from "../../observe/mod.ts";

const CLASSIC = "global.mod_global_distrib.";

/**
 * Reason why a stanza ended neither delivered nor answered, counted under its own label. `owed` is
 * an error by which a node answers, here or elsewhere, for which even its reserved room was full:
 * the sender of the stanza that it answers hears nothing.
 */
export type DropReason =
  | "no-route"
  | "ignored"
  | "repeat"
  | "ttl"
  | "refused"
  | "returned"
  | "unacknowledged"
  | "owed";

const DROP_REASONS: readonly DropReason[] = [
  "no-route",
  "ignored",
  "repeat",
  "ttl",
  "refused",
  "returned",
  "unacknowledged",
  "owed",
];

/** The queue in which a stanza would have had to wait. */
export type WaitingPlace = "archive" | "bounce" | "handover" | "lookup";

/**
 * The lookup that had to wait: a stanza's first, a retry, or one after a recipient was revealed.
 */
export type DelayedLookup = "first" | "retry" | "reveal";

/** Metrics of routing; bound once. */
export interface RoutingMetrics {
  readonly deliveredWithTtl: Histogram;
  readonly stopTtlZero: Counter;
  readonly bounceQueueSize: Gauge;
  readonly bounceQueueBytes: Gauge;
  readonly bounceHeld: Counter;
  readonly incomingQueueTimeUs: Histogram;
  readonly errorsSent: Counter;
  readonly leftOpen: Counter;
  readonly dropped: Readonly<Record<DropReason, Counter>>;
  readonly noRoom: Readonly<Record<WaitingPlace, Counter>>;
  readonly lookupsDelayed: Readonly<Record<DelayedLookup, Counter>>;
}

/** Declares the metrics of routing. */
export function bindRoutingMetrics(metrics: Metrics): RoutingMetrics {
  const dropped = (reason: DropReason): Counter =>
    metrics.counter({
      name: "causeway_stanzas_dropped_total",
      help:
        "Stanzas that may not be answered (presence, results, errors) and found nobody, by reason",
      labels: { reason },
    });
  const noRoom = (queue: WaitingPlace): Counter =>
    metrics.counter({
      name: "causeway_stanzas_without_room_total",
      help: "Stanzas refused because too many waited already, by the queue that was full",
      labels: { queue },
    });
  const lookupsDelayed = (cause: DelayedLookup): Counter =>
    metrics.counter({
      name: "causeway_lookups_delayed_total",
      help: "Lookups that waited because a sender or a recipient had caused too many, by cause",
      labels: { cause },
    });
  return {
    deliveredWithTtl: metrics.histogram({
      name: "mod_global_distrib_delivered_with_ttl",
      help: "Hops left when a stanza was delivered in this datacenter",
      classicName: `${CLASSIC}delivered_with_ttl`,
    }, [1, 2, 3, 4, 6, 8, 16]),
    stopTtlZero: metrics.counter({
      name: "mod_global_distrib_stop_ttl_zero_total",
      help: "Stanzas not forwarded because they had no hops left",
      classicName: `${CLASSIC}stop_ttl_zero`,
    }),
    bounceQueueSize: metrics.gauge({
      name: "mod_global_distrib_bounce_queue_size",
      help: "Stanzas held because their recipient has no known place",
      classicName: `${CLASSIC}bounce_queue_size`,
    }),
    bounceQueueBytes: metrics.gauge({
      name: "causeway_bounce_queue_bytes",
      help: "Bytes of the stanzas that are held for bouncing",
    }),
    bounceHeld: metrics.counter({
      name: "causeway_bounce_held_total",
      help: "Stanzas that were held at least once",
    }),
    incomingQueueTimeUs: metrics.histogramUs({
      name: "mod_global_distrib_incoming_queue_time_seconds",
      help: "Time for which a stanza from a link waited for its sender's worker",
      classicName: `${CLASSIC}incoming.queue_time[us]`,
    }),
    errorsSent: metrics.counter({
      name: "causeway_stanza_errors_total",
      help: "Stanzas answered with an error by routing",
    }),
    leftOpen: metrics.counter({
      name: "causeway_stanzas_left_open_total",
      help:
        "Stanzas that this node left open when it stopped, for the node before it to route anew",
    }),
    dropped: Object.fromEntries(
      DROP_REASONS.map((reason) => [reason, dropped(reason)]),
    ) as Record<DropReason, Counter>, // fromEntries forgets the keys
    noRoom: {
      archive: noRoom("archive"),
      bounce: noRoom("bounce"),
      handover: noRoom("handover"),
      lookup: noRoom("lookup"),
    },
    lookupsDelayed: {
      first: lookupsDelayed("first"),
      retry: lookupsDelayed("retry"),
      reveal: lookupsDelayed("reveal"),
    },
  };
}
