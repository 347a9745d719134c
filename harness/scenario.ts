import type { Cluster, ClusterOptions } from "./cluster/mod.ts";

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
  /**
   * Plays it on a cluster of its own. `say` tells people what has just been seen.
   * @throws as soon as something is not as it should be
   */
  run(cluster: Cluster, say: (line: string) => void): Promise<void>;
}
