interface Waiting<Value> {
  readonly key: string;
  readonly found: PromiseWithResolvers<Value | undefined>;
}

/**
 * Looks keys up, many with one question. While one question is under way, further keys gather for
 * the next one: a single key is asked for at once, and very many at once cost few questions.
 */
export class GatheredLookup<Value> {
  readonly #ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>;
  readonly #keysAtOnce: number;
  readonly #waiting: Waiting<Value>[] = [];
  #isAsking = false;

  /** @param ask gets each key once, and at most `keysAtOnce` keys */
  constructor(
    ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
    keysAtOnce: number,
  ) {
    this.#ask = ask;
    this.#keysAtOnce = keysAtOnce;
  }

  /** Returns what the question has found for the key. Rejects as the question does. */
  find(key: string): Promise<Value | undefined> {
    const found = Promise.withResolvers<Value | undefined>();
    this.#waiting.push({ key, found });
    if (!this.#isAsking) void this.#askAll(); // never rejects
    return found.promise;
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, this.#keysAtOnce);
      try {
        const values = await this.#ask([...new Set(some.map(({ key }) => key))]);
        for (const { key, found } of some) found.resolve(values.get(key));
      } catch (thrown) {
        for (const { found } of some) found.reject(thrown);
      }
    }
    this.#isAsking = false;
  }
}
