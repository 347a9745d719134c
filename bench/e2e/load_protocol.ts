import type { LatencySummary } from "./latency_recorder.ts";

/** One sender and the one it writes to, each already an account where it logs in. */
export interface PairPlan {
  readonly sender: ClientPlan;
  readonly recipient: ClientPlan;
}

export interface ClientPlan {
  readonly host: string;
  readonly port: number;
  readonly domain: string;
  readonly localpart: string;
  readonly password: string;
  readonly resource: string;
}

/** What the load generator is started with, as JSON in its only argument. */
export interface LoadPlan {
  readonly pairs: readonly PairPlan[];
  /** Messages on their way at once, for each pair, when the load is as high as it gets. */
  readonly inFlight: number;
  /** Bytes of one message as it is sent. */
  readonly messageBytes: number;
}

/**
 * What it is told, one line each: as much as the windows let through, or a fixed rate; `warmUpMs`
 * come first and are not counted.
 */
export type LoadCommand =
  | { readonly do: "saturate"; readonly warmUpMs: number; readonly measureMs: number }
  | {
    readonly do: "pace";
    readonly perSecond: number;
    readonly warmUpMs: number;
    readonly measureMs: number;
  };

/** What one measured stretch of time held. */
export interface LoadResult {
  readonly elapsedMs: number;
  readonly received: number;
  readonly latency: LatencySummary;
}

/** What it tells: ready to go, measuring from now, measured until now, everything has arrived. */
export type LoadEvent =
  | { readonly event: "ready" }
  | { readonly event: "begin" }
  | { readonly event: "end"; readonly result: LoadResult }
  | { readonly event: "drained" };
