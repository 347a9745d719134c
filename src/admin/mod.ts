export type {
  AdminDeps,
  AdminLimits,
  AdminMetrics,
  AdminOptions,
  PartHealth,
  PartState,
  StaticPage,
} from "./admin_deps.ts";
export type { AdminSource } from "./api/admin_source.ts";
export type {
  AdminEvent,
  AdminEventKind,
  Overview,
  OverviewDatacenter,
} from "./api/event_schemas.ts";
export { EventLog } from "./events/event_log.ts";
export type { TlsDoor } from "./http_door.ts";
export type { CertificateHolder, TokenHolder } from "./access.ts";
export type { Action, ActionResult, AuditEntry, Caller, Role } from "./api/action_schemas.ts";
export { ROLES } from "./api/action_schemas.ts";
export type { ActionOutcome, AdminActions, LinkTarget } from "./api/admin_actions.ts";
export type { Failure } from "./api/answers.ts";
export type {
  Datacenter,
  DatacenterDetail,
  DatacenterLinks,
  Endpoint,
  LaneState,
  LinkError,
  LinksTo,
  MeshNode,
} from "./api/mesh_schemas.ts";
export type { Page, PageRange } from "./api/paging.ts";
export type { Certificate, Configuration, Database } from "./api/parts_schemas.ts";
export type { Bounce, Component, Session, Where } from "./api/people_schemas.ts";
export type { AdminTraceListener, AdminTraces } from "./api/trace_routes.ts";
export type { TraceBegun, TraceNode, TraceStepAnswer } from "./api/trace_schemas.ts";
export type { Drain, Status } from "./api/status_schemas.ts";
export { ADMIN_LIMITS } from "./admin_deps.ts";
export type { AdminServer, AdminServerDeps } from "./admin_server.ts";
export { createAdmin } from "./admin_server.ts";
