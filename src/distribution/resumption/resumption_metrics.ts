import type { Counter, Metrics } from "../../observe/mod.ts";
import type { TakingFailure } from "./taking_state.ts";

/** Fate of a session that another node asked for; the metrics' label `outcome`. */
export type GivingOutcome = "taken" | "taken-back" | "given-back" | "refused" | "ended";

/** Metrics of sessions that go from one node to another. */
export class ResumptionMetrics {
  readonly resumed: Counter;
  readonly stanzas: Counter;
  readonly refused: Counter;
  readonly tooLarge: Counter;
  readonly #metrics: Metrics;

  constructor(metrics: Metrics, levels: { givings(): number; takings(): number }) {
    this.#metrics = metrics;
    this.resumed = metrics.counter({
      name: "causeway_resumed_elsewhere_total",
      help: "Clients that resumed here a session which another node had",
    });
    this.stanzas = metrics.counter({
      name: "causeway_resumed_elsewhere_stanzas_total",
      help: "Stanzas that came with, or after, sessions from other nodes",
    });
    this.refused = metrics.counter({
      name: "causeway_resumed_elsewhere_refused_total",
      help: "Stanzas that came with sessions, from senders that the other node must not speak for",
    });
    this.tooLarge = metrics.counter({
      name: "causeway_resumed_elsewhere_too_large_total",
      help: "Answers too large to follow a session to another node: its client gets errors instead",
    });
    const help = "Sessions on their way between nodes, or not yet settled there, by direction";
    metrics.gauge(
      { name: "causeway_resume_elsewhere_transfers", help, labels: { direction: "out" } },
      () => levels.givings(),
    );
    metrics.gauge(
      { name: "causeway_resume_elsewhere_transfers", help, labels: { direction: "in" } },
      () => levels.takings(),
    );
  }

  failed(reason: TakingFailure): void {
    this.#metrics.counter({
      name: "causeway_resume_elsewhere_failures_total",
      help: "Clients that wanted a session of another node and did not get it, by reason",
      labels: { reason },
    }).inc();
  }

  asked(outcome: GivingOutcome): void {
    this.#metrics.counter({
      name: "causeway_sessions_asked_for_total",
      help: "Sessions that other nodes asked for, by outcome",
      labels: { outcome },
    }).inc();
  }
}
