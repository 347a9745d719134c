export type { ComponentDomain } from "./component_context.ts";
export type { ComponentListenerOptions } from "./component_listener.ts";
export { ComponentListener } from "./component_listener.ts";
export type { ComponentHooks, LocalComponent } from "./component_registry.ts";
export { ComponentRegistry } from "./component_registry.ts";
