import { Flow, MAY_BE_DOUBLE, MAY_BE_UNKNOWN } from "./flow.ts";
import { type Balance, balanceOf, type BalanceOptions } from "./balance.ts";

/** How a client came to lose its connection. */
export interface LostConnection {
  /** Stream management: what was on its way is not lost with the connection. */
  readonly isManaged: boolean;
  /** The node at the other end was killed. */
  readonly nodeDied: boolean;
}

/** What is known of a stanza wherever it turns up. */
export interface StanzaMark {
  readonly flow: number;
  readonly seq: number;
}

/**
 * An acknowledgement is on its way, or not yet asked for, for this long: what a client received just
 * before its node was killed may come again.
 */
const UNACKNOWLEDGED_MS = 2_000;

/**
 * Who has sent what to whom, and what became of it. Clients tell it what they do and see; in the end
 * each stanza was delivered once, was answered by an error, or is unknown.
 */
export class Ledger {
  readonly #flows: Flow[] = [];
  readonly #nowMs: () => number;
  readonly #skippedAtMs: number[] = [];
  readonly #conditions = new Map<string, number>();
  #strays = 0;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  get flows(): readonly Flow[] {
    return this.#flows;
  }

  /** Stanzas sent so far. */
  get sent(): number {
    return this.#flows.reduce((sum, flow) => sum + flow.sent, 0);
  }

  /** A new numbered row of stanzas from one client to another. */
  open(sender: string, recipient: string): Flow {
    const flow = new Flow(this.#flows.length, sender, recipient);
    this.#flows.push(flow);
    return flow;
  }

  /** Notes that `flow` sends one more; gives its number. */
  sending(flow: Flow): number {
    return flow.send(this.#nowMs());
  }

  /** Notes that a stanza was due and could not even be sent: its client had no connection. */
  skipped(): void {
    this.#skippedAtMs.push(this.#nowMs());
  }

  /** Notes what `recipient` has received. */
  arrived(recipient: string, { flow: number, seq }: StanzaMark): void {
    const flow = this.#flows[number];
    if (flow === undefined || flow.recipient !== recipient || seq >= flow.sent) this.#strays++;
    else flow.arrive(seq, this.#nowMs());
  }

  /** Notes an error that `sender` has received. */
  answered(
    sender: string,
    { flow: number, seq }: StanzaMark,
    condition = "undefined-condition",
  ): void {
    this.#conditions.set(condition, (this.#conditions.get(condition) ?? 0) + 1);
    const flow = this.#flows[number];
    if (flow === undefined || flow.sender !== sender || seq >= flow.sent) this.#strays++;
    else flow.answer(seq, this.#nowMs());
  }

  /** Notes something that nobody has sent like this. */
  stray(): void {
    this.#strays++;
  }

  /** Notes that `client` has lost its connection, with what was on it. */
  connectionLost(client: string, { isManaged, nodeDied }: LostConnection): void {
    for (const flow of this.#flows) {
      const isRecipient = flow.recipient === client;
      if (!isRecipient && flow.sender !== client) continue;
      if (!isManaged) {
        for (let seq = flow.firstOpen(); seq < flow.sent; seq++) {
          if (flow.isOpen(seq)) flow.mark(seq, MAY_BE_UNKNOWN);
        }
      }
      if (nodeDied && isRecipient) this.#markUnacknowledged(flow);
    }
  }

  /** Notes that `client` has logged in at another datacenter than before. */
  moved(client: string): void {
    for (const flow of this.#flows) {
      if (flow.recipient === client || flow.sender === client) flow.move(this.#nowMs());
    }
  }

  /** How many stanzas of unknown fate there are that may not be unknown. */
  unsettled(): number {
    let count = 0;
    for (const flow of this.#flows) {
      for (let seq = flow.firstOpen(); seq < flow.sent; seq++) {
        if (flow.isOpen(seq) && !flow.has(seq, MAY_BE_UNKNOWN)) count++;
      }
    }
    return count;
  }

  /** Counts everything up. */
  balance(options: BalanceOptions): Balance {
    return balanceOf(this.#flows, {
      strays: this.#strays,
      conditions: Object.fromEntries(this.#conditions),
      skippedAtMs: this.#skippedAtMs,
    }, options);
  }

  #markUnacknowledged(flow: Flow): void {
    const sinceMs = this.#nowMs() - UNACKNOWLEDGED_MS;
    // arrivals come roughly in order: what is far older than the limit ends the search
    for (let seq = flow.sent - 1; seq >= 0; seq--) {
      if (flow.arrivals(seq) === 0) continue;
      if (flow.arrivedAtMs(seq) >= sinceMs) flow.mark(seq, MAY_BE_DOUBLE);
      else if (flow.sentAtMs(seq) < sinceMs - SEARCH_BACK_MS) return;
    }
  }
}

/** Nothing is on its way for longer. */
const SEARCH_BACK_MS = 120_000;
