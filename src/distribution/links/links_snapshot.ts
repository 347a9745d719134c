import type { EndpointState } from "./pools/endpoint_state.ts";
import type { HostLinks } from "./pools/host_links.ts";
import type { IncomingLink } from "./connection/incoming_link.ts";
import type { OutgoingLink } from "./connection/outgoing_link.ts";

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
  /** Stanzas that the peer has not received, the bytes of their frames, and the age of the oldest. */
  readonly unreceivedItems: number;
  readonly unreceivedBytes: number;
  readonly unreceivedForMs: number | undefined;
  /** Milliseconds for which the link has been open; undefined while it is not. */
  readonly openForMs: number | undefined;
  /** Last measured round trip; undefined before the first. */
  readonly roundTripMs: number | undefined;
  /** Number of times that the link has come up. */
  readonly timesOpened: number;
  /** Milliseconds until the next attempt to connect; undefined while none is planned. */
  readonly nextAttemptInMs: number | undefined;
  /** True while an operator keeps the link down. */
  readonly isPaused: boolean;
  /** The last reason why the link ended or could not be made. */
  readonly lastFailure: LaneFailure | undefined;
}

/** Reason why a link ended or could not be made. */
export interface LaneFailure {
  readonly reason: string;
  readonly detail: string;
  readonly agoMs: number;
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
  /** True while an operator has paused all of it. */
  readonly isPaused: boolean;
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

/** Traffic to and from one destination, at a glance. */
export interface LinksFlow {
  /** Local host, or within a datacenter the name of the node. */
  readonly host: string;
  readonly links: number;
  readonly openLinks: number;
  /** True while an operator keeps some of its links down. */
  readonly isPaused: boolean;
  /** The shortest round trip that was measured; undefined while there is none. */
  readonly roundTripMs: number | undefined;
  readonly items: number;
  readonly bytes: number;
  /** Stanzas since the process started. */
  readonly sent: number;
  readonly received: number;
}

/** Returns the flow of one destination. Costs a few steps for each link. */
export function flowOf(
  host: HostLinks,
  totals: { readonly sent: number; readonly received: number },
): LinksFlow {
  let links = 0;
  let bytes = 0;
  let { isPaused } = host;
  let roundTripMs = Infinity;
  for (const pool of host.pools) {
    for (const link of pool.links) {
      links++;
      bytes += link.lane.allocatedBytes;
      isPaused ||= link.isPaused;
      roundTripMs = Math.min(roundTripMs, link.roundTripMs ?? Infinity);
    }
  }
  return {
    host: host.destination,
    links,
    openLinks: host.openLinks,
    isPaused,
    roundTripMs: roundTripMs === Infinity ? undefined : roundTripMs,
    items: host.items,
    bytes,
    ...totals,
  };
}

/** @param nowMs monotonic milliseconds */
export function snapshotOf(
  hosts: Iterable<HostLinks>,
  incoming: Iterable<IncomingLink>,
  { rememberedLanes, nowMs }: { readonly rememberedLanes: number; readonly nowMs: number },
): LinksSnapshot {
  return {
    hosts: Array.from(hosts, (links) => hostSnapshot(links, nowMs)),
    incoming: Array.from(incoming, (link) => ({
      host: link.host,
      node: link.nodeName,
      remoteAddress: link.remoteAddress,
      unsettled: link.unsettled,
    })),
    rememberedLanes,
  };
}

function hostSnapshot(links: HostLinks, nowMs: number): HostSnapshot {
  return {
    host: links.destination,
    openLinks: links.openLinks,
    senders: links.senders,
    parkedItems: links.parkedItems,
    isPaused: links.isPaused,
    endpoints: Array.from(links.pools, (pool) => ({
      endpoint: `${pool.address.host}#${pool.address.port}`,
      state: pool.state,
      lanes: pool.links.map((link) => laneSnapshot(link, nowMs)),
    })),
  };
}

function laneSnapshot(link: OutgoingLink, nowMs: number): LaneSnapshot {
  const { lane, lastFailure } = link;
  return {
    lane: lane.id,
    state: link.phase,
    node: link.nodeName,
    senders: lane.senders,
    items: lane.items,
    waiting: lane.waiting,
    bytes: lane.allocatedBytes,
    unreceivedItems: lane.unreceivedItems,
    unreceivedBytes: lane.unreceivedBytes,
    unreceivedForMs: since(lane.unreceivedItems > 0 ? link.oldestMs : undefined, nowMs),
    openForMs: since(link.openSinceMs, nowMs),
    roundTripMs: link.roundTripMs,
    timesOpened: link.timesOpened,
    nextAttemptInMs: link.nextAttemptMs === undefined
      ? undefined
      : Math.max(0, link.nextAttemptMs - nowMs),
    isPaused: link.isPaused,
    lastFailure: lastFailure && {
      reason: lastFailure.reason,
      detail: lastFailure.detail,
      agoMs: nowMs - lastFailure.atMs,
    },
  };
}

function since(atMs: number | undefined, nowMs: number): number | undefined {
  return atMs === undefined ? undefined : nowMs - atMs;
}
