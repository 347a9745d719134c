import type { StreamContext } from "../stream/stream_context.ts";
import type { ComponentRegistry } from "./component_registry.ts";

/** A domain that a component may connect for. */
export interface ComponentDomain {
  readonly secret: string;
  /** True when it is not to be listed in disco. */
  readonly isHidden: boolean;
}

/** What all components' streams of one listener share. */
export interface ComponentContext extends StreamContext {
  /** Who answers a stream that is for no domain of these. */
  readonly host: string;
  /** By normalised domain. */
  readonly domains: ReadonlyMap<string, ComponentDomain>;
  readonly registry: ComponentRegistry;
}
