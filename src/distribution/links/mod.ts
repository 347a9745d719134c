export { isCertifiedHost } from "./connection/certified_host.ts";
export { LaneDrain } from "./lane_drain.ts";
export type { LinkLayerDeps } from "./link_layer.ts";
export { LinkLayer } from "./link_layer.ts";
export type { LinksOptions, ResolvedLinksOptions } from "./links_options.ts";
export { resolveLinksOptions } from "./links_options.ts";
export type {
  EndpointSnapshot,
  HostSnapshot,
  IncomingSnapshot,
  LaneFailure,
  LaneSnapshot,
  LinksFlow,
  LinksSnapshot,
} from "./links_snapshot.ts";
export type { EndpointState } from "./pools/endpoint_state.ts";
export type {
  EndpointAddress,
  EndpointSource,
  HostSource,
  LinkLayerEvents,
  NodeIdentity,
} from "./ports.ts";
export type { MeshFacts, StanzaOrigin, StanzaRefusal } from "./connection/sender_rules.ts";
export { checkStanza } from "./connection/sender_rules.ts";
