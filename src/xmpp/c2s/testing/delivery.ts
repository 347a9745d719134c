import type { Delivery } from "../../sm/delivery.ts";
import type { Stanza } from "../../stanza/stanza.ts";
import type { Fate } from "../../stanza/fate.ts";

/** A stanza on its way as routing would lend it, and a record of its fate. */
export class TestDelivery implements Delivery {
  readonly stanza: Stanza;
  /** True for errors that answer a stanza of the client's. */
  readonly isOwed: boolean;
  isRerouted = false;
  readonly #fate: Fate | undefined;
  readonly #number: number;
  #keepers = 0;
  #isTaken = false;
  #isSettled = false;

  constructor(stanza: Stanza, fate?: Fate, number = 0, isOwed = false) {
    this.stanza = stanza;
    this.isOwed = isOwed;
    this.#fate = fate;
    this.#number = number;
  }

  get isKept(): boolean {
    return this.#keepers > 0;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  retain(): void {
    this.#keepers++;
  }

  acknowledged(): void {
    this.#isTaken = true;
    if (--this.#keepers === 0) this.settle();
  }

  abandoned(): boolean {
    if (--this.#keepers > 0) return false;
    if (this.#isTaken) this.settle();
    return !this.#isTaken;
  }

  written(): void {
    this.#isTaken = true;
  }

  release(): boolean {
    const wasSettled = this.#isSettled;
    this.settle();
    return !wasSettled;
  }

  detach(): void {}

  settle(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#fate?.settle(this.#number);
  }
}
