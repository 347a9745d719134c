import type { OpenLink } from "./link_traffic.ts";

/** The open links to other nodes, by process. */
export class LinkBook {
  readonly #localHost: string;
  readonly #dialled = new Map<number, Set<OpenLink>>();
  readonly #accepted = new Map<number, Set<OpenLink>>();

  constructor(localHost: string) {
    this.#localHost = localHost;
  }

  add(link: OpenLink, isDialled: boolean): void {
    const links = isDialled ? this.#dialled : this.#accepted;
    const ofProcess = links.get(link.process);
    if (ofProcess === undefined) links.set(link.process, new Set([link]));
    else ofProcess.add(link);
  }

  remove(link: OpenLink): void {
    for (const links of [this.#dialled, this.#accepted]) {
      const ofProcess = links.get(link.process);
      if (ofProcess?.delete(link) && ofProcess.size === 0) links.delete(link.process);
    }
  }

  /** True until `remove` has been called for `link`. */
  has(link: OpenLink): boolean {
    for (const each of this.#of(link.process)) if (each === link) return true;
    return false;
  }

  /**
   * Returns a link to that process of that datacenter, one that we have dialled if possible: our
   * lanes use it too, so that stanzas sent on one before come first.
   */
  to({ process, host }: Pick<OpenLink, "process" | "host">): OpenLink | undefined {
    for (const link of this.#of(process)) if (link.host === host) return link;
    return undefined;
  }

  /**
   * Returns a link to a process whose datacenter is not known: the process is only each peer's
   * claim. Undefined when two datacenters claim it, unless one is our own.
   */
  find(process: number): OpenLink | undefined {
    const links = [...this.#of(process)];
    const own = links.find(({ host }) => host === this.#localHost);
    if (own !== undefined) return own;
    return links.every(({ host }) => host === links[0]!.host) ? links[0] : undefined;
  }

  /** Yields one link to each process of each datacenter. */
  *peers(): Iterable<OpenLink> {
    const processes = new Set([...this.#dialled.keys(), ...this.#accepted.keys()]);
    for (const process of processes) {
      const hosts = new Map<string, OpenLink>();
      for (const link of this.#of(process)) if (!hosts.has(link.host)) hosts.set(link.host, link);
      yield* hosts.values();
    }
  }

  *#of(process: number): Iterable<OpenLink> {
    yield* this.#dialled.get(process) ?? [];
    yield* this.#accepted.get(process) ?? [];
  }
}
