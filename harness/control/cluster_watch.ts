import type { CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import type { LinkView, NodeStateView, NodeView } from "./cluster_view.ts";

/** Part of a node's `GET /api/v1/overview` that the table needs. */
interface Overview {
  readonly ready: boolean;
  readonly isDraining: boolean;
  readonly sessions: number;
  readonly bouncing: number;
  readonly waitingForLookup: number;
  readonly sentPerSec: number;
  readonly receivedPerSec: number;
  readonly datacenters: readonly OverviewDatacenter[];
}

interface OverviewDatacenter {
  /** Its local host. */
  readonly datacenter: string;
  readonly isOwn: boolean;
  readonly state: "own" | "linked" | "degraded" | "paused" | "unreachable";
  readonly roundTripMs?: number;
  readonly heldItems: number;
  readonly sentPerSec: number;
}

/** Milliseconds after which a node counts as silent. */
const ANSWER_WITHIN_MS = 1_000;

/** Marks of the person at the keyboard, which no node can tell. */
export interface Marks {
  /** Nodes that are being started or ended, by name. */
  readonly changing: ReadonlyMap<string, "starting" | "ending">;
  isCut(one: string, other: string): boolean;
}

/** Asks every node of a cluster over its admin API, as the dashboard does. */
export class ClusterWatch {
  readonly #cluster: Cluster;
  readonly #marks: Marks;
  readonly #answerWithinMs: number;

  constructor(cluster: Cluster, marks: Marks, answerWithinMs = ANSWER_WITHIN_MS) {
    this.#cluster = cluster;
    this.#marks = marks;
    this.#answerWithinMs = answerWithinMs;
  }

  /** Asks all nodes at once. Never rejects: a node that does not answer is shown as such. */
  async read(): Promise<
    { readonly nodes: readonly NodeView[]; readonly links: readonly LinkView[] }
  > {
    const asked = await Promise.all(
      this.#cluster.datacenters.flatMap((datacenter) =>
        datacenter.nodes.map(async (node) => ({
          datacenter,
          node,
          overview: await this.#ask(datacenter, node),
        }))
      ),
    );
    const nodes = asked.map(({ datacenter, node, overview }) =>
      this.#nodeView(datacenter, node, overview)
    );
    const overviews = (datacenter: Datacenter) =>
      asked.filter((each) => each.datacenter === datacenter)
        .flatMap(({ overview }) => overview ?? []);
    const links = this.#cluster.datacenters.flatMap((one, index) =>
      this.#cluster.datacenters.slice(index + 1).map((other) =>
        this.#linkView([one, overviews(one)], [other, overviews(other)])
      )
    );
    return { nodes, links };
  }

  #nodeView(
    datacenter: Datacenter,
    node: CausewayNode,
    overview: Overview | undefined,
  ): NodeView {
    return {
      name: node.name,
      datacenter: datacenter.name,
      state: this.#stateOf(node, overview),
      sessions: overview?.sessions ?? 0,
      sentPerSec: overview?.sentPerSec ?? 0,
      receivedPerSec: overview?.receivedPerSec ?? 0,
      held: sum(overview?.datacenters ?? [], ({ heldItems }) => heldItems),
      waiting: (overview?.bouncing ?? 0) + (overview?.waitingForLookup ?? 0),
      redis: datacenter.redis.isRunning ? "up" : "down",
      dashboard: tryAdminUrl(datacenter, node)?.href,
    };
  }

  #stateOf(node: CausewayNode, overview: Overview | undefined): NodeStateView {
    const changing = this.#marks.changing.get(node.name);
    if (changing !== undefined) return changing;
    if (node.state !== "running") return node.state;
    if (overview === undefined) return "silent";
    if (overview.isDraining) return "draining";
    return overview.ready ? "ready" : "not ready";
  }

  #linkView(
    [one, ofOne]: readonly [Datacenter, readonly Overview[]],
    [other, ofOther]: readonly [Datacenter, readonly Overview[]],
  ): LinkView {
    const towards = (overviews: readonly Overview[], to: Datacenter) =>
      overviews.flatMap(({ datacenters }) =>
        datacenters.filter(({ datacenter }) => datacenter === to.localHost)
      );
    const forth = towards(ofOne, other);
    const back = towards(ofOther, one);
    const both = [...forth, ...back];
    const roundTrips = both.flatMap(({ roundTripMs }) => roundTripMs ?? []);
    return {
      one: one.name,
      other: other.name,
      state: this.#marks.isCut(one.name, other.name) ? "cut" : linkState(both),
      roundTripMs: roundTrips.length === 0 ? undefined : Math.min(...roundTrips),
      sentPerSec: [
        sum(forth, ({ sentPerSec }) => sentPerSec),
        sum(back, ({ sentPerSec }) => sentPerSec),
      ],
      held: [sum(forth, ({ heldItems }) => heldItems), sum(back, ({ heldItems }) => heldItems)],
    };
  }

  async #ask(datacenter: Datacenter, node: CausewayNode): Promise<Overview | undefined> {
    const url = tryAdminUrl(datacenter, node, "/api/v1/overview");
    if (url === undefined || node.state !== "running") return undefined;
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(this.#answerWithinMs) });
      if (response.ok) return await response.json();
      await response.body?.cancel();
    } catch {
      // It is busy, ending or paused. The table shows that it does not answer.
    }
    return undefined;
  }
}

/** Returns a URL of the node's admin port; undefined while the node has none. */
function tryAdminUrl(datacenter: Datacenter, node: CausewayNode, path = "/"): URL | undefined {
  try {
    return datacenter.adminUrl(path, node);
  } catch {
    return undefined; // it does not run, or is still starting
  }
}

/** Sums up what the nodes at both ends say of their links. */
function linkState(ends: readonly OverviewDatacenter[]): LinkView["state"] {
  if (ends.length === 0) return "unknown";
  const linked = ends.filter(({ state }) => state === "linked").length;
  if (linked === ends.length) return "up";
  return ends.every(({ state }) => state === "unreachable" || state === "paused")
    ? "down"
    : "partly up";
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
