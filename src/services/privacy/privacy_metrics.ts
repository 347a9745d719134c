import type { Counter, Metrics } from "../../observe/mod.ts";
import type { StanzaKind } from "../../xmpp/mod.ts";

/** Way of a stanza that a privacy list stops. */
export type BlockedWay = "in" | "out";

/** Counters of privacy lists. */
export class PrivacyMetrics {
  /** Times that the lists of an account with sessions here could not be read. */
  readonly failures: Counter;
  readonly #blocked: Readonly<Record<BlockedWay, Readonly<Record<StanzaKind, Counter>>>>;

  /** @param accounts returns how many accounts have lists in the memory of this node */
  constructor(metrics: Metrics, accounts: () => number) {
    const blocked = (direction: BlockedWay, kind: StanzaKind) =>
      metrics.counter({
        name: "causeway_privacy_blocked_total",
        help: "Stanzas that a privacy or block list kept from a client here (in), or kept a " +
          "client here from sending (out)",
        labels: { direction, kind },
      });
    const ofWay = (way: BlockedWay) => ({
      message: blocked(way, "message"),
      presence: blocked(way, "presence"),
      iq: blocked(way, "iq"),
    });
    this.#blocked = { in: ofWay("in"), out: ofWay("out") };
    this.failures = metrics.counter({
      name: "causeway_privacy_failures_total",
      help: "Failed attempts to read the privacy lists of an account with sessions here",
    });
    metrics.gauge({
      name: "causeway_privacy_accounts",
      help: "Accounts with sessions here that have, or had, privacy or block lists",
    }, accounts);
  }

  blocked(way: BlockedWay, kind: StanzaKind): void {
    this.#blocked[way][kind].inc();
  }
}
