import type { Counter, Metrics } from "../observe/mod.ts";

/** Stanzas for a host that need no answer. */
export type IgnoredKind = "presence" | "iq-reply" | "message-error";

/** Counters of the services. */
export class ServiceMetrics {
  /** Requests that got a result. */
  readonly answered: Counter;
  /** Stanzas that got an error. */
  readonly refused: Counter;
  readonly ignored: Readonly<Record<IgnoredKind, Counter>>;

  constructor(metrics: Metrics) {
    const handled = (outcome: string) =>
      metrics.counter({
        name: "causeway_services_stanzas_total",
        help: "Stanzas addressed to a host or an account of this datacenter, by outcome",
        labels: { outcome },
      });
    const ignored = (kind: IgnoredKind) =>
      metrics.counter({
        name: "causeway_services_ignored_total",
        help: "Stanzas addressed to a host that were dropped because they need no answer, by kind",
        labels: { kind },
      });
    this.answered = handled("answered");
    this.refused = handled("refused");
    this.ignored = {
      presence: ignored("presence"),
      "iq-reply": ignored("iq-reply"),
      "message-error": ignored("message-error"),
    };
  }
}
