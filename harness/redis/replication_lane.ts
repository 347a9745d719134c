import { type RedisAddress, RedisClient } from "./redis_client.ts";
import type { Command } from "./dynomite_commands.ts";
import { RespError } from "./resp.ts";

interface Held {
  readonly dueMs: number;
  readonly command: Command;
}

const RETRY_MS = 50;

/**
 * Copies one datacenter's writes into another's Redis: in order, after the lag, and not while
 * parted. Held writes are delivered unchanged after healing. Their relative expiry starts then,
 * whatever happened to the key meanwhile: the last arrival wins.
 */
export class ReplicationLane implements AsyncDisposable {
  /** Milliseconds from a write here to its arrival there. Applies to writes from now on. */
  lagMs: number;
  readonly #address: () => RedisAddress;
  readonly #queue: Held[] = [];
  #client: RedisClient | undefined;
  #isParted = false;
  #isDelivering = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delivered = 0;

  /** `address` is asked at each connection, for a Redis that starts later than the lane. */
  constructor(address: () => RedisAddress, lagMs = 0) {
    this.#address = address;
    this.lagMs = lagMs;
  }

  /** Writes on their way. */
  get held(): number {
    return this.#queue.length;
  }

  /** Writes that have arrived, since the beginning. */
  get delivered(): number {
    return this.#delivered;
  }

  get isParted(): boolean {
    return this.#isParted;
  }

  push(command: Command): void {
    if (this.#isClosed) return;
    this.#queue.push({ dueMs: performance.now() + this.lagMs, command });
    this.#wake();
  }

  /** Holds everything until `heal`. */
  part(): void {
    this.#isParted = true;
  }

  heal(): void {
    this.#isParted = false;
    this.#wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#queue.length = 0;
    await this.#client?.[Symbol.asyncDispose]();
  }

  #wake(): void {
    const next = this.#queue[0];
    if (next === undefined || this.#isParted || this.#isDelivering || this.#isClosed) return;
    clearTimeout(this.#timer);
    const waitMs = next.dueMs - performance.now();
    if (waitMs > 0) this.#timer = setTimeout(() => this.#wake(), waitMs);
    // `#deliver` never rejects, and `#isDelivering` keeps it from running twice.
    else void this.#deliver();
  }

  async #deliver(): Promise<void> {
    this.#isDelivering = true;
    const nowMs = performance.now();
    const firstLater = this.#queue.findIndex((held) => held.dueMs > nowMs);
    const batch = this.#queue.slice(0, firstLater === -1 ? undefined : firstLater);
    this.#client ??= new RedisClient(this.#address());
    const client = this.#client;
    const outcomes = await Promise.allSettled(
      batch.map(({ command }) => client.callBinary(command)),
    );
    // An error reply (a wrong type, say) is an arrival too; a lost connection is none.
    const isLost = (outcome: PromiseSettledResult<unknown>) =>
      outcome.status === "rejected" && !(outcome.reason instanceof RespError);
    const firstLost = outcomes.findIndex(isLost);
    const arrived = firstLost === -1 ? batch.length : firstLost;
    this.#queue.splice(0, arrived);
    this.#delivered += arrived;
    this.#isDelivering = false;
    if (this.#isClosed) return;
    if (firstLost === -1) return this.#wake();
    this.#client = undefined;
    this.#timer = setTimeout(() => this.#wake(), RETRY_MS);
  }
}
