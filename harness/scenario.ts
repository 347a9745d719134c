import type { Cluster, ClusterOptions } from "./cluster/mod.ts";

/** Way in which the session table gets from one datacenter to the others. */
export type Replication = NonNullable<ClusterOptions["replication"]>;

/** Both kinds, for scenarios whose outcome depends on how the table gets about. */
export const REPLICATIONS: readonly Replication[] = ["external", "builtin"];

/**
 * A conversation that must go well, run by the end-to-end tests and by `deno task cluster
 * --scenario NAME`.
 */
export interface Scenario {
  /** Kebab case, for the command line. */
  readonly name: string;
  /** One line for `--list`. */
  readonly summary: string;
  /** Options of its cluster. The command line's own options override them. */
  readonly options?: ClusterOptions;
  /**
   * Kinds of replication that the tests play it with, each on a cluster of its own. One is enough
   * when the scenario is not about the table: a second takes time from every run of the tests.
   * @default external alone
   */
  readonly replications?: readonly Replication[];
  /**
   * Plays it on a cluster of its own. `say` prints a line for people about the last observation.
   * @throws as soon as an observation is wrong
   */
  run(cluster: Cluster, say: (line: string) => void): Promise<void>;
}
