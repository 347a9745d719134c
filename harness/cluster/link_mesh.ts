import { LinkProxy, type Target } from "../faults/mod.ts";

/** Names of the datacenters that a link goes between, in the direction in which it is dialled. */
export interface LinkPair {
  readonly from: string;
  readonly to: string;
}

/** A proxy for each datacenter and each node of every other one. */
export class LinkMesh implements AsyncDisposable {
  /** By `from`, then `to`, then the number of the node. */
  readonly #proxies = new Map<string, Map<string, LinkProxy[]>>();

  /** Starts the proxies between `names`, none of which has a target yet. */
  static async start(names: readonly string[], nodes: number): Promise<LinkMesh> {
    const mesh = new LinkMesh();
    const all: LinkProxy[] = [];
    for (const from of names) {
      const targets = new Map<string, LinkProxy[]>();
      mesh.#proxies.set(from, targets);
      for (const to of names) {
        if (to === from) continue;
        const proxies = Array.from(
          { length: nodes },
          (_, index) => new LinkProxy(`${from}→${to}-node${index + 1}`),
        );
        targets.set(to, proxies);
        all.push(...proxies);
      }
    }
    await Promise.all(all.map((proxy) => proxy.start()));
    return mesh;
  }

  /** The proxies that links from one datacenter to another go through, one for each node there. */
  between(from: string, to: string): readonly LinkProxy[] {
    const proxies = this.#proxies.get(from)?.get(to);
    if (proxies === undefined) throw new RangeError(`No links go from ${from} to ${to}`);
    return proxies;
  }

  /** Returns the addresses that `from` dials to reach each of the others, by name. */
  addresses(from: string): Readonly<Record<string, readonly Target[]>> {
    const targets = this.#proxies.get(from) ?? new Map<string, LinkProxy[]>();
    return Object.fromEntries(
      [...targets].map(([to, proxies]) => [to, proxies.map((proxy) => proxy.address)]),
    );
  }

  /** Tells every proxy in front of a node where that node listens now. */
  setTarget(to: string, node: number, target: Target | undefined): void {
    for (const targets of this.#proxies.values()) targets.get(to)?.[node]?.setTarget(target);
  }

  /** Every pair and its proxies. */
  *all(): Iterable<LinkPair & { readonly proxy: LinkProxy }> {
    for (const [from, targets] of this.#proxies) {
      for (const [to, proxies] of targets) for (const proxy of proxies) yield { from, to, proxy };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.all()].map(({ proxy }) => proxy[Symbol.asyncDispose]()));
  }
}
