import { senderKey } from "../mod.ts";
import type { UserHosts } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import type { LocalDelivery } from "./ports.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";
import { SenderPairs } from "./sender_pairs.ts";

/**
 * Stanzas that a stopping node leaves to other nodes, and the order of those that follow them.
 *
 * A stanza that came over a link is left open: the node before routes it anew once this one is gone.
 * One that entered here is handed on to another node of this datacenter. Later stanzas of the same
 * sender and recipient go the same way.
 */
export class StopOrder {
  readonly #hosts: UserHosts;
  readonly #local: LocalDelivery;
  readonly #metrics: RoutingMetrics;
  /** Pairs with a stanza that was left open: later ones are left open too. */
  readonly #leftOpen = new SenderPairs();
  /** Pairs with a stanza that was handed on to another node: later ones go there too. */
  readonly #handedOn = new SenderPairs();
  #isStopping = false;

  constructor(hosts: UserHosts, local: LocalDelivery, metrics: RoutingMetrics) {
    this.#hosts = hosts;
    this.#local = local;
    this.#metrics = metrics;
  }

  /** True while the node stops. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Notes that the node stops. */
  begin(): void {
    this.#isStopping = true;
  }

  /** True when the stanza is dealt with: it goes where earlier ones of its sender have gone. */
  follows(envelope: Envelope): boolean {
    if (this.isBehindLeftOpen(envelope)) {
      this.leaveOpen(envelope);
      return true;
    }
    const { from, to } = envelope.stanza;
    // A direct way may be known by now, and would overtake what the other node still looks for.
    return this.#handedOn.has(senderKey(from, this.#hosts), to.text) && this.handOn(envelope);
  }

  /** True for a stanza that another node holds too, behind one that was left open. */
  isBehindLeftOpen({ isHeldBefore, stanza: { from, to } }: Envelope): boolean {
    return isHeldBefore && this.#leftOpen.has(senderKey(from, this.#hosts), to.text);
  }

  /** Leaves the stanza to the node that held it before this one. */
  leaveOpen(envelope: Envelope): void {
    const { from, to } = envelope.stanza;
    this.#leftOpen.add(senderKey(from, this.#hosts), to.text);
    this.#metrics.leftOpen.inc();
    envelope.leaveOpen();
  }

  /**
   * Gives the stanza to another node of this datacenter, which goes on looking for the recipient.
   * @returns false when there is none, or the stanza must not go on
   */
  handOn(envelope: Envelope): boolean {
    if (envelope.isHeldBefore) return false;
    // Each time costs a hop: nodes that all stop at once must not send it to and fro for ever.
    if (envelope.isCopy || envelope.ttl <= 1) return false;
    envelope.ttl--;
    if (this.#local.handOn?.(envelope) !== true) {
      envelope.ttl++;
      return false;
    }
    const { from, to } = envelope.stanza;
    this.#handedOn.add(senderKey(from, this.#hosts), to.text);
    return true;
  }
}
