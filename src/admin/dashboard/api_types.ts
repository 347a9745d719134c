import type { OverviewDatacenter } from "../api/event_schemas.ts";

/** Types of the admin API's answers. Only types: the schemas stay out of the browser. */
export type { AdminEvent, Overview, OverviewDatacenter } from "../api/event_schemas.ts";
export type {
  Datacenter,
  DatacenterDetail,
  DatacenterLinks,
  Endpoint,
  LaneState as Lane,
  LinksTo,
  MeshNode,
} from "../api/mesh_schemas.ts";
export type { Certificate, Database } from "../api/parts_schemas.ts";
export type { ActionResult, Caller } from "../api/action_schemas.ts";
export type { Bounce, Session, Where } from "../api/people_schemas.ts";
export type { Drain, Part, Status } from "../api/status_schemas.ts";
export type { TraceBegun, TraceNode, TraceStepAnswer } from "../api/trace_schemas.ts";

/** Rates of one datacenter. */
export type Rate = Pick<OverviewDatacenter, "sentPerSec" | "receivedPerSec">;

/** One page of a list. */
export interface List<Item> {
  readonly items: readonly Item[];
  readonly total: number;
}
