import type { Counter, Metrics } from "../../observe/mod.ts";

/** Metrics of kept subscription requests. */
export class RequestMetrics {
  readonly kept: Counter;
  readonly delivered: Counter;
  readonly passedOn: Counter;
  readonly ignored: Counter;
  readonly displaced: Counter;
  readonly failed: Counter;

  constructor(metrics: Metrics, contacts: () => number) {
    const counter = (outcome: string) =>
      metrics.counter({
        name: "causeway_subscription_requests_total",
        help: "Subscription requests by outcome: kept for their contact; delivered to a client " +
          "that became available; passed on to the node of the contact; ignored because there " +
          "is no such account; displaced by newer ones because there was no room; or failed " +
          "because the store failed",
        labels: { outcome },
      });
    this.kept = counter("kept");
    this.delivered = counter("delivered");
    this.passedOn = counter("passed-on");
    this.ignored = counter("ignored");
    this.displaced = counter("displaced");
    this.failed = counter("failed");
    metrics.gauge({
      name: "causeway_subscription_request_contacts",
      help: "Accounts for which this node keeps subscription requests",
    }, contacts);
  }
}
