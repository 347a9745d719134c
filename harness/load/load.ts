import { setTimeout as delay } from "node:timers/promises";
import { type Flow, type Ledger, msOutside, type Span } from "../ledger/mod.ts";
import { liveMs } from "../live_clock.ts";
import { Patience } from "../patience.ts";
import type { LoadClient } from "./load_client.ts";
import type { LoadStanzaOptions } from "./load_stanza.ts";
import { DEFAULT_MIX, FormDraw, type Mix } from "./mix.ts";
import type { SideLoad } from "./side_load.ts";

/** Options of a load. */
export interface LoadOptions {
  readonly perSecond: number;
  /** @default mostly messages to full JIDs */
  readonly mix?: Mix;
  /**
   * False for messages that no archive keeps: one whose recipient cannot be found then comes back as
   * an error. @default true
   */
  readonly isStored?: boolean;
  /** Clients that write to nobody. @default none */
  readonly silent?: readonly LoadClient[];
  /** Traffic beside the numbered stanzas. @default none */
  readonly side?: SideLoad;
}

const TICK_MS = 5;
const ASK_MS = 200;
const SETTLED_EVERY_MS = 50;
const LOOK_EVERY_MS = 1_000;
/** A machine that was held up does not have to make good for more. */
const MAX_CATCH_UP_MS = 1_000;
/** With it a stanza is still one that every server takes. */
const MAX_PADDING = 100_000;

/** A pair whose turn it is to send one stanza. */
interface Turn {
  readonly from: LoadClient;
  readonly to: LoadClient;
  readonly full: Flow;
  readonly bare: Flow;
}

/** Everyone writes to everyone, at a fixed rate whatever comes back. */
export class Load implements AsyncDisposable {
  /** Clients that write to one another. */
  readonly clients: readonly LoadClient[];
  /** These, and further devices of their accounts. */
  readonly everyone: readonly LoadClient[];
  readonly ledger: Ledger;
  readonly side: SideLoad | undefined;
  readonly #turns: Turn[] = [];
  readonly #draw: FormDraw;
  readonly #isStored: boolean;
  #perSecond: number;
  #tick: ReturnType<typeof setInterval> | undefined;
  #asking: ReturnType<typeof setInterval> | undefined;
  #next = 0;
  #due = 0;
  #lastMs = 0;
  #startMs: number | undefined;
  #endMs: number | undefined;
  #swollen: ReadonlySet<LoadClient> = new Set();
  #padding = "";

  constructor(clients: readonly LoadClient[], ledger: Ledger, options: LoadOptions) {
    this.clients = clients;
    this.side = options.side;
    this.everyone = [...clients, ...options.side?.devices ?? []];
    this.ledger = ledger;
    this.#isStored = options.isStored ?? true;
    this.#perSecond = options.perSecond;
    this.#draw = new FormDraw(options.mix ?? DEFAULT_MIX);
    const silent = new Set(options.silent);
    // neighbours in the list of turns are different clients, so that a tick asks a little of many
    for (let step = 1; step < clients.length; step++) {
      for (const [index, from] of clients.entries()) {
        const to = clients[(index + step) % clients.length]!;
        if (silent.has(from)) continue;
        const full = ledger.open(from.jid, to.jid);
        this.#turns.push({ from, to, full, bare: ledger.open(from.jid, to.jid, bareOf(to.jid)) });
      }
    }
  }

  /** Logs everyone in. */
  async enter(): Promise<void> {
    await Promise.all(this.everyone.map((client) => client.start()));
    this.#asking = setInterval(() => {
      liveMs(); // it has to be looked at all the time
      for (const client of this.everyone) client.ask();
      this.side?.presence.look();
    }, ASK_MS);
  }

  /** Everyone writes once to everyone else, at this kind of address. */
  greet(address: "full" | "bare"): void {
    for (const turn of this.#turns) {
      turn.from.send(turn[address], "message", this.#formOf(turn, address === "bare"));
    }
    for (const client of this.clients) client.flush();
  }

  start(): void {
    this.#startMs = this.#lastMs = liveMs();
    this.#endMs = undefined;
    this.#tick = setInterval(() => this.#send(), TICK_MS);
  }

  /** Sends nothing more. */
  pause(): void {
    clearInterval(this.#tick);
    this.#tick = undefined;
    this.#endMs ??= liveMs();
  }

  /** Returns the number of stanzas that were due outside `windows`, sent or not. */
  asked(windows: readonly Span[]): number {
    if (this.#startMs === undefined) return 0;
    const span = { fromMs: this.#startMs, toMs: this.#endMs ?? liveMs() };
    return this.#perSecond * msOutside(span, windows) / 1000;
  }

  /** From now on what goes to `recipients` is so long that each is sent so many bytes a second. */
  swell(recipients: readonly LoadClient[], bytesPerSecond: number): void {
    this.#swollen = new Set(recipients);
    const perRecipient = this.#perSecond / this.clients.length;
    this.#padding = "x".repeat(Math.min(MAX_PADDING, Math.ceil(bytesPerSecond / perRecipient)));
  }

  /**
   * Resolves with true when every stanza has its fate, with false when that took too long.
   *
   * @param look reports fates that clients do not see. It is called again and again
   */
  async settle(withinMs: number, look?: () => Promise<void>): Promise<boolean> {
    using patience = new Patience(withinMs);
    while (this.ledger.unsettled() > 0) {
      if (patience.isOver) return false;
      await delay(look === undefined ? SETTLED_EVERY_MS : LOOK_EVERY_MS);
      await look?.();
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pause();
    clearInterval(this.#asking);
    await Promise.all(this.everyone.map((client) => client[Symbol.asyncDispose]()));
  }

  /**
   * A message to the full JID of somebody with several devices is no chat: that would go to the other
   * device while the JID is not connected (RFC 6121 §8.5.3.2.1), and say nothing of the main one.
   */
  #formOf({ to, full }: Turn, isBare: boolean): LoadStanzaOptions {
    return {
      padding: this.#swollen.has(to) ? this.#padding : "",
      type: !isBare && this.ledger.hasDevice(full.recipient) ? "normal" : "chat",
      isStored: this.#isStored,
    };
  }

  #send(): void {
    const nowMs = liveMs();
    const elapsedMs = Math.min(nowMs - this.#lastMs, MAX_CATCH_UP_MS);
    this.#lastMs = nowMs;
    this.#due += elapsedMs * this.#perSecond / 1000;
    for (; this.#due >= 1; this.#due--) {
      const turn = this.#turns[this.#next]!;
      this.#next = (this.#next + 1) % this.#turns.length;
      const { kind, isBare } = this.#draw.next();
      turn.from.send(isBare ? turn.bare : turn.full, kind, this.#formOf(turn, isBare));
    }
    this.side?.change(elapsedMs);
    for (const client of this.everyone) client.flush();
  }
}

function bareOf(jid: string): string {
  return jid.slice(0, jid.indexOf("/"));
}
