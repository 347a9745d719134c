import type { OpenLink } from "../../mod.ts";
import type { NodeRef } from "../claims/node_leases.ts";

/** The nodes of other datacenters with which this node has an open link: they are alive. */
export class LinkedNodes {
  /** Number of open links by local host and node name. */
  readonly #links = new Map<string, Map<string, number>>();

  opened(link: OpenLink): void {
    this.#count(link, 1);
  }

  ended(link: OpenLink): void {
    this.#count(link, -1);
  }

  has({ host, node }: NodeRef): boolean {
    return this.#links.get(host)?.has(node) === true;
  }

  /** True when a node of `host` is linked. */
  hasHost(host: string): boolean {
    return this.#links.has(host);
  }

  #count({ host, nodeName }: OpenLink, by: 1 | -1): void {
    let nodes = this.#links.get(host);
    if (nodes === undefined) this.#links.set(host, nodes = new Map());
    const links = (nodes.get(nodeName) ?? 0) + by;
    if (links > 0) nodes.set(nodeName, links);
    else nodes.delete(nodeName);
    if (nodes.size === 0) this.#links.delete(host);
  }
}
