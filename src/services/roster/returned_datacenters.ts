import type { Clock } from "../../base/mod.ts";
import { RateLimit } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { LiveProcesses } from "./live_processes.ts";
import { MAX_LOST, MISSES, SECOND_ANNOUNCEMENT } from "./live_processes.ts";

/** Collaborators of `ReturnedDatacenters`. */
export interface ReturnedDatacentersDeps {
  /** Tells the contacts at a datacenter of all sessions here: neither knew of the other's logins. */
  announce(host: string): void;
  readonly log: Logger;
  readonly clock: Clock;
  /** Milliseconds for which a process counts as alive without a word of it. */
  readonly leaseMs: number;
}

/**
 * Announcements to one datacenter at once. In the long run there are two in the life of a lease, as many
 * as an honest datacenter needs whose leases end again and again: each costs a query for each account.
 */
const MAX_ANNOUNCED = 30;

/** Finds datacenters, and nodes of theirs, that come back after they were dead or cut off. */
export class ReturnedDatacenters {
  readonly #deps: ReturnedDatacentersDeps;
  /** Datacenters that had a live process at the last look. */
  #liveHosts: ReadonlySet<string> | undefined;
  /** Processes that have held a lease, with the looks in a row at which they have not. */
  readonly #absences = new Map<number, number>();
  /** Datacenters that have come back, with the looks until they are told once more. */
  readonly #returned = new Map<string, number>();
  readonly #announcements: RateLimit;

  constructor(deps: ReturnedDatacentersDeps) {
    this.#deps = deps;
    const perSec = 2_000 / deps.leaseMs;
    this.#announcements = new RateLimit({ perSec, burst: MAX_ANNOUNCED }, deps.clock);
  }

  /**
   * Tells datacenters that come back of the sessions here, at once and again a moment later: by
   * then replication has brought what was missed of theirs. Also those of which one node is back.
   */
  look(live: LiveProcesses): void {
    const withNodeBack = this.#nodesBack(live);
    const liveHosts = new Set<string>();
    for (const [host, processes] of live) if (processes.size > 0) liveHosts.add(host);
    for (const [host, looks] of [...this.#returned]) {
      if (looks > 1) this.#returned.set(host, looks - 1);
      else if (!liveHosts.has(host)) this.#returned.delete(host);
      else if (this.#announcements.take(host)) {
        this.#returned.delete(host);
        this.#deps.announce(host);
      } // else it is told as soon as it may be
    }
    for (const host of liveHosts) {
      // The first look finds those that this node came to.
      const isBack = this.#liveHosts !== undefined && !this.#liveHosts.has(host);
      if (!isBack && !withNodeBack.has(host)) continue;
      this.#deps.log.info("presence.datacenter-back", { host });
      if (this.#announcements.take(host)) this.#deps.announce(host);
      this.#returned.set(host, SECOND_ANNOUNCEMENT);
    }
    this.#liveHosts = liveHosts;
  }

  /**
   * Returns the datacenters of processes that have their lease back. Others send nothing to a process
   * without one. A process that has only started was told what its clients ask for.
   */
  #nodesBack(live: LiveProcesses): ReadonlySet<string> {
    const withNodeBack = new Set<string>();
    const present = new Set<number>();
    for (const [host, processes] of live) {
      for (const process of processes) {
        if ((this.#absences.get(process) ?? 0) >= MISSES) withNodeBack.add(host);
        this.#absences.delete(process); // those that are away longest come first
        this.#absences.set(process, 0);
        present.add(process);
      }
    }
    for (const [process, looks] of this.#absences) {
      if (present.has(process)) continue;
      if (this.#absences.size > present.size + MAX_LOST) this.#absences.delete(process);
      else this.#absences.set(process, looks + 1);
    }
    return withNodeBack;
  }
}
