import type { Clock } from "../../base/mod.ts";
import type { Envelope } from "../envelope.ts";
import { DEFAULT_MAX_PAIRS, RepeatFilter } from "./repeat_filter.ts";
import type { DeliveredNumbers, RepeatFilterOptions } from "./repeat_filter.ts";
import { DEFAULT_MAX_STANZAS, ResendFilter } from "./resend_filter.ts";
import type { ResendFilterOptions } from "./resend_filter.ts";

/** Bounds of the delivery memory. */
export type DeliveryMemoryOptions = Pick<RepeatFilterOptions, "maxPairs"> & ResendFilterOptions;

/** Divisor of the bounds: the part that carbons have besides. */
const CARBON_SHARE = 4;
/** Carbons remembered per pair: a lane that ends brings about as many a second time. */
const CARBON_WINDOW = 256;
/** Carbons remembered of all pairs. */
const MAX_CARBON_NUMBERS = 262_144;

/** Filters of one kind of deliveries. */
interface Filters {
  readonly repeats: RepeatFilter;
  readonly resends: ResendFilter;
}

/**
 * Stanzas that this node has delivered and that may come a second time: over another lane, found by
 * their number, or sent again by their client, found by their text. The memory moves with a
 * session.
 *
 * Carbons of a message are remembered apart from the message itself. When the session that has the
 * message ends, it may go to sessions at a node that has only given its carbon.
 */
export class DeliveryMemory {
  readonly #stanzas: Filters;
  readonly #carbons: Filters;

  constructor(options: DeliveryMemoryOptions, clock: Clock) {
    this.#stanzas = {
      repeats: new RepeatFilter(options),
      resends: new ResendFilter(options, clock),
    };
    const { maxPairs = DEFAULT_MAX_PAIRS, maxStanzas = DEFAULT_MAX_STANZAS } = options;
    this.#carbons = {
      repeats: new RepeatFilter({
        maxPairs: Math.ceil(maxPairs / CARBON_SHARE),
        window: CARBON_WINDOW,
        maxNumbers: MAX_CARBON_NUMBERS,
      }),
      resends: new ResendFilter(
        { ...options, maxStanzas: Math.ceil(maxStanzas / CARBON_SHARE) },
        clock,
      ),
    };
  }

  /**
   * True when the stanza was delivered here before.
   * @param mayComeTwice false for a stanza that can have come over one lane only
   */
  hasDelivered(envelope: Envelope, mayComeTwice: boolean): boolean {
    const { repeats, resends } = this.#filtersOf(envelope);
    return (mayComeTwice && repeats.isRepeat(envelope)) || resends.has(envelope);
  }

  /**
   * Notes that the stanza was delivered here.
   * @param isForServer true for what the server answers: the same request again is a new question,
   *   as the first answer may have been lost with the stream before
   */
  noteDelivered(envelope: Envelope, isForServer = false): void {
    const { repeats, resends } = this.#filtersOf(envelope);
    repeats.remember(envelope);
    if (envelope.entry !== "sent-once" && !isForServer) resends.remember(envelope);
    envelope.rememberedBy = this;
  }

  /**
   * Notes in `record` that a session that has moved here has got the stanza. One for the account
   * may still come here for its other sessions.
   * @param record name of a record, which is no JID
   */
  noteInRecord(envelope: Envelope, record: string): void {
    this.#stanzas.repeats.remember(envelope, record);
  }

  /** True when `record` has the stanza, or has had it for all that is known. */
  mayBeInRecord(envelope: Envelope, record: string): boolean {
    return this.#stanzas.repeats.isRepeat(envelope, record);
  }

  /** True when `record` has the stanza. */
  isInRecord(envelope: Envelope, record: string): boolean {
    return this.#stanzas.repeats.has(envelope, record);
  }

  /** Forgets a record: its session has gone, and would leave one behind with each of its moves. */
  forgetRecord(record: string): void {
    this.#stanzas.repeats.forgetAll(record);
  }

  /** True when sessions here were given the carbon of a message, whether or not it came here itself. */
  hasTold(envelope: Envelope): boolean {
    const { repeats, resends } = this.#carbons;
    return repeats.isRepeat(envelope) || resends.has(envelope);
  }

  /** Notes that sessions here were given the carbon of a message. */
  noteTold(envelope: Envelope): void {
    const { repeats, resends } = this.#carbons;
    repeats.remember(envelope);
    if (envelope.entry !== "sent-once") resends.remember(envelope);
  }

  /**
   * Forgets a stanza that is to be delivered anew, or that moves with its session to another node.
   */
  forgetDelivered(envelope: Envelope): void {
    const { repeats, resends } = this.#filtersOf(envelope);
    repeats.forget(envelope);
    resends.forget(envelope);
    envelope.rememberedBy = undefined;
  }

  /**
   * Returns the numbers delivered here to an address, or those in a record, of at most `max` senders;
   * they move with a session.
   */
  deliveredTo(address: string, max: number): DeliveredNumbers[] {
    return this.#stanzas.repeats.deliveredTo(address, max);
  }

  /** Adds the numbers that another node delivered to a session that has moved here. */
  learnDelivered(address: string, numbers: DeliveredNumbers): void {
    this.#stanzas.repeats.learnDelivered(address, numbers);
  }

  #filtersOf({ isCarbon }: Envelope): Filters {
    return isCarbon ? this.#carbons : this.#stanzas;
  }
}
