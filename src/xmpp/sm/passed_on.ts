/** Destination of a session that moved. */
interface Passed {
  readonly account: string;
  readonly process: number;
}

/** Processes that the last `maxEntries` moved sessions went to, by session id. */
export class PassedOn {
  readonly #maxEntries: number;
  readonly #byId = new Map<string, Passed>();

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  add(id: string, account: string, process: number): void {
    this.#byId.delete(id);
    this.#byId.set(id, { account, process });
    for (const oldest of this.#byId.keys()) {
      if (this.#byId.size <= this.#maxEntries) return;
      this.#byId.delete(oldest);
    }
  }

  /** Forgets a session, because it is here again. */
  delete(id: string): void {
    this.#byId.delete(id);
  }

  /** Returns the incarnation of the process that has the session, if the session belongs to `account`. */
  get(id: string, account: string): number | undefined {
    const passed = this.#byId.get(id);
    return passed?.account === account ? passed.process : undefined;
  }
}
