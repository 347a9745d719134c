/** Where a session went. */
interface Passed {
  readonly account: string;
  readonly process: number;
}

/** Where the sessions are that went to other nodes, by their ids; of the last `maxEntries`. */
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

  /** It is here again. */
  delete(id: string): void {
    this.#byId.delete(id);
  }

  /** Incarnation of the process that has the session, for the account whose session it is. */
  get(id: string, account: string): number | undefined {
    const passed = this.#byId.get(id);
    return passed?.account === account ? passed.process : undefined;
  }
}
