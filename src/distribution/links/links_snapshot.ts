import type { EndpointState } from "./pools/endpoint_state.ts";
import type { HostLinks } from "./pools/host_links.ts";
import type { IncomingLink } from "./connection/incoming_link.ts";

/** One of our links and its lane. */
export interface LaneSnapshot {
  readonly lane: number;
  readonly state: "idle" | "waiting" | "dialling" | "connected" | "open" | "stopped";
  /** Node at the other end; undefined while there is none. */
  readonly node: string | undefined;
  readonly senders: number;
  /** Stanzas held, those of them not written yet, and the bytes allocated for them. */
  readonly items: number;
  readonly waiting: number;
  readonly bytes: number;
}

export interface EndpointSnapshot {
  /** `host#port`, as in the session table. */
  readonly endpoint: string;
  readonly state: EndpointState;
  readonly lanes: readonly LaneSnapshot[];
}

/** Outgoing links to one destination. */
export interface HostSnapshot {
  /** Local host, or within a datacenter the name of the node. */
  readonly host: string;
  readonly openLinks: number;
  readonly senders: number;
  /** Stanzas that wait for an endpoint to appear. */
  readonly parkedItems: number;
  readonly endpoints: readonly EndpointSnapshot[];
}

/** One link that a node of another datacenter has made to us. */
export interface IncomingSnapshot {
  /** Local host; undefined before HELLO. */
  readonly host: string | undefined;
  readonly node: string | undefined;
  readonly remoteAddress: string;
  readonly unsettled: number;
}

/** All links of this process, for an operator to read. */
export interface LinksSnapshot {
  readonly hosts: readonly HostSnapshot[];
  readonly incoming: readonly IncomingSnapshot[];
  /** Remembered lanes of peers. */
  readonly rememberedLanes: number;
}

export function snapshotOf(
  hosts: Iterable<HostLinks>,
  incoming: Iterable<IncomingLink>,
  rememberedLanes: number,
): LinksSnapshot {
  return {
    hosts: Array.from(hosts, hostSnapshot),
    incoming: Array.from(incoming, (link) => ({
      host: link.host,
      node: link.nodeName,
      remoteAddress: link.remoteAddress,
      unsettled: link.unsettled,
    })),
    rememberedLanes,
  };
}

function hostSnapshot(links: HostLinks): HostSnapshot {
  return {
    host: links.destination,
    openLinks: links.openLinks,
    senders: links.senders,
    parkedItems: links.parkedItems,
    endpoints: Array.from(links.pools, (pool) => ({
      endpoint: `${pool.address.host}#${pool.address.port}`,
      state: pool.state,
      lanes: pool.links.map((link) => ({
        lane: link.lane.id,
        state: link.phase,
        node: link.nodeName,
        senders: link.lane.senders,
        items: link.lane.items,
        waiting: link.lane.waiting,
        bytes: link.lane.allocatedBytes,
      })),
    })),
  };
}
