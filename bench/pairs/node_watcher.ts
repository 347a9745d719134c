/** Milliseconds between two scrapes of a node. */
const SCRAPE_EACH_MS = 5_000;

/** An operator of a cluster: the live events of each node's dashboard, and scrapes of its metrics. */
export class NodeWatcher implements AsyncDisposable {
  readonly #abort = new AbortController();
  readonly #tasks: Promise<void>[];
  #failure: Error | undefined;

  /** @param admins URLs of the nodes' admin ports */
  constructor(admins: readonly string[]) {
    this.#tasks = admins.flatMap((admin) => [
      this.#run(() => this.#drain(new URL("api/v1/events", admin))),
      this.#run(() => this.#scrape(new URL("metrics", admin))),
    ]);
  }

  /** Why it watches no longer. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await Promise.all(this.#tasks);
  }

  async #run(task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (thrown) {
      if (!this.#abort.signal.aborted) this.#failure ??= thrown as Error; // fetch throws errors only
    }
  }

  async #scrape(url: URL): Promise<void> {
    const { signal } = this.#abort;
    for (;;) {
      await this.#drain(url);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, SCRAPE_EACH_MS);
        signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
      });
      signal.throwIfAborted();
    }
  }

  /** Reads an answer to its end, which events do not have. */
  async #drain(url: URL): Promise<void> {
    const response = await fetch(url, { signal: this.#abort.signal });
    if (!response.ok) throw new Error(`Cannot watch ${url}: it answers ${response.status}`);
    await response.body?.pipeTo(new WritableStream());
  }
}
