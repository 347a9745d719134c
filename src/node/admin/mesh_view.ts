import type { Datacenter, Endpoint, LaneState, LinkError, MeshNode } from "../../admin/mod.ts";
import type {
  EndpointSnapshot,
  HostSnapshot,
  IncomingSnapshot,
  LaneFailure,
  LaneSnapshot,
  LinksSnapshot,
} from "../../distribution/links/mod.ts";
import { formatAddress } from "../../net/mod.ts";

/** The links of a node at one moment, and what goes with them. */
export interface MeshFacts {
  readonly localHost: string;
  readonly nodeName: string;
  /** Links to other datacenters; undefined before the start has made them. */
  readonly links: LinksSnapshot | undefined;
  /** Links to the other nodes of this datacenter. */
  readonly cluster: LinksSnapshot | undefined;
  /** Wall time of the snapshots. */
  readonly nowMs: number;
}

type Scope = LaneState["scope"];

/** One destination of a scope. */
interface Destination {
  readonly scope: Scope;
  readonly datacenter: string;
  /** Undefined for another datacenter, of which any node will do. */
  readonly node: string | undefined;
  readonly links: HostSnapshot;
}

/** Returns this node's links with their lanes. */
export function lanesOf(facts: MeshFacts, datacenter?: string): readonly LaneState[] {
  return destinationsOf(facts, datacenter).flatMap((destination) =>
    destination.links.endpoints.flatMap(({ endpoint, lanes }) =>
      lanes.map((lane) => laneOf(lane, endpoint, { ...destination, nowMs: facts.nowMs }))
    )
  );
}

/** Returns the endpoints that this node knows. */
export function endpointsOf(facts: MeshFacts, datacenter?: string): readonly Endpoint[] {
  return destinationsOf(facts, datacenter).flatMap((destination) =>
    destination.links.endpoints.map((endpoint) => endpointOf(endpoint, destination, facts.nowMs))
  );
}

/**
 * Returns the datacenters of the mesh, this one first.
 *
 * @param live nodes that hold a lease, by local host
 */
export function datacentersOf(
  facts: MeshFacts,
  live: ReadonlyMap<string, readonly string[]>,
): readonly Datacenter[] {
  const { links, localHost } = facts;
  const known = new Map((links?.hosts ?? []).map((host) => [host.host, host]));
  const hosts = new Set([localHost, ...[...known.keys(), ...live.keys()].toSorted()]);
  const nodes = nodesOf(facts, live);
  return [...hosts].map((datacenter) => {
    const names = nodes.filter((node) => node.datacenter === datacenter).map(({ node }) => node);
    return datacenterOf(facts, datacenter, { host: known.get(datacenter), nodes: names });
  });
}

/** Returns the nodes of all datacenters: this one first, then by datacenter and name. */
export function nodesOf(
  facts: MeshFacts,
  live: ReadonlyMap<string, readonly string[]>,
): readonly MeshNode[] {
  const { localHost, nodeName } = facts;
  const found = new Map<string, MutableNode>();
  const at = (datacenter: string, node: string): MutableNode => {
    const key = `${datacenter} ${node}`;
    let known = found.get(key);
    if (known === undefined) {
      const isSelf = datacenter === localHost && node === nodeName;
      known = { node, datacenter, isSelf, hasLease: false, openLinks: 0, incoming: [] };
      found.set(key, known);
    }
    return known;
  };
  at(localHost, nodeName);
  for (const [datacenter, names] of live) {
    for (const name of names) at(datacenter, name).hasLease = true;
  }
  for (const { datacenter, links } of destinationsOf(facts)) {
    for (const { lanes } of links.endpoints) {
      for (const { node, state } of lanes) {
        if (node !== undefined && state === "open") at(datacenter, node).openLinks++;
      }
    }
  }
  for (const { host, node, remoteAddress } of incomingOf(facts)) {
    if (host !== undefined && node !== undefined) at(host, node).incoming.push(remoteAddress);
  }
  return [...found.values()]
    .toSorted((one, other) =>
      Number(other.isSelf) - Number(one.isSelf) ||
      compare(one.datacenter, other.datacenter) || compare(one.node, other.node)
    )
    .map(({ incoming, ...node }) => ({
      ...node,
      incomingLinks: incoming.length,
      remoteAddresses: incoming,
    }));
}

interface MutableNode extends Omit<MeshNode, "incomingLinks" | "remoteAddresses"> {
  hasLease: boolean;
  openLinks: number;
  readonly incoming: string[];
}

function* incomingOf({ links, cluster }: MeshFacts): Iterable<IncomingSnapshot> {
  yield* links?.incoming ?? [];
  yield* cluster?.incoming ?? [];
}

function destinationsOf(
  { links, cluster, localHost }: MeshFacts,
  datacenter?: string,
): readonly Destination[] {
  const mesh = (links?.hosts ?? []).map((host): Destination => ({
    scope: "mesh",
    datacenter: host.host,
    node: undefined,
    links: host,
  }));
  const own = (cluster?.hosts ?? []).map((host): Destination => ({
    scope: "datacenter",
    datacenter: localHost,
    node: host.host,
    links: host,
  }));
  const all = [...own, ...mesh];
  return datacenter === undefined ? all : all.filter((each) => each.datacenter === datacenter);
}

function datacenterOf(
  facts: MeshFacts,
  datacenter: string,
  { host, nodes }: { readonly host: HostSnapshot | undefined; readonly nodes: readonly string[] },
): Datacenter {
  const isOwn = datacenter === facts.localHost;
  const lanes = host?.endpoints.flatMap((endpoint) => endpoint.lanes) ?? [];
  const roundTrips = lanes.flatMap(({ roundTripMs }) => roundTripMs ?? []);
  const lastError = lastErrorOf(lanes, facts.nowMs);
  const incomingLinks = facts.links?.incoming.filter((link) => link.host === datacenter).length ??
    0;
  return {
    datacenter,
    isOwn,
    ...datacenterState(isOwn, host, lanes, lastError),
    nodes,
    endpoints: host?.endpoints.length ?? 0,
    links: lanes.length,
    openLinks: host?.openLinks ?? 0,
    incomingLinks,
    ...(roundTrips.length > 0 && { roundTripMs: Math.min(...roundTrips) }),
    senders: host?.senders ?? 0,
    heldItems: sum(lanes, ({ items }) => items) + (host?.parkedItems ?? 0),
    heldBytes: sum(lanes, ({ bytes }) => bytes),
    parkedItems: host?.parkedItems ?? 0,
    ...(lastError !== undefined && { lastError }),
  };
}

function datacenterState(
  isOwn: boolean,
  host: HostSnapshot | undefined,
  lanes: readonly LaneSnapshot[],
  lastError: LinkError | undefined,
): Pick<Datacenter, "state" | "reason"> {
  if (isOwn) return { state: "own" };
  if (host === undefined) return { state: "unreachable", reason: "this node has no links to it" };
  const listed = host.endpoints.filter(({ state }) => state === "enabled");
  const isPaused = host.isPaused ||
    host.endpoints.some((each) => each.lanes.some((lane) => lane.isPaused));
  if (host.openLinks === 0) {
    if (isPaused && listed.length === 0) {
      return { state: "paused", reason: "an operator paused it" };
    }
    if (host.endpoints.length === 0) {
      return { state: "unreachable", reason: "no endpoint of it is known" };
    }
    const reason = listed.length === 0
      ? "none of its endpoints is listed any more"
      : lastError?.detail ?? "its endpoints have not answered yet";
    return { state: "unreachable", reason };
  }
  const down = lanes.length - host.openLinks;
  if (down === 0) return { state: "linked" };
  return {
    state: "degraded",
    reason: `${down} of ${lanes.length} links are down` +
      (lastError === undefined ? "" : `: ${lastError.detail}`),
  };
}

function endpointOf(
  { endpoint, state, lanes }: EndpointSnapshot,
  { scope, datacenter, node }: Destination,
  nowMs: number,
): Endpoint {
  const openLinks = lanes.filter((lane) => lane.state === "open").length;
  const lastError = lastErrorOf(lanes, nowMs);
  const shared = {
    endpoint: addressOf(endpoint),
    scope,
    datacenter,
    ...(node !== undefined && { node }),
    links: lanes.length,
    openLinks,
    heldItems: sum(lanes, ({ items }) => items),
    ...(lastError !== undefined && { lastError }),
  };
  if (lanes.some(({ isPaused }) => isPaused)) {
    return { ...shared, state: "paused", reason: "an operator paused it" };
  }
  if (state !== "enabled") {
    return { ...shared, state: "disabled", reason: "the session table no longer lists it" };
  }
  if (openLinks > 0) return { ...shared, state: "enabled" };
  return { ...shared, state: "connecting", reason: lastError?.detail ?? "no answer yet" };
}

function laneOf(
  lane: LaneSnapshot,
  endpoint: string,
  { scope, datacenter, node, nowMs }: Destination & { readonly nowMs: number },
): LaneState {
  const { openForMs, roundTripMs, unreceivedForMs, nextAttemptInMs, lastFailure } = lane;
  const peer = lane.node ?? node;
  return {
    lane: lane.lane,
    scope,
    datacenter,
    endpoint: addressOf(endpoint),
    ...(peer !== undefined && { node: peer }),
    state: laneStateOf(lane),
    ...(openForMs !== undefined && { upSince: timeOf(nowMs - openForMs), uptimeMs: openForMs }),
    timesOpened: lane.timesOpened,
    ...(roundTripMs !== undefined && { roundTripMs }),
    senders: lane.senders,
    heldItems: lane.items,
    heldBytes: lane.bytes,
    queuedItems: lane.waiting,
    unacknowledgedItems: lane.unreceivedItems,
    unacknowledgedBytes: lane.unreceivedBytes,
    ...(unreceivedForMs !== undefined && { unacknowledgedForMs: unreceivedForMs }),
    ...(lastFailure !== undefined && { lastError: errorOf(lastFailure, nowMs) }),
    ...(nextAttemptInMs !== undefined && { nextAttemptInMs }),
  };
}

function laneStateOf({ state, isPaused }: LaneSnapshot): LaneState["state"] {
  if (isPaused) return "paused";
  return state === "dialling" || state === "connected" ? "connecting" : state;
}

function lastErrorOf(lanes: readonly LaneSnapshot[], nowMs: number): LinkError | undefined {
  const failures = lanes.flatMap(({ lastFailure }) => lastFailure ?? []);
  const [newest] = failures.toSorted((one, other) => one.agoMs - other.agoMs);
  return newest && errorOf(newest, nowMs);
}

function errorOf({ reason, detail, agoMs }: LaneFailure, nowMs: number): LinkError {
  return { reason, detail, at: timeOf(nowMs - agoMs) };
}

/** Returns `host#port`, as the session table has it, as people write it. */
function addressOf(endpoint: string): string {
  const hash = endpoint.lastIndexOf("#");
  return formatAddress(endpoint.slice(0, hash), Number(endpoint.slice(hash + 1)));
}

function timeOf(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

function sum<T>(all: readonly T[], read: (each: T) => number): number {
  return all.reduce((total, each) => total + read(each), 0);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
