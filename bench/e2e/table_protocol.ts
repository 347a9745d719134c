import type { EndpointAddress } from "../../src/distribution/links/mod.ts";
import type { LatencySummary } from "./latency_recorder.ts";

/** Argument of a node of the table bench, as JSON. */
export interface TableNodePlan {
  readonly localHost: string;
  readonly redisPort: number;
  readonly certfile: string;
  readonly keyfile: string;
  readonly cafile: string;
  /** Sessions that are logged in here. */
  readonly sessions: number;
  /** Address to connect to; undefined: wait for connections. */
  readonly seed: EndpointAddress | undefined;
}

/** Commands to a node, one line each. */
export type TableNodeCommand =
  /** Measure lookups, cached and not, for so long each. */
  | { readonly do: "look-up"; readonly forMs: number }
  /** Send stanzas to a datacenter from now on. */
  | { readonly do: "send"; readonly to: string; readonly perSecond: number }
  /** Report how long the stanzas took that have come since the last report. */
  | { readonly do: "report" };

/** Events of a node. */
export type TableNodeEvent =
  | { readonly event: "ready"; readonly port: number; readonly loginMs: number }
  | {
    readonly event: "looked-up";
    readonly cachedPerSecond: number;
    readonly askedPerSecond: number;
  }
  | { readonly event: "report"; readonly latency: LatencySummary };
