import type { CancelTimer, Clock } from "../../../../base/mod.ts";
import { CausewayError } from "../../../../base/mod.ts";
import { assertTaken } from "./dynomite_forms.ts";
import type { RedisCommand, RedisCommands, RedisEvents, RedisReply } from "../redis_commands.ts";
import { RedisErrorReply } from "../redis_commands.ts";

type Value = string | Map<string, string> | Set<string>;

interface Entry {
  readonly value: Value;
  untilMs: number;
}

const WRONG_TYPE = new RedisErrorReply(
  "WRONGTYPE Operation against a key holding the wrong kind of value",
);

/** Redis in memory, with the commands that the session table uses; for tests and the simulation. */
export class MemoryRedis {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** Called with every command that writes, after it was run. */
  onWrite: (command: RedisCommand) => void = () => {};
  /** Error with which every write fails, like `OOM …`. */
  writeError: string | undefined;
  /** Number of commands run. */
  commands = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs a client's command and calls `onWrite`. */
  run(command: RedisCommand): RedisReply {
    this.commands++;
    const isWrite = !["GET", "TTL", "HGETALL", "SCARD", "SMEMBERS", "SUNION"].includes(command[0]);
    if (isWrite && this.writeError !== undefined) return new RedisErrorReply(this.writeError);
    const reply = this.apply(command);
    if (isWrite) this.onWrite(command);
    return reply;
  }

  /** Runs a command without `onWrite`, as replication does. */
  apply([verb, key, ...rest]: RedisCommand): RedisReply {
    const args: readonly string[] = rest;
    const entry = this.#entry(key);
    switch (verb) {
      case "GET":
        return entry === undefined
          ? null
          : typeof entry.value === "string"
          ? entry.value
          : WRONG_TYPE;
      case "SET":
        if (args.includes("NX") && entry !== undefined) return null;
        this.#entries.set(key, {
          value: args[0]!,
          untilMs: args[1] === "EX" ? this.#clock.monotonicMs() + Number(args[2]) * 1000 : Infinity,
        });
        return "OK";
      case "DEL":
        return this.#entries.delete(key) ? 1 : 0;
      case "EXPIRE":
        if (entry !== undefined) entry.untilMs = this.#clock.monotonicMs() + Number(args[0]) * 1000;
        return entry === undefined ? 0 : 1;
      case "TTL":
        if (entry === undefined) return -2;
        return entry.untilMs === Infinity
          ? -1
          : Math.round((entry.untilMs - this.#clock.monotonicMs()) / 1000);
      case "HGETALL":
        return entry === undefined
          ? []
          : entry.value instanceof Map
          ? [...entry.value].flat()
          : WRONG_TYPE;
      case "HSET":
      case "HDEL":
        return this.#hash(verb, key, args);
      case "SADD":
      case "SREM":
        return this.#set(verb, key, args);
      case "SCARD":
        if (entry === undefined) return 0;
        return entry.value instanceof Set ? entry.value.size : WRONG_TYPE;
      case "SMEMBERS":
        return entry === undefined
          ? []
          : entry.value instanceof Set
          ? [...entry.value]
          : WRONG_TYPE;
      case "SUNION": {
        const members = new Set<string>();
        for (const each of [key, ...args]) {
          const value = this.#entry(each)?.value ?? new Set();
          if (!(value instanceof Set)) return WRONG_TYPE;
          for (const member of value) members.add(member);
        }
        return [...members];
      }
      default:
        return verb satisfies never;
    }
  }

  /** Forgets everything, as a Redis without persistence does when it restarts. */
  flush(): void {
    this.#entries.clear();
  }

  /** All keys with plain values; hashes and sets as sorted arrays. */
  dump(): Record<string, string | string[]> {
    const shown: Record<string, string | string[]> = {};
    for (const key of [...this.#entries.keys()].sort()) {
      const value = this.#entry(key)?.value;
      if (value === undefined) continue;
      shown[key] = typeof value === "string"
        ? value
        : value instanceof Set
        ? [...value].sort()
        : [...value.values()].sort();
    }
    return shown;
  }

  /** Milliseconds until the key expires. */
  ttlMs(key: string): number | undefined {
    const entry = this.#entry(key);
    return entry === undefined ? undefined : entry.untilMs - this.#clock.monotonicMs();
  }

  #entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#clock.monotonicMs() < entry.untilMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #hash(verb: "HSET" | "HDEL", key: string, args: readonly string[]): RedisReply {
    const value = this.#entry(key)?.value ?? new Map<string, string>();
    if (!(value instanceof Map)) return WRONG_TYPE;
    if (verb === "HSET") {
      for (let i = 0; i + 1 < args.length; i += 2) value.set(args[i]!, args[i + 1]!);
    } else for (const field of args) value.delete(field);
    return this.#keep(key, value);
  }

  #set(verb: "SADD" | "SREM", key: string, args: readonly string[]): RedisReply {
    const value = this.#entry(key)?.value ?? new Set<string>();
    if (!(value instanceof Set)) return WRONG_TYPE;
    const before = value.size;
    for (const member of args) {
      if (verb === "SADD") value.add(member);
      else value.delete(member);
    }
    return Math.abs(this.#keep(key, value) - before);
  }

  /** Stores a hash or set, or deletes its key if it is empty. */
  #keep(key: string, value: Map<string, string> | Set<string>): number {
    const before = this.#entry(key);
    if (value.size === 0) this.#entries.delete(key);
    else if (before === undefined) this.#entries.set(key, { value, untilMs: Infinity });
    return value.size;
  }
}

/**
 * A connection to a `MemoryRedis`, for the commands that Dynomite takes. It takes `latencyMs` each way
 * and can be cut.
 */
export class MemoryRedisCommands implements RedisCommands {
  readonly refusal = undefined;
  latencyMs = 0;
  readonly #redis: MemoryRedis;
  readonly #clock: Clock;
  readonly #waiting = new Map<CancelTimer, () => void>();
  #events: RedisEvents | undefined;
  #isUp = true;
  #epoch = 0;

  constructor(redis: MemoryRedis, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  connect(events: RedisEvents): void {
    this.#events = events;
    queueMicrotask(() => this.#isUp ? events.connected() : events.disconnected("refused"));
  }

  /** Cuts the connection, or lets it come back. */
  setUp(isUp: boolean): void {
    if (this.#isUp === isUp) return;
    this.#isUp = isUp;
    this.#epoch++;
    if (isUp) this.#events?.connected();
    else this.#events?.disconnected("cut");
  }

  async run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const epoch = this.#epoch;
    await this.#wait();
    if (!this.#isUp || epoch !== this.#epoch) {
      throw new CausewayError("table/redis-down", "Cannot ask Redis: cut", { retryable: true });
    }
    for (const command of commands) assertTaken(command);
    const replies = commands.map((command) => this.#redis.run(command));
    await this.#wait();
    return replies;
  }

  close(): Promise<void> {
    this.#events = undefined;
    this.#epoch++; // pending commands fail
    for (const [cancel, resolve] of this.#waiting) {
      cancel();
      resolve();
    }
    this.#waiting.clear();
    return Promise.resolve();
  }

  #wait(): Promise<void> {
    if (this.latencyMs === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(this.latencyMs, () => {
        this.#waiting.delete(cancel);
        resolve();
      });
      this.#waiting.set(cancel, resolve);
    });
  }
}
