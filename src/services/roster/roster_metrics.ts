import type { Counter, Metrics } from "../../observe/mod.ts";

/** Outcome of a subscription stanza for the roster of its sender or recipient. */
export type SubscriptionOutcome =
  | "applied"
  | "unchanged"
  | "ignored"
  | "blocked"
  | "full"
  | "failed";

/** Counters of rosters, subscriptions and presence. */
export class RosterMetrics {
  readonly changes: Counter;
  readonly failures: Counter;
  readonly probes: Readonly<Record<"answered" | "refused", Counter>>;
  readonly #subscriptions: Readonly<Record<SubscriptionOutcome, Counter>>;

  constructor(metrics: Metrics, waiting: () => number) {
    this.changes = metrics.counter({
      name: "causeway_roster_changes_total",
      help: "Changes of rosters that this node has made",
    });
    this.failures = metrics.counter({
      name: "causeway_roster_failures_total",
      help: "Presence and subscription stanzas that a database failure kept from their effect",
    });
    const probe = (outcome: string) =>
      metrics.counter({
        name: "causeway_probes_total",
        help: "Presence probes from clients, components and other datacenters, by outcome",
        labels: { outcome },
      });
    this.probes = { answered: probe("answered"), refused: probe("refused") };
    const subscription = (outcome: SubscriptionOutcome) =>
      metrics.counter({
        name: "causeway_subscriptions_total",
        help: "Subscription stanzas applied to the rosters of their senders and recipients, by " +
          "outcome; ignored: to an account that does not exist, blocked: its list denies it",
        labels: { outcome },
      });
    this.#subscriptions = {
      applied: subscription("applied"),
      unchanged: subscription("unchanged"),
      ignored: subscription("ignored"),
      blocked: subscription("blocked"),
      full: subscription("full"),
      failed: subscription("failed"),
    };
    metrics.gauge({
      name: "causeway_roster_steps_waiting",
      help: "Presence and subscription stanzas that wait for the database or the session table",
    }, waiting);
  }

  counted(outcome: SubscriptionOutcome): void {
    this.#subscriptions[outcome].inc();
  }
}
