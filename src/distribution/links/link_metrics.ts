import type { Counter, Histogram, MetricLabels, Metrics } from "../../observe/mod.ts";
import type { CloseReason } from "./connection/link_state.ts";
import type { LinkScope } from "./connection/link_scope.ts";

/** Metrics of one destination (`link_scope.ts`); bound once. */
export interface HostMetrics {
  readonly outgoingMessages: Counter;
  readonly outgoingQueueTime: Histogram;
  readonly outgoingEstablished: Counter;
  readonly outgoingClosed: Counter;
  readonly outgoingErrored: Counter;
  readonly outgoingDialsFailed: Counter;
  readonly outgoingReturned: Counter;
  readonly incomingMessages: Counter;
  readonly incomingTransferTime: Histogram;
  readonly incomingFirstPacket: Counter;
  readonly incomingClosed: Counter;
  readonly incomingErrored: Counter;
  readonly incomingRepeats: Counter;
  readonly incomingRefused: Counter;
}

/** Host label of connections that end before their host is known. */
export const UNKNOWN_HOST = "unknown";

/**
 * Names of the metrics, by scope. Operators of MongooseIM know the names of links between
 * datacenters. Links within a datacenter have names of our own, and stay out of the classic
 * figures.
 */
const NAMING = {
  mesh: { prefix: "mod_global_distrib", label: "host", isClassic: true },
  datacenter: { prefix: "causeway_cluster", label: "node", isClassic: false },
} as const;

/** Faults of a peer that this program tells of by name; a listener adds codes of its own. */
const PEER_FAULTS: readonly CloseReason[] = [
  "version",
  "identity",
  "malformed",
  "too-large",
  "timeout",
  "host-conflict",
  "number-gap",
  "overload",
];

type Naming = typeof NAMING[LinkScope];

/** The metrics of all links of one scope. */
export class LinkMetrics {
  readonly incomingEstablished: Counter;
  readonly #metrics: Metrics;
  readonly #naming: Naming;
  readonly #hosts = new Map<string, HostMetrics>();
  /** Names of the metrics that exist for each destination. */
  readonly #names = new Set<string>();

  constructor(metrics: Metrics, scope: LinkScope = "mesh") {
    this.#metrics = metrics;
    this.#naming = NAMING[scope];
    const { prefix, isClassic } = this.#naming;
    this.incomingEstablished = metrics.counter({
      name: `${prefix}_incoming_established_total`,
      help: "How many connections have other nodes made to us?",
      ...(isClassic ? { classicName: "global.mod_global_distrib.incoming.established" } : {}),
    });
    // They start at 0: Prometheus sees no increase in a counter that begins at 1.
    for (const reason of PEER_FAULTS) this.refused(reason);
  }

  /** Returns the counter of links refused or ended by a fault of the peer's, by reason. */
  refused(reason: string): Counter {
    return this.#metrics.counter({
      name: `${this.#naming.prefix}_links_refused_total`,
      help: "How many links were refused or ended because of what the peer is or sent?",
      labels: { reason },
    });
  }

  /** Declares the gauges of the lanes to one destination. */
  bindLevels(host: string, read: { items(): number; bytes(): number; open(): number }): void {
    const { prefix, label } = this.#naming;
    const labels = { [label]: host };
    for (const name of ["lane_items", "lane_bytes", "links_open"]) {
      this.#names.add(`${prefix}_${name}`);
    }
    this.#metrics.gauge({
      name: `${prefix}_lane_items`,
      help: "How many stanzas do the lanes to a destination hold?",
      labels,
    }, read.items);
    this.#metrics.gauge({
      name: `${prefix}_lane_bytes`,
      help: "How many bytes are allocated for the lanes to a destination?",
      labels,
    }, read.bytes);
    this.#metrics.gauge({
      name: `${prefix}_links_open`,
      help: "How many links to a destination are up?",
      labels,
    }, read.open);
  }

  /**
   * Returns the metrics of one destination, which must be known to exist: its name becomes a label.
   */
  host(host: string): HostMetrics {
    let known = this.#hosts.get(host);
    if (known === undefined) {
      known = bindHost(this.#metrics, host, { naming: this.#naming, names: this.#names });
      this.#hosts.set(host, known);
    }
    return known;
  }

  /** Removes the metrics of a destination that is gone for good. */
  forget(host: string): void {
    this.#hosts.delete(host);
    const labels = { [this.#naming.label]: host };
    for (const name of this.#names) this.#metrics.remove(name, labels);
  }
}

/** @param into takes the names of the declared metrics */
function bindHost(
  metrics: Metrics,
  host: string,
  into: { readonly naming: Naming; readonly names: Set<string> },
): HostMetrics {
  const { naming, names } = into;
  const { prefix, label } = naming;
  const labels: MetricLabels = { [label]: host };
  const named = (name: string) => {
    names.add(name);
    return name;
  };
  const counter = (name: string, help: string, isClassic = true) =>
    metrics.counter({
      name: named(`${prefix}_${name.replace(".", "_")}_total`),
      help,
      ...(isClassic && naming.isClassic
        ? { classicName: `global.mod_global_distrib.${name}.<host>` }
        : {}),
      labels,
    });
  const histogram = (name: string, help: string) =>
    metrics.histogramUs({
      name: named(`${prefix}_${name.replace(".", "_")}_seconds`),
      help,
      ...(naming.isClassic ? { classicName: `global.mod_global_distrib.${name}.<host>[us]` } : {}),
      labels,
    });
  return {
    outgoingMessages: counter("outgoing.messages", "How many stanzas were sent to a destination?"),
    outgoingQueueTime: histogram("outgoing.queue_time", "How long do stanzas wait to be written?"),
    outgoingEstablished: counter("outgoing.established", "How many of our links came up?"),
    outgoingClosed: counter("outgoing.closed", "How many of our links ended in order?"),
    outgoingErrored: counter(
      "outgoing.errored",
      "How many of our links broke after they had come up?",
    ),
    outgoingDialsFailed: counter(
      "outgoing.dials_failed",
      "How many attempts to connect ended before a link had come up?",
      false,
    ),
    outgoingReturned: counter(
      "outgoing.returned",
      "How many stanzas came back from the lanes to be routed anew or answered with an error?",
      false,
    ),
    incomingMessages: counter("incoming.messages", "How many stanzas came from a destination?"),
    incomingTransferTime: histogram(
      "incoming.transfer_time",
      "How long is a stanza on the network, from being written to being read?",
    ),
    incomingFirstPacket: counter(
      "incoming.first_packet",
      "How many connections have told where they come from?",
    ),
    incomingClosed: counter("incoming.closed", "How many links to us ended in order?"),
    incomingErrored: counter("incoming.errored", "How many links to us failed?"),
    incomingRepeats: counter(
      "incoming.repeats",
      "How many stanzas were dropped because they had already come on the same lane?",
      false,
    ),
    incomingRefused: counter(
      "incoming.refused",
      "How many stanzas were refused because of what they claim as their sender, or are malformed?",
      false,
    ),
  };
}
