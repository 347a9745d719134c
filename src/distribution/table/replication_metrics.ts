import type { Counter, Metrics } from "../../observe/mod.ts";

interface Standing {
  readonly applied: number;
  readonly lag: number;
  readonly snapshotRecords: number;
}

/** What replication measures. */
export class ReplicationMetrics {
  /** Records of other datacenters that were applied. */
  readonly applied: Counter;
  readonly refused: Counter;
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    this.applied = metrics.counter({
      name: "causeway_replication_records_total",
      help: "How many claims and withdrawals of other datacenters were written into our Redis?",
    });
    this.refused = metrics.counter({
      name: "causeway_replication_refused_total",
      help: "How often did a peer tell of entries that are not its own to tell of?",
    });
  }

  /** What the datacenter `host` has of us. */
  bindOut(host: string, read: () => Standing): void {
    this.#bind("out", { host, node: "" }, read);
  }

  /** What we have of a node of `host`. */
  bindIn(host: string, node: string, read: () => Standing): void {
    this.#bind("in", { host, node }, read);
  }

  #bind(direction: string, labels: Record<string, string>, read: () => Standing): void {
    const all = { direction, ...labels };
    this.#metrics.gauge({
      name: "causeway_replication_applied_number",
      help: "Up to which change is a node's part of the table applied on the other side?",
      labels: all,
    }, () => read().applied);
    this.#metrics.gauge({
      name: "causeway_replication_lag_changes",
      help: "How many changes is the other side behind?",
      labels: all,
    }, () => read().lag);
    this.#metrics.gauge({
      name: "causeway_replication_snapshot_records",
      help: "How many entries of a running snapshot have gone over?",
      labels: all,
    }, () => read().snapshotRecords);
  }
}
