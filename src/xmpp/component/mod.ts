export type { ComponentDomain } from "./component_stream_deps.ts";
export type { ComponentListenerDeps } from "./component_listener.ts";
export { ComponentListener } from "./component_listener.ts";
export type { ComponentRegistryEvents, LocalComponent } from "./component_registry.ts";
export { ComponentRegistry } from "./component_registry.ts";
