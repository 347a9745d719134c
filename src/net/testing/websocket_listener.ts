import type { CausewayError } from "../../base/mod.ts";
import { upgradeRequest } from "./http_peer.ts";
import type { Listener } from "../listener_options.ts";
import type { MessageConnection, MessageConnectionEvents } from "../message_connection.ts";
import type { WebSocketListenOptions } from "../websocket_listener.ts";
import { listenWebSocket } from "../websocket_listener.ts";

/** The server's record of one WebSocket. */
export class ServedWebSocket implements MessageConnectionEvents {
  readonly connection: MessageConnection;
  readonly messages: string[] = [];
  receivedBytes = 0;
  drainedCount = 0;
  closedCount = 0;
  error: CausewayError | undefined;
  readonly #tell: () => void;

  constructor(connection: MessageConnection, tell: () => void) {
    this.connection = connection;
    this.#tell = tell;
    connection.start(this);
  }

  send(text: string): void {
    this.connection.send(new TextEncoder().encode(text));
  }

  received(byteLength: number): void {
    this.receivedBytes += byteLength;
    this.#tell();
  }

  message(bytes: Uint8Array): void {
    this.messages.push(new TextDecoder().decode(bytes));
    this.#tell();
  }

  drained(): void {
    this.drainedCount++;
    this.#tell();
  }

  closed(error: CausewayError | undefined): void {
    this.closedCount++;
    this.error = error;
    this.#tell();
  }
}

/** A port for WebSockets whose connections and refusals a test can wait for. */
export class TestWebSocketListener implements AsyncDisposable {
  readonly served: ServedWebSocket[] = [];
  readonly refusals: string[] = [];
  listener!: Listener;
  readonly #waiting = new Set<() => void>();

  static async open(
    options: Partial<WebSocketListenOptions> = {},
  ): Promise<TestWebSocketListener> {
    const self = new TestWebSocketListener();
    const tell = () => self.#tell();
    self.listener = await listenWebSocket(
      { host: "127.0.0.1", port: 0, path: "/xmpp-websocket", subprotocol: "xmpp", ...options },
      {
        accepted: (connection) => {
          self.served.push(new ServedWebSocket(connection, tell));
          tell();
        },
        refused: (error) => {
          self.refusals.push(error.code);
          tell();
        },
        page: (path, host) =>
          path === "/page" ? { contentType: "text/x-test", body: `ü ${host}` } : undefined,
      },
    );
    return self;
  }

  get port(): number {
    return this.listener.port;
  }

  /** Resolves once `condition` holds; checked whenever something happens. */
  async until<T>(condition: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = condition();
      if (found !== undefined && found !== false) return found;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      await promise;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close();
    for (const { connection } of this.served) connection.close(1001);
    await this.until(() => this.served.every(({ closedCount }) => closedCount > 0));
    while (this.listener.connectionCount > 0) await new Promise((done) => setImmediate(done));
  }

  #tell(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

export const UPGRADE = upgradeRequest("/xmpp-websocket", "xmpp");
