import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../../base/mod.ts";
import type { Holders } from "../../../base/mod.ts";
import { datacenterHolder } from "../../mod.ts";

/** A stanza that came over a link from an unknown domain. */
export interface Unproven {
  /** Local host of the datacenter that sent it. */
  readonly host: string;
  readonly stanzaBytes: number;
  /** Delivers the stanza: the session table knows the domain as a component's. */
  take(): void;
  /** Refuses the stanza: the table does not know the domain. */
  refuse(): void;
}

/** Stanzas that wait at once, of all domains: each domain costs a lookup. */
const MAX_WAITING = 1_000;

/**
 * Stanzas of components outside the global host whose domain the cache does not know. They wait, in
 * order, until a lookup has shown whether the domain is a component's. Each domain, and each
 * datacenter that sends such stanzas, has its fair share of the room (`FairShares`).
 */
export class UnprovenSenders {
  readonly #isComponent: (domain: string) => Promise<boolean>;
  readonly #waiting = new Map<string, Unproven[]>();
  readonly #shares: FairShares;

  /**
   * @param isComponent looks the domain up in the session table
   * @param budget a wider bound that waiting stanzas count for
   */
  constructor(
    isComponent: (domain: string) => Promise<boolean>,
    budget: FairShares = new FairShares(),
  ) {
    this.#isComponent = isComponent;
    this.#shares = new FairShares({ maxItems: MAX_WAITING, within: budget });
  }

  /** True while stanzas of `domain` wait: later ones go behind them. */
  isWaiting(domain: string): boolean {
    return this.#shares.items > 0 && this.#waiting.has(domain);
  }

  /** Takes `stanza` over until the lookup is done; false when there is no room. */
  hold(domain: string, stanza: Unproven): boolean {
    const holders = holdersOf(domain, stanza);
    if (!this.#shares.mayHold(holders, bytesOf(stanza))) return false;
    this.#shares.hold(holders, bytesOf(stanza));
    const waiting = this.#waiting.get(domain);
    if (waiting !== undefined) waiting.push(stanza);
    else {
      this.#waiting.set(domain, [stanza]);
      void this.#ask(domain); // never rejects
    }
    return true;
  }

  async #ask(domain: string): Promise<void> {
    const isKnown = await this.#isComponent(domain).catch(() => false);
    const waiting = this.#waiting.get(domain)!; // `hold` put it there, only this call takes it
    this.#waiting.delete(domain);
    for (const stanza of waiting) {
      this.#shares.release(holdersOf(domain, stanza), bytesOf(stanza));
    }
    for (const stanza of waiting) {
      if (isKnown) stanza.take();
      else stanza.refuse();
    }
  }
}

function holdersOf(domain: string, { host }: Unproven): Holders {
  return { singles: [], crowds: [domain, datacenterHolder(host)] };
}

function bytesOf({ stanzaBytes }: Unproven): number {
  return stanzaBytes + RETAINED_OVERHEAD_BYTES;
}
