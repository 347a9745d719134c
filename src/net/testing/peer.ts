import type { CausewayError } from "../../base/mod.ts";
import type { Connection, ConnectionEvents } from "../connection.ts";

/** Records the callbacks of a connection and lets a test wait for them. */
export class TestPeer implements ConnectionEvents {
  readonly connection: Connection;
  readonly chunks: Uint8Array[] = [];
  drainedCount = 0;
  securedCount = 0;
  closedCount = 0;
  error: CausewayError | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(connection: Connection) {
    this.connection = connection;
    connection.start(this);
  }

  get text(): string {
    return new TextDecoder().decode(Uint8Array.from(this.chunks.flatMap((chunk) => [...chunk])));
  }

  get receivedBytes(): number {
    return this.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  get isClosed(): boolean {
    return this.closedCount > 0;
  }

  send(text: string): void {
    this.connection.send(new TextEncoder().encode(text));
  }

  data(chunk: Uint8Array): void {
    this.chunks.push(chunk.slice());
    this.#changed();
  }

  drained(): void {
    this.drainedCount++;
    this.#changed();
  }

  secured(): void {
    this.securedCount++;
    this.#changed();
  }

  closed(error: CausewayError | undefined): void {
    this.closedCount++;
    this.error = error;
    this.#changed();
  }

  /** Resolves once `condition` holds; checked at every callback of the connection. */
  async until(condition: (peer: this) => boolean): Promise<void> {
    while (!condition(this)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      await promise;
    }
  }

  #changed(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
