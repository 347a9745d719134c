import assert from "node:assert/strict";
import { CausewayError } from "../../../base/mod.ts";
import type { Connection } from "../../../net/mod.ts";

const PATIENCE_MS = 60_000;

/** The other end of a stream, played by a test that writes and expects text. */
export class RawPeer {
  readonly connection: Connection;
  #unread = "";
  #isClosed = false;
  #wake: () => void = () => {};
  readonly #decoder = new TextDecoder();

  constructor(connection: Connection) {
    this.connection = connection;
    connection.start({
      data: (chunk) => {
        this.#unread += this.#decoder.decode(chunk, { stream: true });
        this.#wake();
      },
      closed: () => {
        this.#isClosed = true;
        this.#wake();
      },
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Text that came in and was not yet expected. */
  get unread(): string {
    return this.#unread;
  }

  send(text: string): void {
    this.connection.send(new TextEncoder().encode(text));
  }

  /** Waits for a text or pattern, reads everything up to its end, and returns the match. */
  async expect(pattern: string | RegExp): Promise<RegExpExecArray> {
    const regex = typeof pattern === "string" ? new RegExp(RegExp.escape(pattern)) : pattern;
    const match = await this.#until(() => regex.exec(this.#unread), `to read ${pattern}`);
    this.#unread = this.#unread.slice(match.index + match[0].length);
    return match;
  }

  /** Waits as `expect` does, and checks that nothing came before the match. */
  async expectNext(pattern: string | RegExp): Promise<RegExpExecArray> {
    const match = await this.#until(() => {
      const source = typeof pattern === "string" ? RegExp.escape(pattern) : pattern.source;
      return new RegExp(source).exec(this.#unread);
    }, `to read ${pattern}`);
    assert.equal(this.#unread.slice(0, match.index), "", "something was read before it");
    this.#unread = this.#unread.slice(match[0].length);
    return match;
  }

  /** Waits until the connection is closed, and returns the unexpected text. */
  async expectClosed(): Promise<string> {
    await this.#until(() => this.#isClosed || undefined, "the connection to be closed");
    return this.#unread;
  }

  /** Sends `text`, and checks that `answer` is the next thing that comes. */
  async exchange(text: string, answer: string | RegExp): Promise<RegExpExecArray> {
    this.send(text);
    return await this.expectNext(answer);
  }

  close(): void {
    this.connection.close();
  }

  /** Ends at once, like a client whose network is gone. */
  cut(): void {
    this.connection.destroy(new CausewayError("test/cut", "The test cuts the connection"));
  }

  async #until<T>(look: () => T | undefined | null, what: string): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        const found = look();
        if (found !== undefined && found !== null) return found;
        if (this.#isClosed) assert.fail(`Closed while waiting ${what}; unread: ${this.#unread}`);
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        this.#wake = resolve;
        timer ??= setTimeout(() => {
          reject(new Error(`Waited ${PATIENCE_MS} ms ${what}; unread: ${this.#unread}`));
        }, PATIENCE_MS);
        await promise;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
