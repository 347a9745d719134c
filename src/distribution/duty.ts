/** Told once, when the fate of a numbered stanza is final (docs/glossary.md, "settled"). */
export interface Settler {
  settle(number: number): void;
  /** Told before that, perhaps more than once, when another node has received the stanza. */
  held?(number: number): void;
  /** Told instead: this process ends without settling it, and whoever held it before sees to it. */
  leftOpen?(number: number): void;
  /** Told instead: it found nobody who has it for good, and stays with the one who is told, who keeps it. */
  stays?(number: number): void;
}

/** The duty to tell somebody, once, what became of a stanza. */
export class Duty {
  #settler: Settler | undefined;
  #number: number;

  constructor(settler?: Settler, number = 0) {
    this.#settler = settler;
    this.#number = number;
  }

  /** Who is told of the fate, under a number of their own; undefined when nobody is, or was already. */
  get settler(): Settler | undefined {
    return this.#settler;
  }

  /** Has somebody else told in their place, under the same number. */
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

  /** True when somebody wants to know that another node holds the stanza. */
  get wantsHeld(): boolean {
    return this.#settler?.held !== undefined;
  }

  /** Reports that another node holds the stanza: this process may die without losing it. */
  held(): void {
    this.#settler?.held?.(this.#number);
  }

  /** True when somebody before this process holds it too, and sees to it once this process is gone. */
  get isHeldBefore(): boolean {
    return this.#settler?.leftOpen !== undefined;
  }

  /** Gives up without a fate to report: whoever held it before sees to it once this process is gone. */
  leaveOpen(): void {
    const settler = this.#settler;
    this.#settler = undefined;
    settler?.leftOpen?.(this.#number);
  }

  /** True when somebody keeps the stanza whatever becomes of it here: nobody else need hold or answer it. */
  get hasKeeper(): boolean {
    return this.#settler?.stays !== undefined;
  }

  /** Leaves the stanza to the one who keeps it. */
  leaveToKeeper(): void {
    const settler = this.#settler;
    this.#settler = undefined;
    settler?.stays?.(this.#number);
  }

  /** Takes over what `other` had to tell, in whose place this one stands. */
  adoptDuty(other: Duty): void {
    this.#settler = other.#settler;
    this.#number = other.#number;
    other.#settler = undefined;
  }
}
