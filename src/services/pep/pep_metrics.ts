import type { Counter, Metrics } from "../../observe/mod.ts";

/** Counters of personal eventing. */
export class PepMetrics {
  readonly published: Counter;
  readonly retracted: Counter;
  readonly notified: Counter;
  readonly unwanted: Counter;
  readonly lastItems: Counter;
  readonly failures: Counter;

  constructor(metrics: Metrics) {
    this.published = metrics.counter({
      name: "causeway_pep_published_total",
      help: "Items that accounts published at this node",
    });
    this.retracted = metrics.counter({
      name: "causeway_pep_retracted_total",
      help: "Items that accounts retracted at this node",
    });
    this.notified = metrics.counter({
      name: "causeway_pep_notifications_sent_total",
      help: "Notifications that this node sent to sessions of owners and contacts",
    });
    this.unwanted = metrics.counter({
      name: "causeway_pep_notifications_unwanted_total",
      help: "Notifications that arrived for sessions here whose clients are not interested",
    });
    this.lastItems = metrics.counter({
      name: "causeway_pep_last_items_total",
      help: "Last items that sessions here were sent when they became available",
    });
    this.failures = metrics.counter({
      name: "causeway_pep_failures_total",
      help: "Notifications and last items that were not sent because the database failed, or " +
        "because too many waited",
    });
  }
}
