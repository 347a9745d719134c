import type { PoolBounds } from "../sql/connection_pool.ts";

/** Long times, so that a slow machine is not taken for a database that does not answer. */
export const PATIENT = {
  waitTimeoutMs: 30_000,
  connectTimeoutMs: 30_000,
  statementTimeoutMs: 30_000,
} as const satisfies PoolBounds;
