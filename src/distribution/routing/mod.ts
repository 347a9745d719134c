export type { BounceOptions } from "./bounce_store.ts";
export { resolveBounceOptions } from "./bounce_store.ts";
export type { Domains } from "./decision.ts";
export type { DatacenterSideDeps } from "./datacenter_side.ts";
export { DatacenterSide } from "./datacenter_side.ts";
export type { OwnSessions } from "./placement.ts";
export type {
  Handover,
  Keeper,
  LocalDelivery,
  LocalOutcome,
  Locations,
  NodeOutcome,
  NodeSide,
  Outbound,
  Placement,
  Placements,
  RequestKeeper,
  StanzaEntry,
} from "./ports.ts";
export { DEFAULT_MAX_PAIRS } from "./repeat_filter.ts";
export { DEFAULT_MAX_STANZAS } from "./resend_filter.ts";
export type { HandoverOrderOptions } from "./handover_order.ts";
export { resolveHandoverOptions } from "./handover_order.ts";
export type { ReturnReason, RouterDeps, RouterOptions } from "./router.ts";
export { Router, ROUTER_QUEUE_DEFAULTS } from "./router.ts";
