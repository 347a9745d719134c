import type { PacedLog } from "../../../observe/mod.ts";
import type { NodeRef } from "../claims/node_leases.ts";
import { nodeId } from "./node_watch.ts";
import type { DatacenterLimit, ReplicationMetrics } from "./replication_metrics.ts";

/** Counts and logs what other datacenters send without being allowed to. */
export class PeerFaults {
  readonly #metrics: ReplicationMetrics;
  readonly #log: PacedLog;

  /** @param log paced, because a datacenter may cause lines as often as it likes */
  constructor(metrics: ReplicationMetrics, log: PacedLog) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** Notes something that a node may not send at all. */
  refused(node: NodeRef, detail: string): void {
    this.#metrics.refused.inc();
    this.#log.warn("replication.refused", nodeId(node), { host: node.host, detail });
  }

  /** Notes that a datacenter has announced `count` more of something than `bound`. */
  limitHit(host: string, limit: DatacenterLimit, bound: number, count: number): void {
    this.#metrics.limitHit(limit).inc(count);
    this.#log.warn("datacenter.limit", `${host} ${limit}`, { host, limit, bound });
  }
}
