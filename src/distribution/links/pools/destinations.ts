import type { CancelTimer } from "../../../base/mod.ts";
import { describeError } from "../../../base/mod.ts";
import { destinationOf } from "../connection/link_scope.ts";
import type { LinkDeps } from "../connection/link_deps.ts";
import type { ReturnReason } from "../../mod.ts";
import type { EndpointAddress, HostSource } from "../ports.ts";
import { HostLinks } from "./host_links.ts";

/** The parts that destinations work with. */
export interface DestinationsDeps {
  readonly shared: LinkDeps;
  readonly hosts: HostSource;
  /** Endpoints by local host that replace those of the session table. */
  readonly overrides: Readonly<Record<string, readonly EndpointAddress[]>>;
}

/**
 * The outgoing links to every destination. Makes them at first need, for the hosts that the session
 * table lists, and for those that the configuration names.
 */
export class Destinations {
  readonly #deps: DestinationsDeps;
  /** The destination of this node itself. */
  readonly #own: string;
  readonly #all = new Map<string, HostLinks>();
  /** Forgotten destinations whose connections have not ended yet. */
  readonly #leaving = new Set<HostLinks>();
  /** Destinations that the session table has listed, now or before. */
  readonly #listed = new Set<string>();
  /** Endpoints by local host that replace those of the session table. */
  #overrides: DestinationsDeps["overrides"];
  #isRunning = true;
  #cancelRefresh: CancelTimer | undefined;
  #hasFailed = false;

  constructor(deps: DestinationsDeps) {
    this.#deps = deps;
    this.#overrides = deps.overrides;
    this.#own = destinationOf(deps.shared.scope, deps.shared.identity);
  }

  /** Links by destination. */
  get all(): ReadonlyMap<string, HostLinks> {
    return this.#all;
  }

  /** True while some destination is linked. */
  get isAnyOpen(): boolean {
    for (const links of this.#all.values()) if (links.openLinks > 0) return true;
    return false;
  }

  /** Stanzas held in all lanes. */
  get items(): number {
    let items = 0;
    for (const links of this.#all.values()) items += links.items;
    return items;
  }

  /** True when every connection has ended. */
  get hasEnded(): boolean {
    for (const links of this.#all.values()) if (!links.hasEnded) return false;
    for (const links of this.#leaving) if (!links.hasEnded) return false;
    return true;
  }

  /** Makes the links to configured hosts, and begins to read which others there are. */
  start(): void {
    this.#linkNamed();
    this.#refresh().catch(() => {}); // it logs its failures
  }

  /**
   * Takes the options that are shared by now, and other endpoints in place of those of the table. A
   * destination that the configuration no longer names stays, with what the table lists for it.
   */
  change(overrides: DestinationsDeps["overrides"]): void {
    if (!this.#isRunning) return;
    this.#overrides = overrides;
    for (const host of Object.keys(overrides)) this.#deps.shared.mesh.add(host);
    for (const [host, links] of this.#all) links.change(overrides[host]);
    this.#linkNamed();
    this.#refresh().catch(() => {}); // it logs its failures
  }

  /** True for a destination whose endpoints the configuration names. */
  isNamed(host: string): boolean {
    return this.#overrides[host] !== undefined;
  }

  #linkNamed(): void {
    for (const host of Object.keys(this.#overrides)) if (!this.isOwn(host)) this.to(host);
  }

  /** True for this node itself, to which there are no links. */
  isOwn(host: string): boolean {
    return host === this.#own;
  }

  /** Returns the links to `host`, made at first need. */
  to(host: string): HostLinks {
    if (this.isOwn(host)) throw new RangeError(`Cannot link to ${host}: it is this node itself`);
    let links = this.#all.get(host);
    if (links === undefined) {
      links = new HostLinks(host, this.#deps.shared, this.#overrides[host]);
      this.#all.set(host, links);
      links.refresh(); // never rejects
    }
    return links;
  }

  /**
   * Ends the links to `host` for good, and gives the stanzas of their lanes back to be routed anew.
   */
  forget(host: string, reason: ReturnReason): void {
    const links = this.#all.get(host);
    if (links === undefined) return;
    this.#all.delete(host);
    this.#listed.delete(host);
    this.#leaving.add(links);
    links.giveBackAll(reason);
    links.stop("endpoint-gone", "it is not listed any more");
    this.#deps.shared.metrics.forget(host);
    this.#deps.shared.log.info("links.forgotten", { host });
  }

  tick(nowMs: number): void {
    for (const links of this.#all.values()) links.tick(nowMs);
    for (const links of this.#leaving) {
      links.tick(nowMs);
      if (links.hasEnded) this.#leaving.delete(links);
    }
  }

  /** Looks for no more hosts. */
  stopLooking(): void {
    this.#isRunning = false;
    this.#cancelRefresh?.();
  }

  /** Says GOODBYE on all links, because this node leaves. */
  leave(): void {
    this.stopLooking();
    for (const links of this.#all.values()) links.stop("leaving", "this node is going down");
  }

  /** Empties all lanes and gives their stanzas back. */
  giveBackAll(reason: ReturnReason): void {
    for (const links of this.#all.values()) links.giveBackAll(reason);
  }

  /** Reads which hosts there are, and again after the refresh interval. */
  async #refresh(): Promise<void> {
    const { shared } = this.#deps;
    const { mesh, log, clock } = shared;
    try {
      const hosts = await this.#deps.hosts.hosts();
      if (!this.#isRunning) return;
      for (const host of hosts) {
        if (this.isOwn(host)) continue;
        mesh.add(host);
        this.to(host);
        this.#listed.add(host);
      }
      this.#forgetUnlisted(hosts);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) log.warn("hosts.unknown", { error: describeError(error) });
      this.#hasFailed = true;
    }
    if (!this.#isRunning) return;
    this.#cancelRefresh?.();
    this.#cancelRefresh = clock.after(shared.options.hostsRefreshIntervalMs, () => {
      this.#refresh().catch(() => {}); // it logs its failures
    });
  }

  /** Forgets destinations that are gone for good: neither listed by the session table nor linked. */
  #forgetUnlisted(hosts: readonly string[]): void {
    const { scope, mesh } = this.#deps.shared;
    for (const [host, links] of this.#all) {
      if (hosts.includes(host) || links.openLinks > 0) continue;
      // A silent datacenter may be cut off and come back, but a node without a lease is gone.
      if (scope === "datacenter") this.forget(host, "peer-restarted");
      else if (links.isEmpty && this.#hasLeft(host)) {
        mesh.remove(host);
        this.forget(host, "peer-gone");
      }
    }
  }

  /** True for a datacenter that is no longer listed because it has left, or was removed. */
  #hasLeft(host: string): boolean {
    const { hosts: { keepsSilentHosts = false }, shared: { mesh } } = this.#deps;
    return keepsSilentHosts && this.#listed.has(host) && !this.isNamed(host) &&
      mesh.datacenterId(host) === undefined;
  }
}
