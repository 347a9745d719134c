import type { LatencySummary } from "./latency_recorder.ts";

/** What the receiving process of the baseline is started with: PEM texts and the frames' size. */
export interface BaselineReceiverPlan {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  readonly caPem: string;
  readonly frameBytes: number;
}

/** What the sending process is started with. */
export interface BaselineSenderPlan extends BaselineReceiverPlan {
  readonly port: number;
  readonly serverName: string;
}

export type BaselineSenderCommand =
  | { readonly do: "saturate" }
  | { readonly do: "pace"; readonly perSecond: number }
  | { readonly do: "pause" };

/** To the receiver: forget what came so far; tell what came since. */
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
