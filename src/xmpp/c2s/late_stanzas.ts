import type { Delivery } from "../sm/delivery.ts";
import type { StreamManagement } from "../sm/stream_management.ts";

/**
 * Stanzas that have followed a session from its old node since the session ended, in order. The old node
 * still has a place for the session: if the stanzas were routed again at once, it would send them here
 * again.
 */
export class LateStanzas {
  readonly #management: Pick<StreamManagement, "giveBack">;
  #kept: Delivery[] = [];

  constructor(management: Pick<StreamManagement, "giveBack">) {
    this.#management = management;
  }

  /** Keeps a stanza that was retained for the session. */
  keep(delivery: Delivery): void {
    this.#kept.push(delivery);
  }

  /** Routes all kept stanzas again. */
  giveBack(): void {
    const kept = this.#kept;
    this.#kept = [];
    this.#management.giveBack(kept);
  }
}
