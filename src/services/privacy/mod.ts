export { blockedError, hiddenAnswer } from "./blocked_error.ts";
export { blockingServices } from "./blocking_services.ts";
export type { PrivacyFailure } from "./lists_here.ts";
export type { PrivacyBounds } from "./privacy_bounds.ts";
export { DEFAULT_PRIVACY_BOUNDS } from "./privacy_bounds.ts";
export type { PrivacyChange, PrivacyDeps, PrivacyHosts, PrivacyView } from "./privacy_ports.ts";
export { PrivacyServer } from "./privacy_server.ts";
export { privacyServices } from "./privacy_services.ts";
