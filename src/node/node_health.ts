import type { PartHealth } from "../admin/mod.ts";
import { describeError } from "../base/mod.ts";
import type { TableSnapshot } from "../distribution/table/mod.ts";
import type { DatabaseState } from "../storage/mod.ts";

/** Phase of a node's life. */
export type NodePhase = "starting" | "running" | "draining" | "stopped";

/**
 * Returns the state of each part of a node, for `/health` and `/ready`.
 *
 * @param stores the databases in use
 */
export function nodeHealth(
  phase: NodePhase,
  { status, reason }: Pick<TableSnapshot, "status" | "reason">,
  stores: readonly Pick<DatabaseState, "pool" | "lastFailure">[],
): readonly PartHealth[] {
  const databases = stores.map(({ pool, lastFailure }): PartHealth =>
    lastFailure === undefined
      ? { name: pool, state: "up" }
      : { name: pool, state: "degraded", reason: describeError(lastFailure) }
  );
  const redis = reason === undefined
    ? { name: "redis", state: status }
    : { name: "redis", state: status, reason };
  switch (phase) {
    case "running":
      return [redis, ...databases, { name: "node", state: "up" }];
    case "starting":
      return [redis, ...databases, { name: "node", state: "down", reason: "starting" }];
    case "draining":
    case "stopped":
      return [redis, ...databases, { name: "node", state: "draining", reason: "stopping" }];
    default:
      return phase satisfies never;
  }
}
