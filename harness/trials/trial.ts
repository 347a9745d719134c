import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { Demands } from "../ledger/mod.ts";
import type { TrialStage } from "./trial_stage.ts";

/** One kind of fault that a loaded cluster has to live through. */
export interface Trial extends Pick<Demands, "answers"> {
  /** Kebab case, for the command line. */
  readonly name: string;
  /** One line for `--list`. */
  readonly summary: string;
  /** Options of its cluster, for a fault that lasts `faultMs`. */
  readonly options?: (faultMs: number) => ClusterOptions;
  /** Most stanzas a second, where a small machine does not do more. @default no such bound */
  readonly mostPerSecond?: number;
  /** The `expire_after` that the fault outlasts, in milliseconds. */
  readonly outlivedExpiryMs?: (faultMs: number) => number;
  /** Why it cannot be played here; then it is skipped, and counted as such. */
  readonly obstacle?: () => Promise<string | undefined>;
  /** Adds to the cluster what the trial needs, before anybody logs in; it is disposed of at the end. */
  readonly prepare?: (cluster: Cluster) => Promise<AsyncDisposable>;
  /** Called once every stanza has its fate. Archives, if there are any, are read a second time then. */
  readonly finish?: (stage: TrialStage) => Promise<void>;
  /** Makes the fault while the load runs, and undoes it. Everyone is logged in. */
  run(stage: TrialStage): Promise<void>;
}
