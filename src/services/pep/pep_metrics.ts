import type { Counter, Metrics } from "../../observe/mod.ts";

/** Help texts of the counters, by the middle of their names. */
const COUNTED = {
  published: "Items that accounts published at this node",
  retracted: "Items that accounts retracted at this node",
  notifications_sent: "Notifications that this node sent to sessions of owners and contacts",
  notifications_unwanted:
    "Notifications that arrived for sessions here whose clients are not interested",
  last_items: "Last items that sessions here were sent when they became available",
  failures: "Notifications and last items that were not sent because the database failed, or " +
    "because too many waited",
} as const;

/** Counters of personal eventing. */
export class PepMetrics {
  readonly published: Counter;
  readonly retracted: Counter;
  readonly notified: Counter;
  readonly unwanted: Counter;
  readonly lastItems: Counter;
  readonly failures: Counter;

  constructor(metrics: Metrics) {
    const counter = (counted: keyof typeof COUNTED) =>
      metrics.counter({ name: `causeway_pep_${counted}_total`, help: COUNTED[counted] });
    this.published = counter("published");
    this.retracted = counter("retracted");
    this.notified = counter("notifications_sent");
    this.unwanted = counter("notifications_unwanted");
    this.lastItems = counter("last_items");
    this.failures = counter("failures");
  }
}
