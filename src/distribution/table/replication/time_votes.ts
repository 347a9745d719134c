import type { PacedLog } from "../../../observe/mod.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import type { NodeRef } from "../claims/node_leases.ts";
import { MeshTime } from "./mesh_time.ts";

/**
 * Makes this node's epochs follow the time of most of the mesh, as `MeshTime` counts the votes, and
 * logs when this node's clock is off.
 */
export class TimeVotes {
  readonly #time = new MeshTime();
  readonly #epochs: HybridClock;
  readonly #log: PacedLog;

  constructor(epochs: HybridClock, log: PacedLog) {
    this.#epochs = epochs;
    this.#log = log;
  }

  /** Notes that a node's wall clock is `offsetUs` ahead of ours. */
  note(node: NodeRef, offsetUs: number): void {
    if (this.#time.note(node, offsetUs)) this.#follow();
  }

  /** Drops the vote of a node that is gone. */
  forget(node: NodeRef): void {
    if (this.#time.forget(node)) this.#follow();
  }

  #follow(): void {
    const { correctionUs } = this.#time;
    this.#epochs.correct(correctionUs);
    const aheadMs = Math.round(-correctionUs / 1000);
    if (correctionUs === 0) this.#log.info("clock.agrees", "", {});
    else this.#log.warn("clock.off", "", { aheadMs });
  }
}
