import type { CausewayError } from "../../base/mod.ts";
import type { Connection } from "../connection.ts";
import { listen } from "../listener.ts";
import type { Listener, ListenOptions } from "../listener_options.ts";
import { TestPeer } from "./peer.ts";

/** A peer that a listener turned away. */
export interface Refusal {
  readonly error: CausewayError;
  readonly remoteAddress: string;
}

/** A listener whose connections and refusals a test can await one by one. */
export class TestListener implements AsyncDisposable {
  readonly #accepted: Connection[] = [];
  readonly #refused: Refusal[] = [];
  #changed = Promise.withResolvers<void>();
  listener!: Listener;

  static async open(options: Partial<ListenOptions> = {}): Promise<TestListener> {
    const self = new TestListener();
    self.listener = await listen({ host: "127.0.0.1", port: 0, ...options }, {
      accepted: (connection) => {
        self.#accepted.push(connection);
        self.#tell();
      },
      refused: (error, remoteAddress) => {
        self.#refused.push({ error, remoteAddress });
        self.#tell();
      },
    });
    return self;
  }

  get port(): number {
    return this.listener.port;
  }

  async accepted(): Promise<TestPeer> {
    return new TestPeer(await this.#next(this.#accepted));
  }

  async refused(): Promise<Refusal> {
    return await this.#next(this.#refused);
  }

  get acceptedWaiting(): number {
    return this.#accepted.length;
  }

  async #next<T>(queue: T[]): Promise<T> {
    for (;;) {
      const item = queue.shift();
      if (item !== undefined) return item;
      await this.#changed.promise;
    }
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close();
  }
}

/** Closes one end of a connection, and waits until both are closed. */
export async function closeBoth(one: TestPeer, other: TestPeer): Promise<void> {
  one.connection.close();
  await Promise.all([one.until((peer) => peer.isClosed), other.until((peer) => peer.isClosed)]);
}
