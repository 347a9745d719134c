import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { LinkProxy } from "../faults/mod.ts";
import type { Figures } from "./_figures.ts";

/** Part of an endpoint in the admin API's `/api/links` that scenarios read. */
export interface EndpointView {
  readonly endpoint: string;
  readonly state: string;
  readonly lanes: readonly {
    readonly state: string;
    readonly senders: number;
    readonly items: number;
  }[];
}

/** One destination in the admin API's `/api/links`. */
export interface LinksView {
  readonly host: string;
  /** Stanzas that wait for an endpoint to appear. */
  readonly parkedItems: number;
  readonly endpoints: readonly EndpointView[];
}

/** Returns a node's view of its links to `host`; undefined while it has none. */
export async function linksTowards(
  datacenter: Datacenter,
  host: string,
): Promise<LinksView | undefined> {
  const response = await fetch(datacenter.adminUrl("/api/links"));
  const { hosts } = await response.json() as { readonly hosts: readonly LinksView[] };
  return hosts.find((each) => each.host === host);
}

/** The endpoints of `host` that a datacenter's node knows. */
export async function endpointsTowards(
  datacenter: Datacenter,
  host: string,
): Promise<readonly EndpointView[]> {
  return (await linksTowards(datacenter, host))?.endpoints ?? [];
}

/** A proxy in front of a node, which the node advertises as one of its endpoints. */
export interface ProxiedEndpoint {
  /** `127.0.0.1#40001`, as in the session table. */
  readonly name: string;
  readonly proxy: LinkProxy;
}

/**
 * `dc2` advertises two endpoints, each through a proxy of its own, and `dc1` links to both. The
 * cluster has `links: "direct"`, so `dc1` takes the addresses from Redis alone.
 */
export class TwoEndpoints implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #proxies = [new LinkProxy("dc2-a"), new LinkProxy("dc2-b")];

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Starts `dc2` anew with the two endpoints; resolves when `dc1` has all its links to both. */
  static async start(cluster: Cluster): Promise<TwoEndpoints> {
    const two = new TwoEndpoints(cluster);
    const { node } = cluster.datacenter("dc2");
    await node.stop();
    await Promise.all(two.#proxies.map((proxy) => proxy.start()));
    const { connections } = node.configuration.modules.mod_global_distrib;
    connections["advertised_endpoints"] = two.#proxies.map((proxy) => proxy.address);
    const { links } = await node.start();
    for (const proxy of two.#proxies) proxy.setTarget(links[0]);
    await cluster.until(() => two.#areAllOpen(), { what: "all of dc1's links to dc2 are open" });
    return two;
  }

  get both(): readonly [ProxiedEndpoint, ProxiedEndpoint] {
    const [a, b] = this.#endpoints();
    return [a!, b!]; // there are two proxies
  }

  /**
   * Waits until dc1 has bound `count` senders. Returns the endpoint with most of them as `used`,
   * and the other as `spare`.
   */
  async ofSenders(
    count: number,
  ): Promise<{ readonly used: ProxiedEndpoint; readonly spare: ProxiedEndpoint }> {
    const bound = await this.#cluster.until(async () => {
      const views = await this.#views();
      const endpoints = this.#endpoints().map((endpoint) => ({
        endpoint,
        senders: views.find(({ endpoint: name }) => name === endpoint.name)
          ?.lanes.reduce((sum, { senders }) => sum + senders, 0) ?? 0,
      }));
      return endpoints.reduce((sum, { senders }) => sum + senders, 0) === count && endpoints;
    }, { what: `dc1 has bound ${count} senders to lanes` });
    const [first, second] = bound.toSorted((a, b) => b.senders - a.senders);
    return { used: first!.endpoint, spare: second!.endpoint }; // there are two proxies
  }

  /** Returns `dc1`'s view of one endpoint; undefined once `dc1` has closed it. */
  async view(name: string): Promise<EndpointView | undefined> {
    return (await this.#views()).find(({ endpoint }) => endpoint === name);
  }

  /**
   * Removes an endpoint from the set that `dc1` sees. Replication from dc2 is held, so nothing
   * restores it. Resolves when `dc1` has disabled the endpoint.
   */
  async disable(endpoint: ProxiedEndpoint): Promise<void> {
    this.#cluster.replication("dc2", "dc1").part();
    const { localHost, node } = this.#cluster.datacenter("dc2");
    const key = `${localHost}#${node.ready.node}#{endpoints}`;
    const removed = await this.#cluster.datacenter("dc1").redisClient
      .call("SREM", key, endpoint.name);
    if (removed !== 1) throw new Error(`${endpoint.name} was not in the set ${key}`);
    await this.#cluster.until(
      async () => (await this.view(endpoint.name))?.state === "disabled",
      { what: `dc1 has disabled ${endpoint.name}` },
    );
  }

  /**
   * Lets dc2's next renewal of its endpoints through. Resolves when `dc1` uses all endpoints again.
   */
  async enable(): Promise<void> {
    this.#cluster.replication("dc2", "dc1").heal();
    for (const proxy of this.#proxies) proxy.heal();
    await this.#cluster.until(() => this.#areAllOpen(), {
      what: "dc1 has enabled the endpoint again",
    });
  }

  /** Waits until every stanza that dc1 sent is settled. */
  async untilSettled(): Promise<void> {
    await this.#cluster.until(
      async () =>
        (await this.#views()).every(({ lanes }) => lanes.every((lane) => lane.items === 0)),
      { what: "dc1's lanes hold nothing any more" },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
  }

  async #areAllOpen(): Promise<boolean> {
    const views = await this.#views();
    // dc1 retries the endpoint of dc2's former process, and counts failures, until it closes that
    // endpoint.
    return views.length === this.#proxies.length && this.#endpoints().every(({ name }) => {
      const view = views.find(({ endpoint }) => endpoint === name);
      return view?.state === "enabled" && view.lanes.length === CONNECTIONS &&
        view.lanes.every(({ state }) => state === "open");
    });
  }

  #endpoints(): readonly ProxiedEndpoint[] {
    return this.#proxies.map((proxy) => {
      const { host, port } = proxy.address;
      return { name: `${host}#${port}`, proxy };
    });
  }

  #views(): Promise<readonly EndpointView[]> {
    const { localHost } = this.#cluster.datacenter("dc2");
    return endpointsTowards(this.#cluster.datacenter("dc1"), localHost);
  }
}

/** Connections to each endpoint. */
export const CONNECTIONS = 10;

/** Returns how often links from `dc1` to the others came up and failed. */
export function linkEnds(metrics: Figures): { readonly up: number; readonly failed: number } {
  return {
    up: metrics.sum("mod_global_distrib_outgoing_established_total"),
    failed: metrics.sum("mod_global_distrib_outgoing_errored_total"),
  };
}
