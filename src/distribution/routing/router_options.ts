import type { Clock, FairShares, Random } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { StanzaTracer } from "../mod.ts";
import type { BounceOptions } from "./bounce_options.ts";
import type { Domains } from "./decision.ts";
import type { DeliveryMemoryOptions } from "./delivery_memory.ts";
import type { LookupRateOptions } from "./lookup_rates.ts";
import type {
  Archive,
  CarbonCopies,
  LocalDelivery,
  Locations,
  OfflineKeeper,
  Outbound,
  PresenceServer,
  RequestKeeper,
} from "./ports.ts";

/** Options of the router; docs/promises.md, "Routing". */
export interface RouterOptions {
  readonly domains: Domains;
  /** Datacenter hops a stanza that enters here may take; at least 0. @default 4 */
  readonly messageTtl?: number;
  /** False turns bouncing off. */
  readonly bounce?: BounceOptions | false;
  /**
   * Stanzas that may wait behind lookups, over all senders. Answers have as much room again.
   * @default 100000
   */
  readonly maxQueued?: number;
  /** Bytes of waiting stanzas, counting what each costs besides its text. @default 67108864 */
  readonly maxQueuedBytes?: number;
  /** Lookups that one sender may cause. @default no limit */
  readonly lookupRates?: LookupRateOptions;
  readonly memory?: DeliveryMemoryOptions;
}

/** Defaults of the bounds on stanzas that wait for lookups. */
export const ROUTER_QUEUE_DEFAULTS = {
  maxQueued: 100_000,
  maxQueuedBytes: 64 * 1024 * 1024,
} as const;

/** The parts that the router works with. */
export interface RouterDeps {
  /** This process's incarnation, the first half of every stanza id given here. */
  readonly process: number;
  readonly outbound: Outbound;
  readonly locations: Locations;
  readonly local: LocalDelivery;
  /** @default requests for subscriptions are routed like messages */
  readonly requests?: RequestKeeper;
  /** @default no session is told of messages for another */
  readonly carbons?: CarbonCopies;
  /** @default no message is kept for an account that is offline */
  readonly offline?: OfflineKeeper;
  /** @default messages are not archived */
  readonly archive?: Archive;
  /** @default presence is routed like messages */
  readonly presence?: PresenceServer;
  /** Decides which stanzas are followed. @default none is */
  readonly tracer?: StanzaTracer;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log?: Logger;
  readonly random?: Random;
  /**
   * Wider bounds that stanzas waiting for lookups, or bouncing, count for too. @default no bound
   */
  readonly budget?: { readonly lookup: FairShares; readonly bounce: FairShares };
  /**
   * Called when a sender has too much waiting for lookups or archives, and when that is over. The
   * sender is a full JID at the global host, else a domain.
   */
  readonly pressure?: (sender: string, isOver: boolean) => void;
}
