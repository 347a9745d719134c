import type { Clock } from "../../base/mod.ts";
import type { Envelope } from "../envelope.ts";
import { RepeatFilter } from "./repeat_filter.ts";
import type { DeliveredNumbers, RepeatFilterOptions } from "./repeat_filter.ts";
import { ResendFilter } from "./resend_filter.ts";
import type { ResendFilterOptions } from "./resend_filter.ts";

/** Bounds of what is remembered. */
export type DeliveryMemoryOptions = Pick<RepeatFilterOptions, "maxPairs"> & ResendFilterOptions;

/**
 * What this node has delivered, as far as it may come a second time: on another way, which its number
 * tells, or sent again by its client, which its text tells. It goes along with a session.
 */
export class DeliveryMemory {
  readonly #repeats: RepeatFilter;
  readonly #resends: ResendFilter;

  constructor(options: DeliveryMemoryOptions, clock: Clock) {
    this.#repeats = new RepeatFilter(options);
    this.#resends = new ResendFilter(options, clock);
  }

  /**
   * True when it was delivered here before.
   * @param mayComeTwice false for what has one way only
   */
  hasDelivered(envelope: Envelope, mayComeTwice: boolean): boolean {
    return (mayComeTwice && this.#repeats.isRepeat(envelope)) ||
      this.#resends.has(envelope);
  }

  /**
   * The stanza is delivered here, or has come along with a session to which it was.
   * @param isForServer true for what the server answers: the same again is a question of its own, whose
   *   first answer may have gone down with the stream before
   */
  noteDelivered(envelope: Envelope, isForServer = false): void {
    this.#repeats.remember(envelope);
    if (!envelope.isSentOnce && !isForServer) this.#resends.remember(envelope);
  }

  /** It is to be delivered anew, or goes along with its session to another node. */
  forgetDelivered(envelope: Envelope): void {
    this.#repeats.forget(envelope);
    this.#resends.forget(envelope);
  }

  /** What was delivered here to `address`, of at most `max` senders: it goes along with a session. */
  deliveredTo(address: string, max: number): DeliveredNumbers[] {
    return this.#repeats.deliveredTo(address, max);
  }

  /** A session for `address` has come from another node, which has delivered this to it. */
  learnDelivered(address: string, numbers: DeliveredNumbers): void {
    this.#repeats.learnDelivered(address, numbers);
  }
}
