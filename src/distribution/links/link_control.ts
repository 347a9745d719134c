import type { Logger } from "../../observe/mod.ts";
import type { HostLinks } from "./pools/host_links.ts";

/** Actions of operators on the links of one scope. */
export class LinkControl {
  readonly #hosts: ReadonlyMap<string, HostLinks>;
  readonly #log: Logger;
  readonly #isRunning: () => boolean;

  /** @param hosts links by destination */
  constructor(hosts: ReadonlyMap<string, HostLinks>, log: Logger, isRunning: () => boolean) {
    this.#hosts = hosts;
    this.#log = log;
    this.#isRunning = isRunning;
  }

  /**
   * Stops connecting to a destination, or to one endpoint of it, until `resume`. Links of its nodes
   * to this one stay.
   *
   * @param endpoint `host#port`. Default: all, those yet to come included
   * @returns the number of endpoints that this pauses; undefined when the destination is not known
   */
  pause(host: string, endpoint?: string): number | undefined {
    const links = this.#find(host);
    const count = links?.pause(endpoint);
    if (count !== undefined) this.#log.info("links.paused", { host, endpoint, endpoints: count });
    return count;
  }

  /** Ends what `pause` has begun, with the same parameters and result. */
  resume(host: string, endpoint?: string): number | undefined {
    const links = this.#find(host);
    const count = links?.resume(endpoint);
    if (count !== undefined) this.#log.info("links.resumed", { host, endpoint, endpoints: count });
    return count;
  }

  /**
   * Dials now what is not connected.
   *
   * @param host default: all destinations
   * @returns the number of destinations
   */
  retry(host?: string): number {
    const all = this.#all(host);
    for (const links of all) links.retry();
    return all.length;
  }

  /**
   * Spreads senders evenly over the lanes.
   *
   * @param host default: all destinations
   * @returns the number of destinations, and of senders that have moved
   */
  rebalance(host?: string): { readonly hosts: number; readonly senders: number } {
    const all = this.#all(host);
    const senders = all.reduce((sum, links) => sum + links.rebalance(), 0);
    return { hosts: all.length, senders };
  }

  #find(host: string): HostLinks | undefined {
    return this.#isRunning() ? this.#hosts.get(host) : undefined;
  }

  #all(host: string | undefined): readonly HostLinks[] {
    if (!this.#isRunning()) return [];
    return [...this.#hosts.values()]
      .filter(({ destination }) => host === undefined || destination === host);
  }
}
