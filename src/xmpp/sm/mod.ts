export type { Delivery, SessionReturn } from "./delivery.ts";
export { areDetached, OwnDelivery } from "./delivery.ts";
export type {
  Arrival,
  ArrivedSession,
  Fetching,
  FollowedSession,
  FreezeOwner,
  Freezing,
  FrozenSession,
  Relay,
  ResumeRequest,
  SessionOrigin,
  SessionsElsewhere,
  SessionState,
  Unfreezing,
} from "./moving_session.ts";
export type { ResolvedStreamManagement, StreamManagementOptions } from "./sm_options.ts";
export { resolveStreamManagement, STREAM_MANAGEMENT_RANGES } from "./sm_options.ts";
export type { ManagedEnd } from "./sm_metrics.ts";
export type { ManagedSession, StreamManagementDeps } from "./stream_management.ts";
export { isWorthRouting, StreamManagement } from "./stream_management.ts";
