/** What came over a link from a domain that nobody here has heard of. */
export interface Unproven {
  /** The session table knows it as a component's. */
  take(): void;
  /** It does not. */
  refuse(): void;
}

/** Stanzas that wait at once, of all domains: each domain costs a question to the table. */
const MAX_WAITING = 1_000;

/**
 * Stanzas of components outside the global host, whose domain memory does not know: they wait, in their
 * order, until the session table has been asked whether it is one.
 */
export class UnprovenSenders {
  readonly #isComponent: (domain: string) => Promise<boolean>;
  readonly #waiting = new Map<string, Unproven[]>();
  #count = 0;

  /** @param isComponent asks the session table */
  constructor(isComponent: (domain: string) => Promise<boolean>) {
    this.#isComponent = isComponent;
  }

  /** True while stanzas of `domain` wait: what comes now goes behind them. */
  isWaiting(domain: string): boolean {
    return this.#count > 0 && this.#waiting.has(domain);
  }

  /** Takes `stanza` over until the table has answered; false when there is no room. */
  hold(domain: string, stanza: Unproven): boolean {
    if (this.#count >= MAX_WAITING) return false;
    this.#count++;
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
    const waiting = this.#waiting.get(domain)!; // it has been put there by `hold`, and nobody else takes it
    this.#waiting.delete(domain);
    this.#count -= waiting.length;
    for (const stanza of waiting) {
      if (isKnown) stanza.take();
      else stanza.refuse();
    }
  }
}
