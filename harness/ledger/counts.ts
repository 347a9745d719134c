import type { Flow } from "./flow.ts";
import type { Span } from "./span.ts";

/** Facts about the run that the balance needs. */
export interface BalanceOptions {
  /** Times of the fault. Stanzas due outside them must arrive. */
  readonly windows: readonly Span[];
  /**
   * Milliseconds after which a partitioned datacenter's stanzas are answered by errors, where a fault
   * lasted longer: what had been delivered there may then be answered too.
   */
  readonly outlivedExpiryMs?: number;
  /** Counts only some of the flows. @default all */
  readonly only?: (flow: Flow) => boolean;
}

/** Number of allowed and forbidden cases of a kind. */
export interface Split {
  readonly allowed: number;
  readonly forbidden: number;
}

/** Number of stanzas due, and of those that arrived. */
export interface Due {
  readonly due: number;
  readonly came: number;
}
