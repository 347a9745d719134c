import type { Clock, PacedWork } from "../base/mod.ts";
import type { Logger, MetricsRegistry } from "../observe/mod.ts";
import type { WaitingBudget } from "./waiting_budget.ts";

/** Objects that every part of a node works with. They exist before any part is made. */
export interface Surroundings {
  /** This process's incarnation. */
  readonly process: number;
  readonly metrics: MetricsRegistry;
  readonly log: Logger;
  readonly clock: Clock;
  /** Work that many logins at once cause. */
  readonly paced: PacedWork;
  /** The shares of waiting stanzas, by the place where they wait. */
  readonly places: WaitingBudget["places"];
}
