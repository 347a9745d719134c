import type { Clock } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { EdgeRates } from "./edge_rates.ts";
import type { StanzaSink } from "./stanza_sink.ts";
import type { ResolvedStreamLimits } from "./stream_limits.ts";
import type { StreamMetrics } from "./stream_metrics.ts";

/** Data that all streams of one listener share, for any kind of peer. */
export interface StreamDeps {
  readonly sink: StanzaSink;
  readonly limits: ResolvedStreamLimits;
  readonly rates: EdgeRates;
  readonly clock: Clock;
  readonly metrics: StreamMetrics;
  readonly log: Logger;
}
