import type { Logger } from "../../observe/mod.ts";
import type { LiveProcesses } from "./live_processes.ts";
import { MAX_LOST, MISSES, SECOND_ANNOUNCEMENT } from "./live_processes.ts";

/** Collaborators of `ReturnedDatacenters`. */
export interface ReturnedDatacentersDeps {
  /** Tells the contacts at a datacenter of all sessions here: neither knew of the other's logins. */
  announce(host: string): void;
  readonly log: Logger;
}

/** Finds datacenters, and nodes of theirs, that come back after they were dead or cut off. */
export class ReturnedDatacenters {
  readonly #deps: ReturnedDatacentersDeps;
  /** Datacenters that had a live process at the last look. */
  #liveHosts: ReadonlySet<string> | undefined;
  /** Processes that have held a lease, with the looks in a row at which they have not. */
  readonly #absences = new Map<number, number>();
  /** Datacenters that have come back, with the looks until they are told once more. */
  readonly #returned = new Map<string, number>();

  constructor(deps: ReturnedDatacentersDeps) {
    this.#deps = deps;
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
      else {
        this.#returned.delete(host);
        if (liveHosts.has(host)) this.#deps.announce(host);
      }
    }
    for (const host of liveHosts) {
      // The first look finds those that this node came to.
      const isBack = this.#liveHosts !== undefined && !this.#liveHosts.has(host);
      if (!isBack && !withNodeBack.has(host)) continue;
      this.#deps.log.info("presence.datacenter-back", { host });
      this.#deps.announce(host);
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
