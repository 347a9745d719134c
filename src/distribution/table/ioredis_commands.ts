import type { Buffer } from "node:buffer";
import { Command, Redis } from "ioredis";
import { CausewayError, describeError } from "../../base/mod.ts";
import { encodeCommands } from "./encode_commands.ts";
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

const CLOSED = "the connection was closed";
/** How the socket, or a command that waits, says that the other side has closed the connection. */
const HANG_UP = /^Connection is closed|ECONNRESET|EPIPE/;
/** Redis answers AUTH with an error at most; a proxy that does not know the command hangs up. */
const CLOSED_AT_AUTH =
  "the connection was closed at AUTH: a proxy that knows no passwords, such as " +
  "Dynomite, needs redis.password to be left out";

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
    let reason = CLOSED;
    /** Connected, and not told yet what becomes of the password. */
    let isAtAuth = false;
    redis.on("connect", () => {
      isAtAuth = password !== "";
      reason = CLOSED;
    });
    redis.on("error", (error: Error) => {
      // That AUTH was not answered follows from what ended the connection, which was told before.
      if (!isAtAuth || !HANG_UP.test(error.message)) reason = describeError(error);
      else if (reason === CLOSED) reason = CLOSED_AT_AUTH;
      if (/^(WRONGPASS|NOAUTH|ERR invalid password)/.test(reason)) this.#refusal = reason;
      this.#lost(reason); // said before the first connection, too: nobody is told otherwise
    });
    redis.on("close", () => {
      if (isAtAuth && reason === CLOSED) reason = CLOSED_AT_AUTH;
      isAtAuth = false;
      this.#lost(reason);
    });
    redis.on("ready", () => {
      isAtAuth = false;
      reason = CLOSED;
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
 * Sends `commands` in one write. ioredis' own commands would do the same at three times the CPU: they
 * make a promise and half a dozen closures each, and text that is put together piece by piece.
 */
function runOn(redis: Redis, commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
  const batch = new Batch(redis, commands);
  for (let i = 0; i < commands.length; i++) {
    const command = new BatchCommand(batch, commands[i]!, i);
    // It has all that ioredis touches of a command which is not its own; see `BatchCommand`.
    redis.sendCommand(command as unknown as Command, batch.sink);
  }
  if (batch.hasFailed) return batch.replies;
  redis.stream.write(encodeCommands(commands));
  return batch.replies;
}

/** Commands that went in one write, and what has come back. */
class Batch {
  readonly replies: Promise<readonly RedisReply[]>;
  /** Stands where ioredis would write the commands one by one. */
  readonly sink: { isPipeline: true; write: () => void; destination: { redis: Redis } };
  hasFailed = false;
  readonly #redis: Redis;
  readonly #found: RedisReply[];
  readonly #resolve: (replies: readonly RedisReply[]) => void;
  readonly #reject: (error: Error) => void;
  #missing: number;

  constructor(redis: Redis, commands: readonly RedisCommand[]) {
    const { promise, resolve, reject } = Promise.withResolvers<readonly RedisReply[]>();
    this.replies = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#redis = redis;
    this.#found = new Array(commands.length).fill(null);
    this.#missing = commands.length;
    this.sink = { isPipeline: true, write: () => {}, destination: { redis } };
  }

  answered(at: number, verb: RedisVerb, reply: RawReply): void {
    const value = toReply(reply);
    if (isAnswerTo(verb, value)) return this.#take(at, value);
    // A reply too few or too many shifts all that follow: only a new connection puts that right.
    this.#redis.disconnect(true);
    this.#fail(downError(`${verb} was answered with something that is no answer to it`));
  }

  refused(at: number, error: Error): void {
    if (error.name === "ReplyError") this.#take(at, new RedisErrorReply(error.message));
    else this.#fail(downError(describeError(error), error));
  }

  #take(at: number, reply: RedisReply): void {
    this.#found[at] = reply;
    if (--this.#missing === 0) this.#resolve(this.#found);
  }

  #fail(error: CausewayError): void {
    this.hasFailed = true;
    this.#reject(error);
  }
}

/**
 * A command in ioredis' queue that tells its batch what became of it. ioredis asks it for its name and
 * arguments, has it written (its batch is, whole), and calls one of `resolve` and `reject`.
 */
class BatchCommand {
  /** In small letters, as ioredis compares it. */
  readonly name: string;
  readonly args: readonly string[] = [];
  readonly promise = undefined;
  readonly #batch: Batch;
  readonly #verb: RedisVerb;
  readonly #at: number;

  constructor(batch: Batch, [verb]: RedisCommand, at: number) {
    this.name = NAMES[verb];
    this.#batch = batch;
    this.#verb = verb;
    this.#at = at;
  }

  setReplyContext(): void {}

  toWritable(): string {
    return "";
  }

  resolve(reply: RawReply): void {
    this.#batch.answered(this.#at, this.#verb, reply);
  }

  reject(error: Error): void {
    this.#batch.refused(this.#at, error);
  }
}

const NAMES: Readonly<Record<RedisVerb, string>> = {
  GET: "get",
  SET: "set",
  DEL: "del",
  EXPIRE: "expire",
  HGETALL: "hgetall",
  HSET: "hset",
  HDEL: "hdel",
  SADD: "sadd",
  SREM: "srem",
  SCARD: "scard",
  SMEMBERS: "smembers",
  SUNION: "sunion",
};

/** True for a reply of the type that Redis gives to `verb`. */
function isAnswerTo(verb: RedisVerb, reply: RedisReply): boolean {
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
    case "SCARD":
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

/** What ioredis reads: bytes where the protocol has text. */
type RawReply = Buffer | number | string | null | readonly RawReply[];

const OK = "OK";

function toReply(reply: RawReply): RedisReply {
  if (reply === null || typeof reply === "string" || typeof reply === "number") return reply;
  return isBytes(reply)
    ? toText(reply)
    : reply.map((each) => isBytes(each) ? toText(each) : String(each));
}

function isBytes(reply: RawReply): reply is Buffer {
  return reply instanceof Uint8Array;
}

function toText(bytes: Buffer): string {
  // what most commands are answered with
  return bytes.length === 2 && bytes[0] === 0x4f && bytes[1] === 0x4b ? OK : bytes.toString();
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
  const isGone = stream === undefined || stream === null || stream.closed;
  const ended = isGone ? undefined : new Promise<void>((resolve) => stream.once("close", resolve));
  redis.disconnect();
  stream?.destroy(); // a connection attempt into the void would take its whole timeout
  await ended;
}
