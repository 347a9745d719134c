import type { AdminSource } from "../api/admin_source.ts";
import type { Datacenter, DatacenterLinks, LaneState, LinksTo } from "../api/mesh_schemas.ts";
import { sampleSource } from "./sample_source.ts";

const AT = "2026-11-24T10:00:00.000Z";
const LOST = { reason: "unreachable", detail: "connection refused", at: AT };
const CITIES = ["fra", "ams", "lhr", "cdg", "mad", "waw", "sto", "iad", "sfo", "sin", "nrt", "gru"];

/** A source that plays a mesh of `count` datacenters, of which some have trouble. */
export function modelMesh(count: number): AdminSource {
  const datacenters = Array.from({ length: count }, (_, index) => datacenterAt(index));
  const sample = sampleSource();
  const rate = (index: number) => index === 0 ? 0 : (index * 37) % 410;
  return sampleSource({
    status: () => ({
      ...sample.status(),
      uptimeMs: 93_780_000,
      memory: {
        residentBytes: 412 << 20,
        heapBytes: 96 << 20,
        waitingBytes: 3 << 20,
        waitingMaxBytes: 256 << 20,
      },
    }),
    datacenters: () => Promise.resolve(datacenters),
    datacenterLinks: () => Promise.resolve(datacenters.map((each) => toldBy(each, datacenters))),
    nodes: () =>
      Promise.resolve(
        datacenters.flatMap(({ datacenter, nodes, isOwn, state }) =>
          nodes.map((node, index) => ({
            node,
            datacenter,
            isSelf: isOwn && index === 0,
            hasLease: state !== "unreachable",
            openLinks: 1,
            incomingLinks: 1,
            remoteAddresses: [],
          }))
        ),
      ),
    lanes: (name) => lanesOf(datacenters.find(({ datacenter }) => datacenter === name)),
    overview: () => ({
      ...sample.overview(),
      at: new Date().toISOString(),
      sentPerSec: 4210,
      receivedPerSec: 3900,
      datacenters: datacenters.map((each, index) => ({
        ...each,
        sentTotal: 0,
        receivedTotal: 0,
        sentPerSec: each.openLinks === 0 ? 0 : rate(index),
        receivedPerSec: each.openLinks === 0 ? 0 : rate(index) * 0.9,
      })),
    }),
    databases: () =>
      Promise.resolve([
        { pool: "redis", kind: "redis", place: "10.0.0.9:6379", state: "up" },
        {
          ...{ pool: "rdbms.default", kind: "pgsql", place: "10.0.0.8:5432/causeway", state: "up" },
          ...{ connections: 4, idle: 2, maxConnections: 10, waiting: 0 },
        },
      ]),
    certificates: () => [{
      certfile: "/etc/causeway/dc1.pem",
      names: ["dc1.example.com", "example.com"],
      expiresAt: AT,
      daysLeft: 9,
      isExpiringSoon: true,
    }],
  });
}

function datacenterAt(index: number): Datacenter {
  const city = CITIES[index % CITIES.length]!;
  const name = index === 0 ? "dc1.example.com" : `${city}${1 + index}.example.com`;
  const state = index === 0
    ? "own"
    : index === 6
    ? "unreachable"
    : index === 2 || index === 11
    ? "degraded"
    : index === 17
    ? "paused"
    : "linked";
  const isDown = state === "unreachable" || state === "paused" || state === "own";
  return {
    datacenter: name,
    isOwn: index === 0,
    state,
    ...(state === "unreachable" && { reason: "connection refused", lastError: LOST }),
    ...(state === "degraded" && { reason: "1 of 2 links are down: connection refused" }),
    ...(state === "paused" && { reason: "an operator paused it" }),
    nodes: [`node1@${name}`, `node2@${name}`],
    endpoints: 2,
    links: 2,
    openLinks: isDown ? 0 : state === "degraded" ? 1 : 2,
    incomingLinks: isDown ? 0 : 2,
    ...(!isDown && { roundTripMs: 2 + (index * 29) % 240 }),
    senders: index * 3,
    heldItems: state === "unreachable" ? 1830 : index % 4,
    heldBytes: 4096 * index,
    parkedItems: 0,
  };
}

/** Returns what a datacenter tells of its links: nothing, where it cannot be reached or is the last. */
function toldBy(
  { datacenter, isOwn, openLinks }: Datacenter,
  all: readonly Datacenter[],
): DatacenterLinks {
  const index = all.findIndex((each) => each.datacenter === datacenter);
  const isSilent = !isOwn && (openLinks === 0 || (index > 3 && index === all.length - 1));
  const links = all.flatMap((other, at): LinksTo[] => {
    if (other.datacenter === datacenter) return [];
    const isCut = other.state === "unreachable" || (index + at === 11 && index !== 0 && at !== 0);
    return [{
      datacenter: other.datacenter,
      state: isCut ? "unreachable" : "linked",
      links: 2,
      openLinks: isCut ? 0 : 2,
      ...(!isCut && { roundTripMs: 3 + (index * at * 13) % 200 }),
      sentPerSec: isCut ? 0 : (index * 7 + at) % 90,
      receivedPerSec: isCut ? 0 : (index + at * 7) % 90,
    }];
  });
  const told = { datacenter, isOwn, nodes: isSilent ? 0 : 2, troubles: [] };
  return isSilent ? { ...told, answers: 0, links: [] } : { ...told, answers: 2, ageMs: 900, links };
}

function lanesOf(datacenter: Datacenter | undefined): readonly LaneState[] {
  if (datacenter === undefined) return [];
  return Array.from({ length: datacenter.links }, (_, lane): LaneState => {
    const isOpen = lane < datacenter.openLinks;
    return {
      lane,
      scope: "mesh",
      datacenter: datacenter.datacenter,
      endpoint: "10.0.0.2:5555",
      state: isOpen ? "open" : "waiting",
      timesOpened: 1,
      senders: 2,
      heldItems: 1,
      heldBytes: 300,
      queuedItems: 0,
      unacknowledgedItems: 1,
      unacknowledgedBytes: 250,
      unacknowledgedForMs: 40,
      ...(isOpen
        ? { uptimeMs: 3_600_000, roundTripMs: datacenter.roundTripMs! }
        : { lastError: LOST, nextAttemptInMs: 2500 }),
    };
  });
}
