import { DATABASE_LOST } from "./database_trials.ts";
import { ALL_LINKS_CUT, BLACK_HOLE, LINK_CUT, PARTITION } from "./link_trials.ts";
import { MISERLY_PEER } from "./lane_trials.ts";
import {
  ENDPOINTS_MOVED,
  FAST_CLOCK,
  MIXED_RELEASES,
  NODE_KILLED,
  NODE_STOPPED,
  ROLLING_RESTART,
  ROLLING_UPGRADE,
  SLOW_CLOCK,
} from "./node_trials.ts";
import { DEAF_READERS } from "./reader_trials.ts";
import { DISK_FULL, REDIS_LOST } from "./service_trials.ts";
import type { Trial } from "./trial.ts";

export type { Trial } from "./trial.ts";
export type { TrialOptions, TrialResult } from "./run_trial.ts";
export { LOAD_USERS, loadClients, SIDES } from "./load_clients.ts";
export type { Side } from "./load_clients.ts";
export { runTrial } from "./run_trial.ts";
export { placesOf, TrialStage } from "./trial_stage.ts";

/** Every trial, in the order in which `--list` shows them. */
export const TRIALS: readonly Trial[] = [
  LINK_CUT,
  ALL_LINKS_CUT,
  BLACK_HOLE,
  NODE_KILLED,
  NODE_STOPPED,
  PARTITION,
  REDIS_LOST,
  DATABASE_LOST,
  ENDPOINTS_MOVED,
  ROLLING_RESTART,
  ROLLING_UPGRADE,
  MIXED_RELEASES,
  FAST_CLOCK,
  SLOW_CLOCK,
  DEAF_READERS,
  MISERLY_PEER,
  DISK_FULL,
];
