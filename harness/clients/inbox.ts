import { withDeadline } from "../deadline.ts";
import type { ReceivedStanza, StanzaPredicate } from "./received_stanza.ts";
import { describeStanza, matchesStanza } from "./received_stanza.ts";

interface Waiter {
  readonly predicate: StanzaPredicate;
  readonly resolve: (stanza: ReceivedStanza) => void;
  readonly reject: (error: Error) => void;
}

const SHOWN_STANZAS = 8;

/** Stanzas that a client has received, in order, and the pending waits. */
export class Inbox {
  readonly #received: ReceivedStanza[] = [];
  readonly #untaken = new Set<ReceivedStanza>();
  readonly #waiters = new Set<Waiter>();
  #failure: Error | undefined;

  /** Every stanza so far, taken or not, oldest first. */
  get received(): readonly ReceivedStanza[] {
    return this.#received;
  }

  /** Stanzas that no `take` has claimed yet, oldest first. */
  get untaken(): readonly ReceivedStanza[] {
    return [...this.#untaken];
  }

  push(stanza: ReceivedStanza): void {
    this.#received.push(stanza);
    for (const waiter of this.#waiters) {
      if (!matchesStanza(waiter.predicate, stanza)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(stanza);
      return;
    }
    this.#untaken.add(stanza);
  }

  /** Ends every wait, now and later: nothing more will arrive. */
  fail(error: Error): void {
    this.#failure ??= error;
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters.clear();
  }

  /** Takes the oldest unclaimed stanza that fits, waiting for it at most `withinMs`. */
  async take(predicate: StanzaPredicate, what: string, withinMs: number): Promise<ReceivedStanza> {
    for (const stanza of this.#untaken) {
      if (!matchesStanza(predicate, stanza)) continue;
      this.#untaken.delete(stanza);
      return stanza;
    }
    if (this.#failure !== undefined) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<ReceivedStanza>();
    const waiter: Waiter = { predicate, resolve, reject };
    this.#waiters.add(waiter);
    try {
      return await withDeadline(promise, { what, withinMs, seen: () => this.#describe() });
    } finally {
      this.#waiters.delete(waiter);
    }
  }

  #describe(): string {
    const shown = this.#received.slice(-SHOWN_STANZAS).map(describeStanza);
    return `${this.#received.length} stanzas, the last: ${shown.join(" ") || "none"}`;
  }
}
