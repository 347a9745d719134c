import type { Counter, Metrics } from "../../observe/mod.ts";

interface Standing {
  readonly applied: number;
  readonly lag: number;
  readonly snapshotRecords: number;
}

const APPLIED = "causeway_replication_applied_number";
const LAG = "causeway_replication_lag_changes";
const SNAPSHOT = "causeway_replication_snapshot_records";

/** What replication measures. */
export class ReplicationMetrics {
  /** Records of other datacenters that were applied. */
  readonly applied: Counter;
  readonly refused: Counter;
  readonly unwritable: Counter;
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
    this.unwritable = metrics.counter({
      name: "causeway_replication_unwritable_total",
      help: "How many entries of ours could not be told, because no reader would take them?",
    });
  }

  /** A datacenter announced more than it may. */
  limitHit(limit: string): Counter {
    return this.#metrics.counter({
      name: "causeway_datacenter_limit_hits_total",
      help: "How often did another datacenter announce more than it may, by limit?",
      labels: { limit },
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

  /** The datacenter is gone. */
  unbindOut(host: string): void {
    this.#unbind("out", { host, node: "" });
  }

  /** The node is gone. */
  unbindIn(host: string, node: string): void {
    this.#unbind("in", { host, node });
  }

  #unbind(direction: string, labels: Record<string, string>): void {
    for (const name of [APPLIED, LAG, SNAPSHOT]) {
      this.#metrics.remove(name, { direction, ...labels });
    }
  }

  #bind(direction: string, labels: Record<string, string>, read: () => Standing): void {
    const all = { direction, ...labels };
    this.#metrics.gauge({
      name: APPLIED,
      help: "Up to which change is a node's part of the table applied on the other side?",
      labels: all,
    }, () => read().applied);
    this.#metrics.gauge({
      name: LAG,
      help: "How many changes is the other side behind?",
      labels: all,
    }, () => read().lag);
    this.#metrics.gauge({
      name: SNAPSHOT,
      help: "How many entries of a running snapshot have gone over?",
      labels: all,
    }, () => read().snapshotRecords);
  }
}
