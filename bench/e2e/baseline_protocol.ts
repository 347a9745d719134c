import type { LatencySummary } from "./latency_recorder.ts";

/** Argument of the baseline's receiving process: PEM texts and the frames' size. */
export interface BaselineReceiverPlan {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  readonly caPem: string;
  readonly frameBytes: number;
}

/** Argument of the sending process. */
export interface BaselineSenderPlan extends BaselineReceiverPlan {
  readonly port: number;
  readonly serverName: string;
}

export type BaselineSenderCommand =
  | { readonly do: "saturate" }
  | { readonly do: "pace"; readonly perSecond: number }
  | { readonly do: "pause" };

/** Commands to the receiver: reset the counts; report the counts since. */
export type BaselineReceiverCommand = { readonly do: "begin" } | { readonly do: "end" };

export interface BaselineResult {
  readonly elapsedMs: number;
  readonly frames: number;
  readonly latency: LatencySummary;
}

export type BaselineEvent =
  | { readonly event: "listening"; readonly port: number }
  | { readonly event: "connected" }
  | { readonly event: "begun" }
  | { readonly event: "ended"; readonly result: BaselineResult };
