import { Command, Redis } from "ioredis";
import { CausewayError, describeError } from "../../base/mod.ts";
import { orderingPart } from "./keys.ts";
import type { RedisOptions } from "./options.ts";
import type {
  RedisCommand,
  RedisCommands,
  RedisEvents,
  RedisReply,
  RedisVerb,
} from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";

/**
 * Redis through ioredis: a pool of connections, each with its own reconnecting.
 *
 * Connecting sends AUTH when there is a password, and nothing else: RESP2 needs no HELLO, database 0
 * no SELECT, and CLIENT and INFO are left out, for a proxy may reject them. Nothing is queued while
 * there is no connection, and nothing is sent twice.
 */
export class IoredisCommands implements RedisCommands {
  readonly #options: Required<RedisOptions>;
  #pool: readonly Redis[] = [];
  #events: RedisEvents | undefined;
  #isUp = false;
  #refusal: string | undefined;

  constructor(options: Required<RedisOptions>) {
    this.#options = options;
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  connect(events: RedisEvents): void {
    this.#events = events;
    this.#pool = Array.from({ length: this.#options.poolSize }, () => this.#open());
  }

  async run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    if (commands.length === 0) return [];
    if (!this.#isUp) throw downError("there is no connection");
    if (this.#pool.length === 1) return await runOn(this.#pool[0]!, commands);
    return await this.#runOnPool(commands);
  }

  async close(): Promise<void> {
    this.#events = undefined;
    this.#isUp = false;
    const pool = this.#pool;
    this.#pool = [];
    await Promise.all(pool.map((redis) => closeOne(redis)));
  }

  /** Splits by key, so that the commands on one key stay on one connection and in order. */
  async #runOnPool(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const parts = this.#pool.map((): { at: number[]; commands: RedisCommand[] } => ({
      at: [],
      commands: [],
    }));
    commands.forEach((command, at) => {
      const part = parts[hash(orderingPart(command[1])) % parts.length]!;
      part.at.push(at);
      part.commands.push(command);
    });
    const replies: RedisReply[] = new Array(commands.length).fill(null);
    await Promise.all(parts.map(async (part, i) => {
      if (part.commands.length === 0) return;
      const answers = await runOn(this.#pool[i]!, part.commands);
      answers.forEach((answer, k) => replies[part.at[k]!] = answer);
    }));
    return replies;
  }

  #open(): Redis {
    const { server, port, password, commandTimeoutMs, reconnectMaxMs } = this.#options;
    const where = server.startsWith("/") ? { path: server } : { host: server, port };
    const redis = new Redis({
      ...where,
      ...(password === "" ? {} : { password }),
      protocol: 2,
      disableClientInfo: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0, // rejects what was under way when the connection broke
      connectTimeout: commandTimeoutMs,
      socketTimeout: commandTimeoutMs,
      retryStrategy: (attempt) =>
        Math.min(reconnectMaxMs, 50 * 2 ** Math.min(attempt - 1, 16)) * (0.9 + Math.random() / 5),
    });
    surviveUnaskedReplies(redis);
    let reason = "the connection was closed";
    redis.on("error", (error: Error) => {
      reason = describeError(error);
      if (/^(WRONGPASS|NOAUTH|ERR invalid password)/.test(reason)) this.#refusal = reason;
      this.#lost(reason); // said before the first connection, too: nobody is told otherwise
    });
    redis.on("close", () => this.#lost(reason));
    redis.on("ready", () => {
      reason = "the connection was closed";
      this.#found();
    });
    return redis;
  }

  #found(): void {
    if (this.#isUp || this.#pool.some((redis) => redis.status !== "ready")) return;
    this.#isUp = true;
    this.#refusal = undefined;
    this.#events?.connected();
  }

  #lost(reason: string): void {
    if (this.#isUp) this.#isUp = false;
    this.#events?.disconnected(reason);
  }
}

/**
 * Sends `commands` in one write. ioredis' own pipeline does the same at two and a half times the CPU:
 * it makes three promises for each command.
 */
function runOn(redis: Redis, commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly RedisReply[]>();
  const replies: RedisReply[] = new Array(commands.length).fill(null);
  let missing = commands.length;
  let text = "";
  const sink = {
    isPipeline: true as const,
    write: (data: string | Uint8Array) => text += data, // never bytes: our arguments are strings
    destination: { redis },
  };
  commands.forEach(([verb, ...args], i) => {
    const command = new Command(verb, args, { replyEncoding: "utf8" });
    redis.sendCommand(command, sink);
    command.promise.then((reply: unknown) => {
      if (!isAnswerTo(verb, reply)) {
        // A reply too few or too many shifts all that follow: only a new connection puts that right.
        redis.disconnect(true);
        reject(downError(`${verb} was answered with something that is no answer to it`));
        return;
      }
      replies[i] = toReply(reply);
      if (--missing === 0) resolve(replies);
    }, (error: Error) => {
      if (error.name !== "ReplyError") {
        reject(downError(describeError(error), error));
        return;
      }
      replies[i] = new RedisErrorReply(error.message);
      if (--missing === 0) resolve(replies);
    });
  });
  if (text !== "") redis.stream.write(text);
  return promise;
}

/** True for a reply of the type that Redis gives to `verb`. */
function isAnswerTo(verb: RedisVerb, reply: unknown): boolean {
  switch (verb) {
    case "GET":
      return reply === null || typeof reply === "string";
    case "SET":
      return reply === null || reply === "OK";
    case "DEL":
    case "EXPIRE":
    case "HSET":
    case "HDEL":
    case "SADD":
    case "SREM":
      return typeof reply === "number";
    case "HGETALL":
    case "SMEMBERS":
    case "SUNION":
      return Array.isArray(reply);
    default:
      return verb satisfies never;
  }
}

/** What ioredis keeps to itself: the commands under way, made anew with each connection. */
interface RedisInternals {
  commandQueue: { shift(): { readonly command: Command } | undefined };
  resetCommandQueue(): void;
  flushQueue(...args: readonly unknown[]): void;
}

/**
 * Connects anew when a reply comes that nobody asked for. ioredis throws out of its reader when such a
 * reply is null, which would end the process.
 */
function surviveUnaskedReplies(redis: Redis): void {
  const internals = redis as unknown as RedisInternals; // its own types hide them
  let isFlushing = false; // then an empty queue is the end, not a surprise
  const guard = (): void => {
    const queue = internals.commandQueue;
    const shift = queue.shift.bind(queue);
    queue.shift = () => {
      const asked = shift();
      if (asked !== undefined || isFlushing) return asked;
      redis.disconnect(true);
      const command = new Command("PING"); // takes the reply, and tells nobody
      command.promise.catch(() => {});
      return { command };
    };
  };
  const reset = internals.resetCommandQueue.bind(redis);
  internals.resetCommandQueue = () => {
    reset();
    guard();
  };
  const flush = internals.flushQueue.bind(redis);
  internals.flushQueue = (...args) => {
    isFlushing = true;
    flush(...args);
    isFlushing = false;
  };
  guard();
}

/** Upper-case verbs keep ioredis from turning HGETALL into an object. */
function toReply(reply: unknown): RedisReply {
  if (reply === null || typeof reply === "string" || typeof reply === "number") return reply;
  return Array.isArray(reply) ? reply.map(String) : String(reply);
}

function downError(reason: string, cause?: Error): CausewayError {
  return new CausewayError("table/redis-down", `Cannot ask Redis: ${reason}`, {
    retryable: true,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** FNV-1a over UTF-16 units: spreads keys over connections. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

async function closeOne(redis: Redis): Promise<void> {
  const stream = redis.stream;
  const isGone = stream === undefined || stream === null || stream.destroyed;
  const ended = isGone ? undefined : new Promise<void>((resolve) => stream.once("close", resolve));
  redis.disconnect();
  stream?.destroy(); // a connection attempt into the void would take its whole timeout
  await ended;
}
