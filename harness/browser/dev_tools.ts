/** An event of the browser's, from the page that `sessionId` is for. */
export interface DevToolsEvent {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionId?: string;
}

interface Pending {
  readonly method: string;
  readonly resolve: (result: Readonly<Record<string, unknown>>) => void;
  readonly reject: (error: Error) => void;
}

/** A connection to a browser by the Chrome DevTools Protocol: commands, answers and events as JSON. */
export class DevTools {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, Pending>();
  readonly #watchers = new Set<(event: DevToolsEvent) => void>();
  readonly #closed = Promise.withResolvers<void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    socket.onclose = () => {
      for (const { method, reject } of this.#pending.values()) {
        reject(new Error(`Cannot finish ${method}: the browser has closed the connection`));
      }
      this.#pending.clear();
      this.#closed.resolve();
    };
  }

  /** @param url as the browser itself names it, `ws://127.0.0.1:…/devtools/browser/…` */
  static async connect(url: string): Promise<DevTools> {
    const socket = new WebSocket(url);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error(`Cannot connect to the browser at ${url}`));
    await promise;
    return new DevTools(socket);
  }

  /** Gives a command, to the browser or to one of its pages. @throws what the browser says against it */
  send(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    sessionId?: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    this.#pending.set(id, { method, resolve, reject });
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return promise;
  }

  /** Calls `watcher` with every event until the returned function is called. */
  watch(watcher: (event: DevToolsEvent) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#closed.promise;
  }

  #take(message: DevToolsEvent | DevToolsAnswer): void {
    if (!("id" in message)) {
      for (const watcher of this.#watchers) watcher(message);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return; // nobody waits any more
    this.#pending.delete(message.id);
    if (message.error === undefined) pending.resolve(message.result ?? {});
    else pending.reject(new Error(`Cannot do ${pending.method}: ${message.error.message}`));
  }
}

interface DevToolsAnswer {
  readonly id: number;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}
