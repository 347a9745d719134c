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

/** Argument of the load generator, as JSON. */
export interface LoadPlan {
  readonly pairs: readonly PairPlan[];
  /** A second device of each sender, for when they are asked for. */
  readonly devices: readonly ClientPlan[];
  /** Messages on their way at once, for each pair, when the load is as high as it gets. */
  readonly inFlight: number;
  /** Bytes of one message as it is sent. */
  readonly messageBytes: number;
}

/**
 * Commands to the load generator, one line each: send as much as the windows allow, or at a fixed
 * rate, of which the first `warmUpMs` are not counted; or log the devices in, which get a carbon of
 * each message from then on.
 */
export type LoadCommand =
  | { readonly do: "bring-devices" }
  | { readonly do: "saturate"; readonly warmUpMs: number; readonly measureMs: number }
  | {
    readonly do: "pace";
    readonly perSecond: number;
    readonly warmUpMs: number;
    readonly measureMs: number;
  }
  /** End the measured stretch of time now. */
  | { readonly do: "stop" };

/** Figures of one measured stretch of time. */
export interface LoadResult {
  readonly elapsedMs: number;
  readonly received: number;
  readonly latency: LatencySummary;
}

/**
 * Events of the load generator: ready, the devices are there, measuring starts, measuring ends,
 * everything has arrived.
 */
export type LoadEvent =
  | { readonly event: "ready" }
  | { readonly event: "devices" }
  | { readonly event: "begin" }
  | { readonly event: "end"; readonly result: LoadResult }
  | { readonly event: "drained" };
