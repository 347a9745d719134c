import type { AdminClient } from "./admin_client.ts";
import { RequestFailed, TokenRequired } from "./admin_client.ts";
import type {
  Bounce,
  Certificate,
  Database,
  Datacenter,
  DatacenterDetail,
  List,
  MeshNode,
  Status,
} from "./api_types.ts";
import { appendHistory, ratesBetween, readTraffic } from "./traffic.ts";
import type { TrafficSample } from "./traffic.ts";
import type { Facts, ViewState } from "./view_state.ts";
import { INITIAL_VIEW } from "./view_state.ts";
