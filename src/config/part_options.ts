import type { AdminLimits, AdminOptions } from "../admin/mod.ts";
import type { RateLimitOptions } from "../base/mod.ts";
import type { LinksOptions } from "../distribution/links/mod.ts";
import type { ResumptionOptions } from "../distribution/resumption/mod.ts";
import type {
  BounceOptions,
  HandoverOrderOptions,
  RouterOptions,
} from "../distribution/routing/mod.ts";
import type { CacheOptions, RedisOptions, TableOptions } from "../distribution/table/mod.ts";
import type { ListenerLimits, WebSocketLimits } from "../net/mod.ts";
import type { AccountWatchOptions } from "../services/accounts/mod.ts";
import type { HostServicesOptions } from "../services/mod.ts";
import type { RosterBounds } from "../services/roster/mod.ts";
import type { SubscriptionRequestsOptions } from "../services/subscriptions/mod.ts";
import type { RequestBounds } from "../storage/mod.ts";
import type {
  AdmissionLimits,
  C2sListenerOptions,
  EdgeRatesOptions,
  SessionRegistryOptions,
  StreamLimits,
  StreamManagementOptions,
} from "../xmpp/mod.ts";

type DatacenterBounds = NonNullable<TableOptions["datacenter"]>;

/**
 * Options of the parts of Causeway, by part, under the parts' own names. An option of the file sets
 * one of them (`sets` in `schema_words.ts`). Absent: the part's default applies, and for a rate,
 * there is no limit.
 */
export interface PartOptions {
  readonly accountWatch: AccountWatchOptions;
  readonly admin: Required<AdminLimits> & Pick<AdminOptions, "wrongTokens">;
  readonly admission: Required<AdmissionLimits>;
  /** Undefined: stanzas without a route are answered at once (`bounce = false`). */
  readonly bounce?: Required<BounceOptions> | undefined;
  readonly cache: Required<CacheOptions>;
  readonly clients: C2sListenerOptions;
  /** Bounds on what each other datacenter may store here. */
  readonly datacenter: DatacenterBounds & Pick<Required<DatacenterBounds>, "maxEndpoints">;
  readonly edgeRates: EdgeRatesOptions;
  readonly handover: Required<HandoverOrderOptions>;
  /** Bounds of the node itself. */
  readonly limits: {
    /** Bytes of all waiting stanzas. */
    readonly waitingMaxBytes: number;
    /** Milliseconds that a whole graceful stop may take. */
    readonly shutdownTimeoutMs: number;
  };
  readonly links:
    & LinksOptions
    & Pick<Required<LinksOptions>, "inboundMemoryMs" | "maxFrameBytes" | "silenceTimeoutMs">;
  readonly lookupRates: NonNullable<RouterOptions["lookupRates"]>;
  readonly memory: NonNullable<RouterOptions["memory"]>;
  readonly ports: ListenerLimits & Pick<Required<ListenerLimits>, "handshakeTimeoutMs">;
  readonly redis: RedisOptions & Pick<Required<RedisOptions>, "expireAfterMs">;
  readonly requests:
    & Required<RequestBounds>
    & Required<SubscriptionRequestsOptions>;
  readonly resumption: Partial<ResumptionOptions>;
  readonly router: Partial<RouterOptions>;
  readonly rosters: Required<RosterBounds>;
  readonly services: HostServicesOptions;
  readonly sessions: SessionRegistryOptions;
  /** Undefined: stream management is not offered (`mod_stream_management = false`). */
  readonly streamManagement?: Required<Omit<StreamManagementOptions, "maxOwedBytes">> | undefined;
  readonly streams: Required<StreamLimits>;
  readonly table: Partial<TableOptions>;
  readonly webSockets: WebSocketLimits;
}

type Part = keyof PartOptions;

/** Name of a part and of one of its options, such as `links.maxFrameBytes`. */
export type Target = {
  [P in Part]-?: `${P}.${keyof NonNullable<PartOptions[P]> & string}`;
}[Part];

/** Type of the option that `T` names. */
export type ValueOf<T extends Target> = T extends `${infer P extends Part}.${infer Name}`
  ? NonNullable<PartOptions[P]>[Name & keyof NonNullable<PartOptions[P]>]
  : never;

/** Targets that are rates. */
export type RateTarget = {
  [T in Target]: NonNullable<ValueOf<T>> extends RateLimitOptions ? T : never;
}[Target];
