import type { Clock, PeerAddress, RateLimitOptions } from "../../base/mod.ts";
import { addressKey, RateLimit } from "../../base/mod.ts";
import type { LoginAttempts } from "../sasl/mod.ts";

/** Rates for costly events at the edge. An absent rate limits nothing. */
export interface EdgeRatesOptions {
  /** Connections of clients and components from one IP address; loopback is not limited. */
  readonly connectionsPerAddress?: RateLimitOptions;
  /** Attempts to log in from one IP address, right or wrong; loopback is not limited. */
  readonly loginsPerAddress?: RateLimitOptions;
  /** Wrong passwords for one account, or for a name that could be one. */
  readonly failedLoginsPerAccount?: RateLimitOptions;
  /** Sessions that clients begin here, whoever they are. Resumed ones are not counted. */
  readonly sessions?: RateLimitOptions;
  /** Stanzas from all sessions of one account. */
  readonly stanzasPerAccount?: RateLimitOptions;
  /** Stanzas from all sessions of one IP address; loopback is not limited. */
  readonly stanzasPerAddress?: RateLimitOptions;
  /**
   * Stanzas from the sessions of one component. It has its own rate because it speaks for many accounts.
   */
  readonly stanzasPerComponent?: RateLimitOptions;
}

/** One rate, which may be absent, with the options that it was made of. */
interface KeptRate {
  readonly options: RateLimitOptions | undefined;
  readonly limit: RateLimit | undefined;
}

const RATES = [
  "connectionsPerAddress",
  "loginsPerAddress",
  "failedLoginsPerAccount",
  "sessions",
  "stanzasPerAccount",
  "stanzasPerAddress",
  "stanzasPerComponent",
] as const satisfies readonly (keyof EdgeRatesOptions)[];

/** Key of a rate that all share. */
const ALL = "";

/** Rate limits for the costly actions of addresses and accounts, shared by all ports. */
export class EdgeRates implements LoginAttempts {
  readonly #clock: Clock;
  readonly #rates: Record<typeof RATES[number], KeptRate>;

  /** @throws RangeError for a rate that allows nothing */
  constructor(options: EdgeRatesOptions, clock: Clock) {
    this.#clock = clock;
    const none: KeptRate = { options: undefined, limit: undefined };
    this.#rates = {
      connectionsPerAddress: none,
      loginsPerAddress: none,
      failedLoginsPerAccount: none,
      sessions: none,
      stanzasPerAccount: none,
      stanzasPerAddress: none,
      stanzasPerComponent: none,
    };
    this.change(options);
  }

  /**
   * Takes other rates from now on, for sessions that are open too. A rate that changes begins with a
   * full burst for everybody. One that stays the same goes on counting.
   * @throws RangeError for a rate that allows nothing
   */
  change(options: EdgeRatesOptions): void {
    for (const name of RATES) {
      const rate = options[name];
      if (isSame(rate, this.#rates[name].options)) continue;
      this.#rates[name] = { options: rate, limit: rate && new RateLimit(rate, this.#clock) };
    }
  }

  /** True when one more connection from that address may become a stream. */
  mayConnect(peer: PeerAddress): boolean {
    const { limit } = this.#rates.connectionsPerAddress;
    return limit === undefined || peer.isLoopback || limit.take(addressKey(peer));
  }

  /** True when one more attempt to log in may come from that address. */
  mayLogIn(peer: PeerAddress): boolean {
    const { limit } = this.#rates.loginsPerAddress;
    return limit === undefined || peer.isLoopback || limit.take(addressKey(peer));
  }

  begin(account: string): boolean {
    return this.#rates.failedLoginsPerAccount.limit?.take(account) ?? true;
  }

  succeeded(account: string): void {
    this.#rates.failedLoginsPerAccount.limit?.giveBack(account);
  }

  /**
   * Counts one more session that a client wants to begin.
   * @returns milliseconds until it may begin; undefined, and nothing is counted, when those are more
   *   than `atMostMs`
   */
  sessionDelay(atMostMs: number): number | undefined {
    const { limit } = this.#rates.sessions;
    const delayMs = limit?.charge(ALL) ?? 0;
    if (delayMs <= atMostMs) return delayMs;
    limit!.giveBack(ALL);
    return undefined;
  }

  /** Counts a session no longer whose client has left before it began. */
  sessionGivenUp(): void {
    this.#rates.sessions.limit?.giveBack(ALL);
  }

  /**
   * Returns the meter of a session.
   * @param account its bare JID
   */
  stanzaMeter(peer: PeerAddress, account: string): SessionMeter {
    const address = peer.isLoopback ? undefined : addressKey(peer);
    return new SessionMeter(this.#rates, { account, address });
  }

  /** Returns the meter of a component. */
  componentMeter(domain: string): StanzaMeter {
    const rates = this.#rates;
    return { charge: () => rates.stanzasPerComponent.limit?.charge(domain) ?? 0 };
  }
}

/** Rates by name. They are replaced when they change. */
type Rates = Readonly<Record<typeof RATES[number], KeptRate>>;

/** Count of one session's stanzas against the rates of its account and its address. */
export interface StanzaMeter {
  /** Counts one stanza. Returns the milliseconds for which the session should not be read. */
  charge(): number;
}

/** Counts the stanzas of a session. */
export class SessionMeter implements StanzaMeter {
  readonly #rates: Rates;
  readonly #account: string;
  /** Undefined for a peer on this machine. */
  readonly #address: string | undefined;

  constructor(
    rates: Rates,
    { account, address }: { readonly account: string; readonly address: string | undefined },
  ) {
    this.#rates = rates;
    this.#account = account;
    this.#address = address;
  }

  /** False while nothing limits the stanzas: they need not be counted. */
  get isOn(): boolean {
    const { stanzasPerAccount, stanzasPerAddress } = this.#rates;
    return stanzasPerAccount.limit !== undefined || stanzasPerAddress.limit !== undefined;
  }

  charge(): number {
    const { stanzasPerAccount, stanzasPerAddress } = this.#rates;
    const ofAccount = stanzasPerAccount.limit?.charge(this.#account) ?? 0;
    if (this.#address === undefined) return ofAccount;
    return Math.max(ofAccount, stanzasPerAddress.limit?.charge(this.#address) ?? 0);
  }
}

function isSame(one: RateLimitOptions | undefined, other: RateLimitOptions | undefined): boolean {
  return one?.perSec === other?.perSec && one?.burst === other?.burst &&
    one?.maxKeys === other?.maxKeys;
}
