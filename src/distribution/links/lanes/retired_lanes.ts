/** Lanes whose stanzas moved to another lane, until the peer has heard that they end. */
export class RetiredLanes {
  /** By lane: the number before which the peer must learn that the lane ends. */
  readonly #before = new Map<number, number>();
  #untold: number[] = [];

  /** True when the peer has heard of all that it must learn. */
  get isEmpty(): boolean {
    return this.#before.size === 0;
  }

  /** Notes that the peer must learn that `lane` ends, before it gets stanza `before`. */
  add(lane: number, before: number): void {
    this.#before.set(lane, before);
    this.#untold.push(lane);
  }

  /** Forgets a lane that has a new connection: the peer need not end the old one. */
  forget(lane: number): void {
    if (!this.#before.delete(lane)) return;
    this.#untold = this.#untold.filter((untold) => untold !== lane);
  }

  /** Takes all lanes whose end the peer may not have heard of yet. */
  takeAll(): readonly number[] {
    const lanes = [...this.#before.keys()];
    this.clear();
    return lanes;
  }

  /** Takes the lanes to tell of now: each once on every connection until the peer has heard. */
  takeUntold(): readonly number[] {
    const untold = this.#untold;
    if (untold.length > 0) this.#untold = [];
    return untold;
  }

  /** Begins on a new connection: the peer is told of all again. */
  tellAgain(): void {
    this.#untold = [...this.#before.keys()];
  }

  /** Notes that the peer has received all stanzas up to `number`, and has heard what came before. */
  received(number: number): void {
    for (const [lane, before] of this.#before) if (before <= number) this.#before.delete(lane);
  }

  clear(): void {
    this.#before.clear();
    this.#untold = [];
  }
}
