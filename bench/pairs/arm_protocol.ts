import type { MeasuredNode } from "../e2e/cluster_measurement.ts";

/** Argument of the process that runs the cluster of one arm, as JSON. */
export interface ArmPlan {
  /** Directory of the tree whose harness and nodes it runs. */
  readonly tree: string;
  readonly users: readonly { readonly localpart: string; readonly password: string }[];
  /** Section `observe` of each node. */
  readonly observe: Readonly<Record<string, unknown>> | undefined;
}

/** Command to that process. */
export type ArmCommand = { readonly do: "stop" };

/** Event of that process: the cluster runs, or has ended. */
export type ArmEvent =
  | { readonly event: "ready"; readonly domain: string; readonly nodes: readonly ArmNode[] }
  | { readonly event: "stopped" };

/** A node of the cluster. */
export interface ArmNode extends MeasuredNode {
  /** URL of its admin port. */
  readonly admin: string;
}
