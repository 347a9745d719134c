import type { Counter, Metrics } from "../../../observe/mod.ts";

interface Standing {
  readonly applied: number;
  readonly lag: number;
  readonly snapshotRecords: number;
}

const APPLIED = "causeway_replication_applied_number";
const LAG = "causeway_replication_lag_changes";
const SNAPSHOT = "causeway_replication_snapshot_records";

/** Bounds on what another datacenter announces; the metrics' label `limit`. */
const LIMITS = ["claims", "claims-per-account", "domains", "endpoints-per-node", "nodes"] as const;

export type DatacenterLimit = typeof LIMITS[number];

/** Metrics of replication. */
export class ReplicationMetrics {
  /** Counts applied records of other datacenters. */
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
      help: "How often did a peer send entries that it may not send?",
    });
    this.unwritable = metrics.counter({
      name: "causeway_replication_unwritable_total",
      help: "How many entries of ours could not be sent, because no reader would take them?",
    });
    // They start at 0: Prometheus sees no increase in a counter that begins at 1.
    for (const limit of LIMITS) this.limitHit(limit);
  }

  /** Counts announcements of a datacenter past a bound. */
  limitHit(limit: DatacenterLimit): Counter {
    return this.#metrics.counter({
      name: "causeway_datacenter_limit_hits_total",
      help: "How often did another datacenter announce more than it may, by limit?",
      labels: { limit },
    });
  }

  /** Shows how far the datacenter `host` has applied our changes. */
  bindOut(host: string, read: () => Standing): void {
    this.#bind("out", { host, node: "" }, read);
  }

  /** Shows how far we have applied the changes of a node of `host`. */
  bindIn(host: string, node: string, read: () => Standing): void {
    this.#bind("in", { host, node }, read);
  }

  /** Removes the metrics of a datacenter that is gone. */
  unbindOut(host: string): void {
    this.#unbind("out", { host, node: "" });
  }

  /** Removes the metrics of a node that is gone. */
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
      help: "How many entries of a running snapshot were sent?",
      labels: all,
    }, () => read().snapshotRecords);
  }
}
