import type { NodeLeases } from "./claims/node_leases.ts";
import type { Placements } from "./lookup/placements.ts";
import type { ClusterBus } from "./mesh/cluster_bus.ts";
import type { ClusterDirectory } from "./mesh/cluster_directory.ts";
import type { EndpointAddress } from "./mesh/directory.ts";

/** The parts that `Neighbours` works with. */
export interface NeighboursDeps {
  readonly localHost: string;
  readonly bus: ClusterBus;
  readonly cluster: ClusterDirectory;
  readonly leases: NodeLeases;
  readonly placements: Placements;
  /** Called when a node is gone: what memory holds of its sessions is outdated. */
  lost(): void;
  /** Called whenever the nodes are counted and there is at least one. */
  present(): void;
}

/** The other nodes of this datacenter that are linked or hold a lease. */
export class Neighbours {
  readonly #deps: NeighboursDeps;
  #nodes: ReadonlySet<string> = new Set();

  constructor(deps: NeighboursDeps) {
    this.#deps = deps;
  }

  get nodes(): ReadonlySet<string> {
    return this.#nodes;
  }

  /** Notes that a node has linked to us: it lives, even if its lease was missing a moment ago. */
  arrived(node: string, process: number): void {
    const { leases, localHost } = this.#deps;
    leases.note({ host: localHost, node }, process);
    this.#note(this.#nodes);
  }

  /** Returns other live nodes; while Redis is away, the last known ones. */
  async look(): Promise<readonly string[]> {
    const nodes = await this.#deps.cluster.nodes();
    this.#note(nodes);
    return nodes;
  }

  /** Returns the endpoint of another node. */
  endpoints(node: string): Promise<readonly EndpointAddress[]> {
    return this.#deps.cluster.endpoints(node);
  }

  /** @param listed nodes that hold a lease; those that are linked live too */
  #note(listed: Iterable<string>): void {
    const { bus, placements, lost, present } = this.#deps;
    const nodes = new Set([...listed, ...bus.nodes]);
    const hasLost = [...this.#nodes].some((node) => !nodes.has(node));
    this.#nodes = nodes;
    placements.isShared = nodes.size > 0;
    if (hasLost) lost();
    if (nodes.size > 0) present();
  }
}
