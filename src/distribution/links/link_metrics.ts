import type { Counter, Histogram, MetricLabels, Metrics } from "../../observe/mod.ts";

/** What is counted for one remote datacenter; bound once. */
export interface HostMetrics {
  readonly outgoingMessages: Counter;
  readonly outgoingQueueTime: Histogram;
  readonly outgoingEstablished: Counter;
  readonly outgoingClosed: Counter;
  readonly outgoingErrored: Counter;
  readonly outgoingReturned: Counter;
  readonly incomingMessages: Counter;
  readonly incomingTransferTime: Histogram;
  readonly incomingFirstPacket: Counter;
  readonly incomingClosed: Counter;
  readonly incomingErrored: Counter;
  readonly incomingRepeats: Counter;
  readonly incomingRefused: Counter;
}

/** Shown as the host of connections that end before they have one. */
export const UNKNOWN_HOST = "unknown";

/** The metrics of all links; names as `design.md` §8 has them. */
export class LinkMetrics {
  readonly incomingEstablished: Counter;
  readonly #metrics: Metrics;
  readonly #hosts = new Map<string, HostMetrics>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    this.incomingEstablished = metrics.counter({
      name: "mod_global_distrib_incoming_established_total",
      help: "How many connections have nodes of other datacenters made to us?",
      classicName: "global.mod_global_distrib.incoming.established",
    });
  }

  /** Links refused or ended by a fault of the peer's, by reason. */
  refused(reason: string): Counter {
    return this.#metrics.counter({
      name: "mod_global_distrib_links_refused_total",
      help: "How many links were refused or ended because of what the peer is or sent?",
      labels: { reason },
    });
  }

  /** What the lanes of one host hold now. */
  bindLevels(host: string, read: { items(): number; bytes(): number; open(): number }): void {
    const labels = { host };
    this.#metrics.gauge({
      name: "mod_global_distrib_lane_items",
      help: "How many stanzas do the lanes to a datacenter hold?",
      labels,
    }, read.items);
    this.#metrics.gauge({
      name: "mod_global_distrib_lane_bytes",
      help: "How many bytes are allocated for the lanes to a datacenter?",
      labels,
    }, read.bytes);
    this.#metrics.gauge({
      name: "mod_global_distrib_links_open",
      help: "How many links to a datacenter are up?",
      labels,
    }, read.open);
  }

  /** The metrics of one host, which must be known to exist: its name becomes a label. */
  host(host: string): HostMetrics {
    let known = this.#hosts.get(host);
    if (known === undefined) {
      known = bindHost(this.#metrics, { host });
      this.#hosts.set(host, known);
    }
    return known;
  }
}

function bindHost(metrics: Metrics, labels: MetricLabels): HostMetrics {
  const counter = (name: string, help: string, isClassic = true) =>
    metrics.counter({
      name: `mod_global_distrib_${name.replace(".", "_")}_total`,
      help,
      ...(isClassic ? { classicName: `global.mod_global_distrib.${name}.<host>` } : {}),
      labels,
    });
  const histogram = (name: string, help: string) =>
    metrics.histogramUs({
      name: `mod_global_distrib_${name.replace(".", "_")}_seconds`,
      help,
      classicName: `global.mod_global_distrib.${name}.<host>[us]`,
      labels,
    });
  return {
    outgoingMessages: counter("outgoing.messages", "How many stanzas were sent to a datacenter?"),
    outgoingQueueTime: histogram("outgoing.queue_time", "How long do stanzas wait to be written?"),
    outgoingEstablished: counter("outgoing.established", "How many of our links came up?"),
    outgoingClosed: counter("outgoing.closed", "How many of our links ended in order?"),
    outgoingErrored: counter("outgoing.errored", "How many of our links failed?"),
    outgoingReturned: counter(
      "outgoing.returned",
      "How many stanzas came back from the lanes to be routed anew or answered with an error?",
      false,
    ),
    incomingMessages: counter("incoming.messages", "How many stanzas came from a datacenter?"),
    incomingTransferTime: histogram(
      "incoming.transfer_time",
      "How long is a stanza on its way from the node that accepted it?",
    ),
    incomingFirstPacket: counter(
      "incoming.first_packet",
      "How many connections have told which datacenter they come from?",
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
