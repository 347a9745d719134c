import { RateLimit } from "../../base/mod.ts";
import type { Clock, RateLimitOptions } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { isRoomDomain, isUserHost } from "../mod.ts";
import type { Domains } from "./decision.ts";

/**
 * Lookups of the session table that stanzas of one sender may cause; an absent rate is no limit.
 */
export interface LookupRateOptions {
  /** For an account of one of our hosts, all its resources together. */
  readonly perAccount?: RateLimitOptions;
  /** For one domain other than those, all its senders together. */
  readonly perComponent?: RateLimitOptions;
}

/** Rates of the first lookups of stanzas, and of those of their retries. */
interface Buckets {
  readonly first: RateLimit;
  readonly retries: RateLimit;
}

/**
 * Counts lookups of the session table by the sender that causes them. So a sender that writes to
 * very many absent addresses cannot slow the table down for others.
 *
 * Retries have a bucket of their own, `maxRetries` times as large. A sender that writes to absent
 * recipients no faster than the rate allows has every retry in time, and retries delay no first
 * lookup. Stanzas of this server itself are free: they answer stanzas that have been paid for.
 */
export class LookupRates {
  #accounts: Buckets | undefined;
  #components: Buckets | undefined;
  /** The options in use, as JSON. */
  #options = "";
  readonly #domains: Domains;
  readonly #clock: Clock;

  /** @param maxRetries of a stanza whose recipient is not found */
  constructor(
    options: LookupRateOptions,
    { domains, clock, maxRetries }: {
      readonly domains: Domains;
      readonly clock: Clock;
      readonly maxRetries: number;
    },
  ) {
    this.#domains = domains;
    this.#clock = clock;
    this.change(options, maxRetries);
  }

  /** Takes other rates from now on, each with a full burst, if they differ. */
  change({ perAccount, perComponent }: LookupRateOptions, maxRetries: number): void {
    const options = JSON.stringify([perAccount, perComponent, maxRetries]);
    if (options === this.#options) return;
    this.#options = options;
    const buckets = (rate: RateLimitOptions | undefined): Buckets | undefined => {
      if (rate === undefined) return undefined;
      const times = Math.max(1, maxRetries);
      const retries = { ...rate, perSec: rate.perSec * times, burst: rate.burst * times };
      return {
        first: new RateLimit(rate, this.#clock),
        retries: new RateLimit(retries, this.#clock),
      };
    };
    this.#accounts = buckets(perAccount);
    this.#components = buckets(perComponent);
  }

  /**
   * Returns the account or domain whose rate pays for stanzas from `from`; undefined when they are
   * free.
   */
  payerOf(from: Jid): string | undefined {
    // The writer of a message to a room has paid for the stanzas that the room sends.
    if (isRoomDomain(from.domainpart, this.#domains)) return undefined;
    if (!isUserHost(from.domainpart, this.#domains)) return from.domainpart;
    return from.localpart === "" ? undefined : from.bare.text;
  }

  /** Books a first lookup; returns the milliseconds until it may be made. */
  bookFirst(from: Jid): number {
    const payer = this.payerOf(from);
    return payer === undefined ? 0 : this.#bucketsOf(from)?.first.charge(payer) ?? 0;
  }

  /** Takes a retry for now; false when none is left at the moment. */
  takeRetry(from: Jid): boolean {
    const payer = this.payerOf(from);
    return payer === undefined || (this.#bucketsOf(from)?.retries.take(payer) ?? true);
  }

  /** Books a retry; returns the milliseconds until it may be made. */
  bookRetry(from: Jid): number {
    const payer = this.payerOf(from);
    return payer === undefined ? 0 : this.#bucketsOf(from)?.retries.charge(payer) ?? 0;
  }

  #bucketsOf({ domainpart }: Jid): Buckets | undefined {
    return isUserHost(domainpart, this.#domains) ? this.#accounts : this.#components;
  }
}
