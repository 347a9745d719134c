import type { FullJid } from "../jid/jid.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import { UnackedQueue } from "../sm/unacked_queue.ts";
import type { StreamMetrics } from "../stream/stream_metrics.ts";

/** Parts that `LateStanzas` works with. */
export interface LateStanzasDeps {
  readonly management: Pick<
    StreamManagement,
    "options" | "budget" | "isUserHost" | "giveBack"
  >;
  readonly metrics: Pick<StreamMetrics, "limitHit">;
}

/**
 * Stanzas that have followed a session from its old node since the session ended, in order. The old node
 * still has a place for the session: if the stanzas were routed again at once, it would send them here
 * again.
 *
 * They have the bounds of a session's queue, and count for the same shares of the budget. A stanza that
 * finds no room is routed again at once, behind all that are kept, so that none overtakes another.
 */
export class LateStanzas {
  readonly #deps: LateStanzasDeps;
  readonly #kept: UnackedQueue;

  constructor(jid: FullJid, deps: LateStanzasDeps) {
    this.#deps = deps;
    const { options, budget, isUserHost } = deps.management;
    // The stanzas leave within seconds. Until then other nodes keep them, too.
    const limits = { ...options, maxUnsettled: Infinity };
    this.#kept = new UnackedQueue(limits, { budget, jid, isUserHost });
  }

  /** Keeps a stanza that was retained for the session, or routes it again where there is no room. */
  keep(delivery: Delivery): void {
    const { stanza, isOwed } = delivery;
    const isFull = this.#kept.isFullFor(stanza.bytes.length, isOwed);
    if (!isFull && this.#kept.hasBudgetFor(stanza, { isOwed, isForLong: true })) {
      this.#kept.push(delivery);
      return this.#kept.detach();
    }
    const { management, metrics } = this.#deps;
    metrics.limitHit(isFull ? "unacknowledged-stanzas" : "waiting-bytes");
    this.giveBack();
    management.giveBack([delivery]);
  }

  /** Routes all kept stanzas again. */
  giveBack(): void {
    this.#deps.management.giveBack(this.#kept.takeAll());
  }
}
