export type { BounceOptions } from "./bounce_store.ts";
export { resolveBounceOptions } from "./bounce_store.ts";
export type { Domains } from "./decision.ts";
export type { LocalDelivery, LocalOutcome, Locations, Outbound } from "./ports.ts";
export type { ReturnReason, RouterDeps, RouterOptions } from "./router.ts";
export { Router } from "./router.ts";
