import type { Counter, Metrics } from "../../observe/mod.ts";

/** What keeping subscription requests counts. */
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
        help:
          "What became of requests for subscriptions: kept for their contact; delivered to a client " +
          "that became available; passed on to the node where the contact is; ignored, as there is no " +
          "such account; displaced by newer ones for want of room; or failed, as the store did",
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
      help: "Accounts for which requests for subscriptions are kept here",
    }, contacts);
  }
}
