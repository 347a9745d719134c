import assert from "node:assert/strict";
import type { CausewayError } from "../../../base/mod.ts";
import type { MessageConnection, MessageConnectionEvents } from "../../../net/mod.ts";

const UTF8 = new TextEncoder();

/** A WebSocket without a socket, and the client at its other end, whom a test plays. */
export class MemoryWebSocket implements MessageConnection {
  readonly remoteAddress = "127.0.0.1:10001";
  readonly isLoopback: boolean;
  readonly isEncrypted: boolean;
  pendingBytes = 0;
  unwrittenSends = 0;
  pings = 0;
  isPaused = false;
  /** Close code, or code of the reason, with which it was closed. */
  closedFor: number | string | undefined;
  readonly #unread: string[] = [];
  #events: MessageConnectionEvents | undefined;
  #wake: () => void = () => {};

  constructor(options: { readonly isEncrypted?: boolean; readonly isLoopback?: boolean } = {}) {
    this.isEncrypted = options.isEncrypted ?? true;
    this.isLoopback = options.isLoopback ?? true;
  }

  start(events: MessageConnectionEvents): void {
    this.#events = events;
  }

  send(bytes: Uint8Array): void {
    if (this.closedFor !== undefined) return;
    this.#unread.push(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    this.#wake();
  }

  ping(): void {
    this.pings++;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  close(code: number): void {
    this.#close(code, undefined);
  }

  destroy(reason: CausewayError): void {
    this.#close(reason.code, reason);
  }

  /** Sends a message as the client. It arrives even while paused, as if from one chunk. */
  say(message: string | Uint8Array): void {
    if (this.closedFor !== undefined) return;
    const bytes = typeof message === "string" ? UTF8.encode(message) : message;
    this.#events!.received!(bytes.length + 6);
    if (this.closedFor === undefined) this.#events!.message(bytes);
  }

  /** Brings in bytes of an unfinished message. */
  dribble(byteLength: number): void {
    this.#events!.received!(byteLength);
  }

  /** Ends the connection. */
  lose(error: CausewayError | undefined): void {
    this.#close("lost", error);
  }

  /** Returns the next message that the client gets. */
  async next(): Promise<string> {
    while (this.#unread.length === 0) {
      if (this.closedFor !== undefined) assert.fail(`Closed for ${this.closedFor}`);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = setTimeout(() => reject(new Error("Waited 60 s for a message")), 60_000);
      await promise.finally(() => clearTimeout(timer));
    }
    return this.#unread.shift()!;
  }

  /** Checks the next message and returns the match. */
  async expect(pattern: RegExp | string): Promise<RegExpExecArray> {
    const message = await this.next();
    const match =
      (typeof pattern === "string" ? new RegExp(`^${RegExp.escape(pattern)}$`) : pattern).exec(
        message,
      );
    assert(match !== null, `expected ${pattern}, got ${message}`);
    return match;
  }

  /** Messages that the client got and the test has not read. */
  get unread(): readonly string[] {
    return this.#unread;
  }

  #close(why: number | string, error: CausewayError | undefined): void {
    if (this.closedFor !== undefined) return;
    this.closedFor = why;
    queueMicrotask(() => {
      this.#events?.closed(error);
      this.#wake();
    });
  }
}
