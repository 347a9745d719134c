import type { Counter, Metrics } from "../../observe/mod.ts";

/** Metrics of messages that wait for their recipients. */
export class OfflineMetrics {
  readonly kept: Counter;
  readonly refused: Counter;
  readonly failed: Counter;
  readonly delivered: Counter;
  readonly returned: Counter;
  readonly expired: Counter;

  constructor(metrics: Metrics, pending: () => number) {
    const counter = (outcome: string) =>
      metrics.counter({
        name: "causeway_offline_messages_total",
        help: "Messages for accounts that are offline, by outcome: kept in the store; refused " +
          "because there is no room or no such account; failed because the store failed; " +
          "delivered to a client that became available; returned to the store because that " +
          "client was gone; or expired",
        labels: { outcome },
      });
    this.kept = counter("kept");
    this.refused = counter("refused");
    this.failed = counter("failed");
    this.delivered = counter("delivered");
    this.returned = counter("returned");
    this.expired = counter("expired");
    metrics.gauge({
      name: "causeway_offline_messages_pending",
      help: "Messages that this node is writing to the store of offline messages",
    }, pending);
  }
}
