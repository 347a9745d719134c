import type { Fate } from "../../../xmpp/mod.ts";
import type { Ack, SettledRange, Slow } from "../../wire/mod.ts";
import { MAX_ACK_RANGES } from "../../wire/mod.ts";
import { OpenNumbers } from "./open_numbers.ts";

/** Result of receiving a numbered frame. */
export type Receipt = "new" | "repeat" | "gap" | "overload";

/**
 * One lane of one peer process, as this process knows it: the last number received, and which
 * numbers are settled. It outlives its connections.
 */
export class InboundLane implements Fate {
  /** The peer's incarnation and its number for the lane. */
  readonly process: number;
  readonly lane: number;
  /** The peer's local host, as its certificate named it. */
  readonly host: string;
  readonly #maxUnsettled: number;
  readonly #numbers: OpenNumbers;
  /** Numbers that this process will never settle, as it has left them open. */
  readonly #leftOpen = new Set<number>();
  /** Numbers of stanzas whose senders the peer is to slow down, each with the number of wishes for it. */
  readonly #slow = new Map<number, number>();
  /** Numbers of which the peer is to hear so, and those of which that is over. */
  readonly #slowNews = new Map<number, boolean>();
  #isDirty = false;
  #wake: ((isUrgent: boolean) => void) | undefined;

  constructor(
    process: number,
    lane: number,
    options: { readonly host: string; readonly lastGone: number; readonly maxUnsettled: number },
  ) {
    this.process = process;
    this.lane = lane;
    this.host = options.host;
    this.#maxUnsettled = options.maxUnsettled;
    this.#numbers = new OpenNumbers(options.lastGone);
  }

  /** The last number received; all before it were too. */
  get received(): number {
    return this.#numbers.received;
  }

  /** Stanzas received whose fate is open. */
  get unsettled(): number {
    return this.#numbers.count;
  }

  /** True when an ACK would bring the peer news. */
  get isDirty(): boolean {
    return this.#isDirty;
  }

  /**
   * Begins on a new connection on which the peer sends no number up to `lastGone`.
   * @param wake called when there is something to acknowledge, or, urgent, a sender to slow
   */
  attach(lastGone: number, wake: (isUrgent: boolean) => void): void {
    this.#numbers.skipTo(lastGone);
    this.#numbers.renew();
    this.#slowNews.clear();
    for (const number of this.#slow.keys()) this.#slowNews.set(number, false);
    this.#isDirty = true;
    this.#wake = wake;
  }

  detach(): void {
    this.#wake = undefined;
    this.#slowNews.clear();
  }

  /** Notes one number before its stanza is passed on. */
  receive(number: number): Receipt {
    if (number <= this.received) return "repeat";
    if (number !== this.received + 1) return "gap";
    if (this.unsettled >= this.#maxUnsettled) return "overload";
    this.#numbers.receive();
    this.#touch();
    return "new";
  }

  settle(number: number): void {
    this.#numbers.settle(number);
    this.#touch();
  }

  leftOpen(number: number): void {
    this.#leftOpen.add(number);
  }

  /**
   * Makes the peer slow down the sender of a stanza until the returned function is called. Copies of one
   * stanza may each wish so: it is over with the last of them.
   */
  slow(number: number): () => void {
    const wishes = (this.#slow.get(number) ?? 0) + 1;
    this.#slow.set(number, wishes);
    if (wishes === 1) this.#tellOfSlow(number, false);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const left = this.#slow.get(number)! - 1;
      if (left > 0) return void this.#slow.set(number, left);
      this.#slow.delete(number);
      this.#tellOfSlow(number, true);
    };
  }

  #tellOfSlow(number: number, isOver: boolean): void {
    if (this.#wake === undefined) return; // the peer hears of what goes on when it comes back
    // It need not hear of what is over, or goes on again, before it has heard the opposite.
    if (this.#slowNews.get(number) === !isOver) this.#slowNews.delete(number);
    else this.#slowNews.set(number, isOver);
    if (isOver) return this.#touch();
    this.#isDirty = true;
    this.#wake(true);
  }

  /** Returns what the peer is to hear of its senders, before the next ACK. */
  takeSlowNews(): Slow[] {
    const news = Array.from(this.#slowNews, ([number, isOver]) => ({ number, isOver }));
    this.#slowNews.clear();
    return news;
  }

  /** True when nothing up to `number` is still to be settled by this process. */
  isDoneUpTo(number: number): boolean {
    for (const open of this.#numbers.all()) {
      if (open > number) return true;
      if (!this.#leftOpen.has(open)) return false;
    }
    return true;
  }

  /** Returns the ACKs for the peer: one, or several when there are many ranges. */
  takeAcks(creditBytes: number): Ack[] {
    this.#isDirty = false;
    const ranges = this.#numbers.takeNews();
    const acks: Ack[] = [];
    do {
      acks.push(this.#ack(creditBytes, ranges.splice(0, MAX_ACK_RANGES)));
    } while (ranges.length > 0);
    return acks;
  }

  #ack(creditBytes: number, ranges: readonly SettledRange[]): Ack {
    const { received, upTo } = this.#numbers;
    return { received, settled: upTo, creditBytes, ranges };
  }

  #touch(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#wake?.(false);
  }
}
