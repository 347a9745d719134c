import type { Cluster, ClusterOptions } from "./cluster/mod.ts";

/** Who carries the session table between datacenters. */
export type Replication = NonNullable<ClusterOptions["replication"]>;

/** For scenarios that have to go well whoever replicates. */
export const REPLICATIONS: readonly Replication[] = ["external", "builtin"];

/**
 * A conversation that has to go well, run by the end-to-end tests and by
 * `deno task cluster --scenario NAME`.
 */
export interface Scenario {
  /** Kebab case, for the command line. */
  readonly name: string;
  /** One line for `--list`. */
  readonly summary: string;
  /** What it needs of its cluster; the command line's own options come on top. */
  readonly options?: ClusterOptions;
  /** The replications that the tests play it with, each on a cluster of its own. @default external alone */
  readonly replications?: readonly Replication[];
  /**
   * Plays it on a cluster of its own. `say` tells people what has just been seen.
   * @throws as soon as something is not as it should be
   */
  run(cluster: Cluster, say: (line: string) => void): Promise<void>;
}
