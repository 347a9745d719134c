import type { Overview, OverviewDatacenter } from "../../admin/mod.ts";
import type { LinksFlow } from "../../distribution/links/mod.ts";

/** Stanzas per second in both directions. */
interface Rates {
  readonly sentPerSec: number;
  readonly receivedPerSec: number;
}

const STILL: Rates = { sentPerSec: 0, receivedPerSec: 0 };
/** Milliseconds under which two overviews share their rates. */
const MIN_INTERVAL_MS = 500;

/** Rates of each destination between one overview and the next. */
export class FlowRates {
  #atMs: number;
  #before = new Map<string, LinksFlow>();
  #rates = new Map<string, Rates>();

  /** @param nowMs monotonic milliseconds of the start */
  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Returns the rates by destination since the call before. */
  take(flows: readonly LinksFlow[], nowMs: number): ReadonlyMap<string, Rates> {
    const forMs = nowMs - this.#atMs;
    if (forMs < MIN_INTERVAL_MS) return this.#rates;
    this.#rates = new Map(flows.map((flow) => {
      const before = this.#before.get(flow.host);
      const perSec = (now: number, then = 0) => Math.max(0, now - then) * 1000 / forMs;
      return [flow.host, {
        sentPerSec: perSec(flow.sent, before?.sent),
        receivedPerSec: perSec(flow.received, before?.received),
      }];
    }));
    this.#before = new Map(flows.map((flow) => [flow.host, flow]));
    this.#atMs = nowMs;
    return this.#rates;
  }
}

/** Returns the datacenters of an overview, this one first, and the rates of all together. */
export function overviewOf(
  localHost: string,
  flows: readonly LinksFlow[],
  rates: ReadonlyMap<string, Rates>,
): Pick<Overview, "datacenters" | "sentPerSec" | "receivedPerSec"> {
  const others = flows
    .toSorted((one, other) => one.host < other.host ? -1 : 1)
    .map((flow): OverviewDatacenter => ({
      datacenter: flow.host,
      isOwn: false,
      state: stateOf(flow),
      links: flow.links,
      openLinks: flow.openLinks,
      ...(flow.roundTripMs !== undefined && { roundTripMs: flow.roundTripMs }),
      heldItems: flow.items,
      heldBytes: flow.bytes,
      sentTotal: flow.sent,
      receivedTotal: flow.received,
      ...rates.get(flow.host) ?? STILL,
    }));
  const own: OverviewDatacenter = {
    datacenter: localHost,
    isOwn: true,
    state: "own",
    links: 0,
    openLinks: 0,
    heldItems: 0,
    heldBytes: 0,
    sentTotal: 0,
    receivedTotal: 0,
    ...STILL,
  };
  return {
    sentPerSec: others.reduce((sum, { sentPerSec }) => sum + sentPerSec, 0),
    receivedPerSec: others.reduce((sum, { receivedPerSec }) => sum + receivedPerSec, 0),
    datacenters: [own, ...others],
  };
}

function stateOf({ links, openLinks, isPaused }: LinksFlow): OverviewDatacenter["state"] {
  if (openLinks === 0) return isPaused ? "paused" : "unreachable";
  return openLinks < links ? "degraded" : "linked";
}
