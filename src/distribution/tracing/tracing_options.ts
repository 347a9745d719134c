import type { IntegerOption } from "../../base/mod.ts";
import { resolveIntegers } from "../../base/mod.ts";

/** Bounds of traces, and who may ask for them. */
export interface TracingOptions {
  /** False refuses traces that operators of other datacenters ask for. @default true */
  readonly forOthers?: boolean;
  /** Traces that operators of this node may have at once; 1 to 100. @default 4 */
  readonly maxTraces?: number;
  /** Traces for the nodes of one datacenter at once; 1 to 100. @default 4 */
  readonly maxForDatacenter?: number;
  /** Traces for nodes of other datacenters at once, over all of them; 1 to 1000. @default 16 */
  readonly maxForOthers?: number;
  /** Steps that one trace is told of by this node in a second; 1 to 10_000. @default 100 */
  readonly maxStepsPerSec?: number;
  /** Longest time of a trace in milliseconds; 1_000 to 86_400_000. @default 3_600_000 */
  readonly maxForMs?: number;
}

const INTEGERS = {
  maxTraces: { byDefault: 4, min: 1, max: 100 },
  maxForDatacenter: { byDefault: 4, min: 1, max: 100 },
  maxForOthers: { byDefault: 16, min: 1, max: 1_000 },
  maxStepsPerSec: { byDefault: 100, min: 1, max: 10_000 },
  maxForMs: { byDefault: 3_600_000, min: 1_000, max: 86_400_000 },
} as const satisfies Record<string, IntegerOption>;

/** Steps of one stanza that this node tells of: one that is sent to and fro has no end of them. */
export const MAX_STEPS_OF_STANZA = 64;

/** Traces that one process of another node may ask for in a second, and at once. */
export const MAX_ASKED_PER_SEC = 4;
export const MAX_ASKED_AT_ONCE = 8;

/** Fills in defaults. @throws RangeError for a value that is out of range */
export function resolveTracing(options: TracingOptions): Required<TracingOptions> {
  const { forOthers = true, ...integers } = options;
  return Object.freeze({ forOthers, ...resolveIntegers(INTEGERS, integers) });
}
