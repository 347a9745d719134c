import type { Clock, FairShares, Random } from "../../../base/mod.ts";
import type { TlsContextHolder } from "../../../net/mod.ts";
import type { Logger, PacedLog } from "../../../observe/mod.ts";
import type { CarbonOf, LinkTraffic } from "../../mod.ts";
import type { CallPace } from "./call_pace.ts";
import type { InboundLanes } from "../lanes/inbound_lanes.ts";
import type { LinkMetrics } from "../link_metrics.ts";
import type { LinkScope } from "./link_scope.ts";
import type { ResolvedLinksOptions } from "../links_options.ts";
import type { MeshHosts } from "./mesh_hosts.ts";
import type { EndpointSource, LinkLayerEvents, NodeIdentity } from "../ports.ts";
import type { UnprovenSenders } from "./unproven_senders.ts";

/** State and parts that all links of one process share. */
export interface LinkDeps {
  readonly scope: LinkScope;
  readonly identity: NodeIdentity;
  /** Replaced when operators change them. A link keeps those that it copies as it begins. */
  options: ResolvedLinksOptions;
  /** TLS contexts; undefined for plain TCP. */
  readonly tls: TlsContextHolder | undefined;
  readonly events: LinkLayerEvents;
  /** Takes replication frames; undefined when the session table is not replicated over links. */
  readonly traffic: LinkTraffic | undefined;
  readonly endpoints: EndpointSource;
  /** The pace of all calls. */
  readonly calls: CallPace;
  readonly inbound: InboundLanes;
  readonly mesh: MeshHosts;
  /** Holds stanzas of unknown domains; undefined when those are refused at once. */
  readonly unproven: UnprovenSenders | undefined;
  /** The bound that stanzas in lanes count for. @default none */
  readonly budget?: FairShares | undefined;
  /** Makes the carbon of a message that brings one; undefined when none is made. */
  readonly carbonOf?: CarbonOf | undefined;
  readonly metrics: LinkMetrics;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /**
   * Log of events that a peer can cause as often as it likes, such as links that come and go; paced
   * for each destination.
   */
  readonly lives: PacedLog;
  /** A number for a lane, never used before in this process. */
  nextLane(): number;
}
