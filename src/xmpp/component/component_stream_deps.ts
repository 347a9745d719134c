import type { StreamDeps } from "../stream/stream_deps.ts";
import type { ComponentRegistry } from "./component_registry.ts";

/** A domain that a component may connect for. */
export interface ComponentDomain {
  readonly secret: string;
  /** True when disco must not list it. */
  readonly isHidden: boolean;
}

/** Data that all components' streams of one listener share. */
export interface ComponentStreamDeps extends StreamDeps {
  /** Host that answers a stream for none of `domains`. */
  readonly host: string;
  /** Domains by normalised name. */
  readonly domains: ReadonlyMap<string, ComponentDomain>;
  readonly registry: ComponentRegistry;
}
