/**
 * Callbacks on the fate of one numbered stanza; `settle` runs once, when it is final
 * (docs/glossary.md, "settled").
 */
export interface Settler {
  settle(number: number): void;
  /** Called before that, perhaps more than once, when another node has received the stanza. */
  held?(number: number): void;
  /**
   * Called instead: this process ends without settling it, and the node that held it before routes
   * it.
   */
  leftOpen?(number: number): void;
  /**
   * Called instead: no session here has it for good, and the settler, which keeps it, stays
   * responsible.
   */
  stays?(number: number): void;
}

/** The duty to report the fate of a stanza once. */
export class Duty {
  #settler: Settler | undefined;
  #number: number;

  constructor(settler?: Settler, number = 0) {
    this.#settler = settler;
    this.#number = number;
  }

  /**
   * Settler that is called under its own number; undefined when there is none, or it was called
   * already.
   */
  get settler(): Settler | undefined {
    return this.#settler;
  }

  /** Replaces the settler, under the same number. */
  set settler(settler: Settler | undefined) {
    this.#settler = settler;
  }

  /** Reports that the fate is final. Only the first call counts. */
  settle(): void {
    const settler = this.#settler;
    if (settler === undefined) return;
    this.#settler = undefined;
    settler.settle(this.#number);
  }

  /** True when the settler wants to know that another node holds the stanza. */
  get wantsHeld(): boolean {
    return this.#settler?.held !== undefined;
  }

  /** Reports that another node holds the stanza: this process may die without losing it. */
  held(): void {
    this.#settler?.held?.(this.#number);
  }

  /** True when a node before this one holds it too, and routes it once this process is gone. */
  get isHeldBefore(): boolean {
    return this.#settler?.leftOpen !== undefined;
  }

  /**
   * Ends the duty without a fate: the node that held the stanza before routes it once this one is
   * gone.
   */
  leaveOpen(): void {
    const settler = this.#settler;
    this.#settler = undefined;
    settler?.leftOpen?.(this.#number);
  }

  /**
   * True when a keeper keeps the stanza whatever becomes of it here: no other copy or answer is
   * needed.
   */
  get hasKeeper(): boolean {
    return this.#settler?.stays !== undefined;
  }

  /** Leaves the stanza to its keeper. */
  leaveToKeeper(): void {
    const settler = this.#settler;
    this.#settler = undefined;
    settler?.stays?.(this.#number);
  }

  /** Takes over the duty of `other`, in whose place this one stands. */
  adoptDuty(other: Duty): void {
    this.#settler = other.#settler;
    this.#number = other.#number;
    other.#settler = undefined;
  }
}
