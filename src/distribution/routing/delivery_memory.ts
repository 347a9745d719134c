import type { Clock } from "../../base/mod.ts";
import type { Envelope } from "../envelope.ts";
import { RepeatFilter } from "./repeat_filter.ts";
import type { DeliveredNumbers, RepeatFilterOptions } from "./repeat_filter.ts";
import { ResendFilter } from "./resend_filter.ts";
import type { ResendFilterOptions } from "./resend_filter.ts";

/** Bounds of the delivery memory. */
export type DeliveryMemoryOptions = Pick<RepeatFilterOptions, "maxPairs"> & ResendFilterOptions;

/**
 * Stanzas that this node has delivered and that may come a second time: over another lane, found by
 * their number, or sent again by their client, found by their text. The memory moves with a
 * session.
 */
export class DeliveryMemory {
  readonly #repeats: RepeatFilter;
  readonly #resends: ResendFilter;

  constructor(options: DeliveryMemoryOptions, clock: Clock) {
    this.#repeats = new RepeatFilter(options);
    this.#resends = new ResendFilter(options, clock);
  }

  /**
   * True when the stanza was delivered here before.
   * @param mayComeTwice false for a stanza that can have come over one lane only
   */
  hasDelivered(envelope: Envelope, mayComeTwice: boolean): boolean {
    return (mayComeTwice && this.#repeats.isRepeat(envelope)) ||
      this.#resends.has(envelope);
  }

  /**
   * Notes that the stanza was delivered here, or to a session that has moved here.
   * @param isForServer true for what the server answers: the same request again is a new question,
   *   as the first answer may have been lost with the stream before
   */
  noteDelivered(envelope: Envelope, isForServer = false): void {
    this.#repeats.remember(envelope);
    if (envelope.entry !== "sent-once" && !isForServer) this.#resends.remember(envelope);
  }

  /**
   * Forgets a stanza that is to be delivered anew, or that moves with its session to another node.
   */
  forgetDelivered(envelope: Envelope): void {
    this.#repeats.forget(envelope);
    this.#resends.forget(envelope);
  }

  /**
   * Returns the numbers delivered here to `address`, of at most `max` senders; they move with a
   * session.
   */
  deliveredTo(address: string, max: number): DeliveredNumbers[] {
    return this.#repeats.deliveredTo(address, max);
  }

  /** Adds the numbers that another node delivered to `address`, whose session has moved here. */
  learnDelivered(address: string, numbers: DeliveredNumbers): void {
    this.#repeats.learnDelivered(address, numbers);
  }
}
