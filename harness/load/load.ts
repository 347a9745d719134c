import { setTimeout as delay } from "node:timers/promises";
import type { Flow, Ledger } from "../ledger/mod.ts";
import type { LoadClient } from "./load_client.ts";

/** How much is sent. */
export interface LoadOptions {
  readonly perSecond: number;
  /** Clients that write to nobody. @default none */
  readonly silent?: readonly LoadClient[];
}

const TICK_MS = 5;
const ASK_MS = 200;
/** A machine that was held up does not have to make good for more. */
const MAX_CATCH_UP_MS = 1_000;

/** Everyone writes to everyone, at a fixed rate whatever comes back. */
export class Load implements AsyncDisposable {
  readonly clients: readonly LoadClient[];
  readonly ledger: Ledger;
  readonly #turns: (readonly [LoadClient, Flow])[] = [];
  #perSecond: number;
  #tick: ReturnType<typeof setInterval> | undefined;
  #asking: ReturnType<typeof setInterval> | undefined;
  #next = 0;
  #due = 0;
  #lastMs = 0;

  constructor(clients: readonly LoadClient[], ledger: Ledger, options: LoadOptions) {
    this.clients = clients;
    this.ledger = ledger;
    this.#perSecond = options.perSecond;
    const silent = new Set(options.silent);
    // neighbours in the list of turns are different clients, so that a tick asks a little of many
    for (let step = 1; step < clients.length; step++) {
      for (const [index, from] of clients.entries()) {
        const to = clients[(index + step) % clients.length]!;
        if (!silent.has(from)) this.#turns.push([from, ledger.open(from.jid, to.jid)]);
      }
    }
  }

  /** Logs everyone in. */
  async enter(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.start()));
    this.#asking = setInterval(() => {
      for (const client of this.clients) client.ask();
    }, ASK_MS);
  }

  start(): void {
    this.#lastMs = performance.now();
    this.#tick = setInterval(() => this.#send(), TICK_MS);
  }

  /** Sends nothing more. */
  pause(): void {
    clearInterval(this.#tick);
    this.#tick = undefined;
  }

  /** Resolves with true when every stanza has its fate, with false when that took too long. */
  async settle(withinMs: number): Promise<boolean> {
    const endMs = performance.now() + withinMs;
    while (this.ledger.unsettled() > 0) {
      if (performance.now() > endMs) return false;
      await delay(50);
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pause();
    clearInterval(this.#asking);
    await Promise.all(this.clients.map((client) => client[Symbol.asyncDispose]()));
  }

  #send(): void {
    const nowMs = performance.now();
    const elapsedMs = Math.min(nowMs - this.#lastMs, MAX_CATCH_UP_MS);
    this.#lastMs = nowMs;
    this.#due += elapsedMs * this.#perSecond / 1000;
    for (; this.#due >= 1; this.#due--) {
      const [client, flow] = this.#turns[this.#next]!;
      this.#next = (this.#next + 1) % this.#turns.length;
      client.send(flow);
    }
    for (const client of this.clients) client.flush();
  }
}
