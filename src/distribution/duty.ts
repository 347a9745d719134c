import type { Fate } from "../xmpp/mod.ts";
import type { StanzaTrace } from "./stanza_trace.ts";

/** The duty to report the fate of a stanza once. */
export class Duty {
  /** Notes the way of the stanza through this node; undefined while nobody follows it. */
  trace: StanzaTrace | undefined;
  #fate: Fate | undefined;
  #number: number;

  constructor(fate?: Fate, number = 0) {
    this.#fate = fate;
    this.#number = number;
  }

  /** Number under which the receiver is called. */
  get number(): number {
    return this.#number;
  }

  /**
   * Receiver that is called under its own number; undefined when there is none, or it was called
   * already.
   */
  get fate(): Fate | undefined {
    return this.#fate;
  }

  /** Replaces the receiver, under the same number. */
  set fate(fate: Fate | undefined) {
    this.#fate = fate;
  }

  /** Reports that the fate is final. Only the first call counts. */
  settle(): void {
    if (this.trace !== undefined) this.#noteSettled(this.trace);
    const fate = this.#fate;
    if (fate === undefined) return;
    this.#fate = undefined;
    fate.settle(this.#number);
  }

  /** Notes the end once, whoever else is told. */
  #noteSettled(trace: StanzaTrace): void {
    this.trace = undefined;
    trace.settled();
  }

  /** True when the receiver wants to know that another node holds the stanza. */
  get wantsHeld(): boolean {
    return this.#fate?.held !== undefined;
  }

  /** Reports that another node holds the stanza: this process may die without losing it. */
  held(): void {
    this.#fate?.held?.(this.#number);
  }

  /** True when a node before this one holds it too, and routes it once this process is gone. */
  get isHeldBefore(): boolean {
    return this.#fate?.leftOpen !== undefined;
  }

  /**
   * Ends the duty without a fate: the node that held the stanza before routes it once this one is
   * gone.
   */
  leaveOpen(): void {
    const fate = this.#fate;
    this.#fate = undefined;
    fate?.leftOpen?.(this.#number);
  }

  /**
   * True when a keeper keeps the stanza whatever becomes of it here: no other copy or answer is
   * needed.
   */
  get hasKeeper(): boolean {
    return this.#fate?.stays !== undefined;
  }

  /** Leaves the stanza to its keeper. */
  leaveToKeeper(): void {
    const fate = this.#fate;
    this.#fate = undefined;
    fate?.stays?.(this.#number);
  }

  /**
   * Slows the sender down at the node where the stanza entered.
   * @returns a function that ends it; undefined when the stanza has come from no other node
   */
  slowSender(): (() => void) | undefined {
    return this.#fate?.slow?.(this.#number);
  }

  /** Takes over the duty of `other`, in whose place this one stands. */
  adoptDuty(other: Duty): void {
    this.#fate = other.#fate;
    this.#number = other.#number;
    other.#fate = undefined;
  }
}
