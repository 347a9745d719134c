import { RawClient } from "../../harness/clients/mod.ts";
import type { PairPlan } from "./load_protocol.ts";
import { MessageBatch } from "./message_batch.ts";
import { StampScanner } from "./stamp_scanner.ts";

export interface PairOptions {
  readonly inFlight: number;
  readonly messageBytes: number;
  /** Told of each message that arrives, with its stamp. */
  readonly arrived: (pair: Pair, stamp: number) => void;
  /** Microseconds on the clock that stamps are taken from. */
  readonly nowUs: () => number;
}

const SHOWN_CHARS = 600;

/**
 * One sender with its recipient. What is due is written in one piece as soon as the write before it
 * is done, so that a busy sender needs few writes and an idle one waits for nothing.
 */
export class Pair implements AsyncDisposable {
  readonly #sender: RawClient;
  readonly #recipient: RawClient;
  readonly #batch: MessageBatch;
  readonly #options: PairOptions;
  readonly #reading: Promise<unknown>;
  #writing: Promise<void> | undefined;
  #due = 0;
  #sent = 0;
  #received = 0;
  #lastStamp = 0;
  #failure: Error | undefined;

  private constructor(sender: RawClient, recipient: RawClient, options: PairOptions) {
    this.#sender = sender;
    this.#recipient = recipient;
    this.#options = options;
    this.#batch = new MessageBatch(recipient.jid, {
      capacity: options.inFlight,
      messageBytes: options.messageBytes,
    });
    this.#reading = Promise.all([this.#receive(), this.#watchSender()]);
  }

  /** Logs both in; the recipient sends initial presence, as a client that reads messages does. */
  static async login(plan: PairPlan, options: PairOptions): Promise<Pair> {
    const recipient = await RawClient.login(plan.recipient);
    await recipient.send("<presence/>");
    // Its own presence comes back (RFC 6121 §4.2.2) when the server has taken it.
    await recipient.socket.readUntil("<presence");
    await recipient.socket.readUntil(">");
    const sender = await RawClient.login(plan.sender);
    return new Pair(sender, recipient, options);
  }

  /** Messages sent and not yet received. */
  get outstanding(): number {
    return this.#sent + this.#due - this.#received;
  }

  /** Why this pair can go on no longer. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Sends `count` more messages, with those that are due already. */
  send(count: number): void {
    this.#due += count;
    this.#writing ??= this.#write();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([
      this.#sender[Symbol.asyncDispose](),
      this.#recipient[Symbol.asyncDispose](),
    ]);
    await Promise.all([this.#reading, this.#writing]);
  }

  async #write(): Promise<void> {
    try {
      await undefined; // lets the chunk in hand be read to its end: its receipts make one write
      while (this.#due > 0) {
        const count = Math.min(this.#due, this.#batch.capacity);
        const bytes = this.#batch.stamped(count, this.#sent, this.#options.nowUs());
        this.#due -= count;
        this.#sent += count;
        await this.#sender.send(bytes);
      }
    } catch (thrown) {
      this.#fail(`The sender cannot write: ${thrown}`);
    }
    this.#writing = undefined;
  }

  async #receive(): Promise<void> {
    const scanner = new StampScanner((stamp) => {
      if (stamp < this.#lastStamp) this.#fail("Messages arrived out of order");
      this.#lastStamp = stamp;
      this.#received++;
      this.#options.arrived(this, stamp);
    });
    await this.#recipient.socket.consume((chunk) => scanner.push(chunk));
    this.#fail("The server has closed the recipient's connection");
  }

  /** Nothing is written to the senders: what arrives there is an error for one of their messages. */
  async #watchSender(): Promise<void> {
    const decoder = new TextDecoder();
    await this.#sender.socket.consume((chunk) => {
      const text = decoder.decode(chunk, { stream: true }).slice(0, SHOWN_CHARS);
      this.#fail(`A message came back to its sender: ${text}`);
    });
    this.#fail("The server has closed the sender's connection");
  }

  #fail(reason: string): void {
    this.#failure ??= new Error(reason);
  }
}
