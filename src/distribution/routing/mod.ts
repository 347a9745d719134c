export type { BounceOptions } from "./bounce_options.ts";
export { resolveBounceOptions } from "./bounce_options.ts";
export type { BouncingAddress } from "./bounce_store.ts";
export { copyEnvelope } from "./copy_envelope.ts";
export type { Domains } from "./decision.ts";
export { decide } from "./decision.ts";
export type { DatacenterSideDeps } from "./datacenter_side.ts";
export { DatacenterSide } from "./datacenter_side.ts";
export type {
  Archive,
  CarbonCopies,
  EntryPoint,
  Handover,
  Keeper,
  LocalDelivery,
  LocalOutcome,
  Locations,
  NodeOutcome,
  NodeSide,
  OfflineKeeper,
  Outbound,
  OwnSessions,
  Placement,
  Placements,
  PresenceServer,
  RequestKeeper,
  SessionHost,
} from "./ports.ts";
export { DEFAULT_MAX_PAIRS } from "./repeat_filter.ts";
export { DEFAULT_MAX_STANZAS } from "./resend_filter.ts";
export type { HandoverOrderOptions } from "./handover_order.ts";
export { resolveHandoverOptions } from "./handover_order.ts";
export { Router } from "./router.ts";
export type { RouterDeps, RouterOptions } from "./router_options.ts";
export { ROUTER_QUEUE_DEFAULTS } from "./router_options.ts";
