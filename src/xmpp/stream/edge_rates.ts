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
  /** Stanzas from all sessions of one account. */
  readonly stanzasPerAccount?: RateLimitOptions;
  /** Stanzas from all sessions of one IP address; loopback is not limited. */
  readonly stanzasPerAddress?: RateLimitOptions;
  /**
   * Stanzas from the sessions of one component. It has its own rate because it speaks for many accounts.
   */
  readonly stanzasPerComponent?: RateLimitOptions;
}

/** Rate limits for the costly actions of addresses and accounts, shared by all ports. */
export class EdgeRates implements LoginAttempts {
  readonly #connections: RateLimit | undefined;
  readonly #logins: RateLimit | undefined;
  readonly #failedLogins: RateLimit | undefined;
  readonly #accountStanzas: RateLimit | undefined;
  readonly #addressStanzas: RateLimit | undefined;
  readonly #componentStanzas: RateLimit | undefined;

  /** @throws RangeError for a rate that allows nothing */
  constructor(options: EdgeRatesOptions, clock: Clock) {
    const limit = (rate: RateLimitOptions | undefined) => rate && new RateLimit(rate, clock);
    this.#connections = limit(options.connectionsPerAddress);
    this.#logins = limit(options.loginsPerAddress);
    this.#failedLogins = limit(options.failedLoginsPerAccount);
    this.#accountStanzas = limit(options.stanzasPerAccount);
    this.#addressStanzas = limit(options.stanzasPerAddress);
    this.#componentStanzas = limit(options.stanzasPerComponent);
  }

  /** True when one more connection from that address may become a stream. */
  mayConnect(peer: PeerAddress): boolean {
    return this.#connections === undefined || peer.isLoopback ||
      this.#connections.take(addressKey(peer));
  }

  /** True when one more attempt to log in may come from that address. */
  mayLogIn(peer: PeerAddress): boolean {
    return this.#logins === undefined || peer.isLoopback || this.#logins.take(addressKey(peer));
  }

  begin(account: string): boolean {
    return this.#failedLogins?.take(account) ?? true;
  }

  succeeded(account: string): void {
    this.#failedLogins?.giveBack(account);
  }

  /**
   * Returns the meter of a session; undefined when nothing limits its stanzas.
   * @param account its bare JID
   */
  stanzaMeter(peer: PeerAddress, account: string): StanzaMeter | undefined {
    const perAddress = peer.isLoopback ? undefined : this.#addressStanzas;
    const perAccount = this.#accountStanzas;
    if (perAddress === undefined && perAccount === undefined) return undefined;
    const address = addressKey(peer);
    return {
      charge: () => Math.max(perAccount?.charge(account) ?? 0, perAddress?.charge(address) ?? 0),
    };
  }

  /** Returns the meter of a component; undefined when nothing limits its stanzas. */
  componentMeter(domain: string): StanzaMeter | undefined {
    const limit = this.#componentStanzas;
    return limit && { charge: () => limit.charge(domain) };
  }
}

/** Count of one session's stanzas against the rates of its account and its address. */
export interface StanzaMeter {
  /** Counts one stanza. Returns the milliseconds for which the session should not be read. */
  charge(): number;
}
