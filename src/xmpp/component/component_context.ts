import type { Clock } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import type { ResolvedStreamLimits } from "../stream/stream_limits.ts";
import type { StreamMetrics } from "../stream/stream_metrics.ts";
import type { ComponentRegistry } from "./component_registry.ts";

/** A domain that a component may connect for. */
export interface ComponentDomain {
  readonly secret: string;
  /** True when it is not to be listed in disco. */
  readonly isHidden: boolean;
}

/** What all components' streams of one listener share. */
export interface ComponentContext {
  /** By normalised domain. */
  readonly domains: ReadonlyMap<string, ComponentDomain>;
  readonly registry: ComponentRegistry;
  readonly sink: StanzaSink;
  readonly limits: ResolvedStreamLimits;
  readonly clock: Clock;
  readonly metrics: StreamMetrics;
  readonly log: Logger;
}
