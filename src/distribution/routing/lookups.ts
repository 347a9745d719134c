import type { Clock } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { FullJid, parseJid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { isLocalUser, lookupKey } from "./addresses.ts";
import type { Domains } from "./decision.ts";
import type { LookupRates } from "./lookup_rates.ts";
import type { Locations } from "./ports.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";

/** The parts that `Lookups` works with. */
export interface LookupsDeps {
  readonly domains: Domains;
  readonly locations: Locations;
  readonly rates: LookupRates;
  readonly metrics: RoutingMetrics;
  readonly clock: Clock;
}

/**
 * Lookups of the session table for stanzas, paced by the rates of the senders that cause them. Also
 * remembers where a sender is, as shown by the link over which its stanzas come.
 */
export class Lookups {
  readonly #deps: LookupsDeps;
  /** Ends the waits of lookups that are over their payer's rate. */
  readonly #paced = new Set<() => void>();
  #isHurried = false;

  constructor(deps: LookupsDeps) {
    this.#deps = deps;
  }

  /** Returns the address under which the table knows `to`. */
  keyOf(to: Jid): Jid {
    return lookupKey(to, this.#deps.domains);
  }

  /**
   * Local host of the stanza's recipient from memory alone; null for a remembered miss, undefined
   * when it is to be looked up.
   */
  cached({ cameFrom }: Envelope, key: Jid): string | null | undefined {
    const { locations } = this.#deps;
    const host = locations.cached(key);
    if (host === undefined || host !== cameFrom) return host;
    // The datacenter that passed it on has already looked at home. If our cache sent it back, and
    // theirs sent it here again, it would use up its hops before either has heard of a login.
    locations.expire(key);
    return undefined;
  }

  /**
   * Looks the stanza's recipient up as soon as the sender's rate allows. Resolves to its local
   * host, or to undefined when the table does not know it.
   */
  find(envelope: Envelope, key: Jid): Promise<string | undefined> {
    const { locations } = this.#deps;
    const waiting = this.turn(envelope);
    return waiting === undefined
      ? locations.locate(key)
      : waiting.then(() => locations.locate(key));
  }

  /** Looks addresses of one account up again. */
  relocate(keys: readonly Jid[]): Promise<readonly (string | undefined)[]> {
    const { domains, locations } = this.#deps;
    const located = locations.locateAgain(keys);
    if (!isLocalUser(keys[0]!, domains)) return located; // `keys` is never empty
    // Another datacenter may have users of the same name at that host: they are other people.
    return located.then((hosts) => hosts.map((host) => host && domains.localHost));
  }

  /** Drops what memory holds on `to`, so that the next lookup asks Redis. */
  forget(to: Jid): void {
    this.#deps.locations.forget(this.keyOf(to));
  }

  /** Looks `to` up anew; returns its local host, or undefined when it is not in the table. */
  whereabouts(to: Jid): Promise<string | undefined> {
    const key = this.keyOf(to);
    this.#deps.locations.forget(key);
    return this.#deps.locations.locate(key);
  }

  /**
   * Books a lookup for a stanza. Returns a promise to wait for, or undefined when the lookup may be
   * made at once. An owed error's sender is not charged: it did not cause the error.
   */
  readonly turn = (envelope: Envelope): Promise<void> | undefined => {
    const waitMs = envelope.isOwed ? 0 : this.#deps.rates.bookFirst(envelope.stanza.from);
    return waitMs > 0 && !this.#isHurried ? this.#pace(waitMs) : undefined;
  };

  /** Makes no lookup wait any more, for a graceful stop. */
  hurry(): void {
    this.#isHurried = true;
    for (const go of [...this.#paced]) go();
  }

  /**
   * Remembers where the sender of a stanza from a link is, unless the stanza is an error or
   * unavailable presence (docs/promises.md, "The session table").
   * @returns true when nothing was known of the sender before
   */
  learnFrom({ stanza: { from, type }, origin }: Envelope): boolean {
    const { domains, locations } = this.#deps;
    // The origin is a peer's claim: it counts only if it is a datacenter of the mesh.
    if (!domains.isOtherLocalHost(origin)) return false;
    if (type === "error" || type === "unavailable") return false;
    const domain = from.domainpart;
    // In the name of an account, a server speaks too, wherever the account's clients are.
    if (domain === domains.globalHost) {
      return from instanceof FullJid && locations.learn(from, origin);
    }
    if (domains.hosts.has(domain) || domains.isOtherLocalHost(domain)) return false;
    return locations.learn(parseJid(domain), origin);
  }

  /** Waits until a lookup may be made, or lookups are hurried. */
  #pace(waitMs: number): Promise<void> {
    const { metrics, clock } = this.#deps;
    metrics.lookupsDelayed.first.inc();
    const { promise, resolve } = Promise.withResolvers<void>();
    const go = () => {
      cancel();
      this.#paced.delete(go);
      resolve();
    };
    const cancel = clock.after(waitMs, go);
    this.#paced.add(go);
    return promise;
  }
}
