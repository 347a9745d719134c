/** Parts that fail in a row until a removal gives up: by then it is the database that fails. */
const MOST_FAILED = 50;

/**
 * A walk through the parts of archives that have old messages, over many calls of
 * `ArchiveStore.removeBefore`. A part that fails is left behind, so that parts that always fail hold up
 * no others. The walk begins anew once it has come to its end.
 */
export class RemovalRound<P> {
  #behind: P | undefined;
  #failure: { readonly thrown: unknown } | undefined;
  #inARow = 0;

  /** The last part that failed. The walk goes on behind it; undefined: at its beginning. */
  get behind(): P | undefined {
    return this.#behind;
  }

  /** True when so many parts have failed in a row that this call has to end. */
  get isGivenUp(): boolean {
    return this.#inARow >= MOST_FAILED;
  }

  succeeded(): void {
    this.#inARow = 0;
  }

  failed(part: P, thrown: unknown): void {
    this.#behind = part;
    this.#failure ??= { thrown };
    this.#inARow++;
  }

  /**
   * Ends a call and returns its result. The first failure is thrown by a call that has removed nothing.
   *
   * @param isEnd true when nothing is behind `behind`
   */
  end(removed: number, { isEnd }: { readonly isEnd: boolean }): number {
    const isOver = isEnd || this.isGivenUp;
    this.#inARow = 0;
    if (removed > 0 || !isOver) return removed;
    if (isEnd) this.#behind = undefined;
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.thrown;
    return 0;
  }
}

/** The walks of a store, by host; undefined stands for all hosts together. */
export class RemovalRounds<P> {
  readonly #rounds = new Map<string | undefined, RemovalRound<P>>();

  of(host: string | undefined): RemovalRound<P> {
    let round = this.#rounds.get(host);
    if (round === undefined) {
      round = new RemovalRound();
      this.#rounds.set(host, round);
    }
    return round;
  }
}
