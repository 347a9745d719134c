import { isIP } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Command, Redis } from "ioredis";
import type { RedisOptions as AllIoredisOptions } from "ioredis";
import { describeError } from "../../../base/mod.ts";
import type { HostPort, RedisOptions } from "../options.ts";
import { AnswerWatch } from "./answer_watch.ts";
import { downError, runBatch } from "./redis_batch.ts";
import type { RedisCommand, RedisReply } from "./redis_commands.ts";
import { RedisTls } from "./redis_tls.ts";
import { restoreStringPrototype } from "./string_prototype.ts";

restoreStringPrototype(); // ioredis has derived a class from `String`

const CLOSED = "the connection was closed";
/** Errors of the socket, or of a waiting command, when the other side has closed the connection. */
const HANG_UP = /^Connection is closed|ECONNRESET|EPIPE/;
/**
 * Error of a connection that was closed at AUTH. Redis answers AUTH with an error at worst; a proxy
 * that does not know the command hangs up.
 */
const CLOSED_AT_AUTH =
  "the connection was closed at AUTH: a proxy that knows no passwords, such as " +
  "Dynomite, needs redis.password to be left out";
/** Errors about a password that Redis, or a Sentinel, does not accept. */
const REFUSED = /^(WRONGPASS|NOAUTH|ERR invalid password)|because (WRONGPASS|NOAUTH) /;
/** Wait after READONLY: a replica needs time to become the master, or the name to lead to another. */
const READ_ONLY_PAUSE_MS = 500;

type IoredisOptions = Omit<AllIoredisOptions, "replyMapping">;

/** Options of a connection to Redis, and the certificates that all connections share. */
export interface ConnectionDeps {
  readonly options: Required<RedisOptions>;
  /** Undefined: plain TCP, or a Unix socket. */
  readonly tls: RedisTls | undefined;
}

/** @throws CausewayError `table/redis-tls` for a file that cannot be used */
export function connectionDeps(options: Required<RedisOptions>): ConnectionDeps {
  const tls = options.tls === undefined ? undefined : new RedisTls(options.tls);
  return { options, tls };
}

/** Callbacks to the owner of a connection. */
export interface ConnectionEvents {
  /** Called when commands can be sent. `isOther`: to another server than before. */
  ready(isOther: boolean): void;
  /** Called when the connection has ended, or could not be made. */
  lost(reason: string): void;
  /** Called when the server has become a replica: the connection is then made anew. */
  left(reason: string): void;
}

/**
 * One connection to Redis, with its own reconnecting. Connecting sends AUTH when there is a password,
 * and nothing else: RESP2 needs no HELLO, database 0 no SELECT, and CLIENT and INFO are left out, for
 * a proxy may reject them. Nothing is queued while there is no connection, and nothing is sent twice.
 */
export class RedisConnection {
  readonly redis: Redis;
  readonly watch: AnswerWatch;
  readonly #deps: ConnectionDeps;
  readonly #events: ConnectionEvents;
  /** False where reconnecting would lead to the same server for certain. */
  readonly #canLeadElsewhere: boolean;
  #refusal: string | undefined;
  /** Reason to report when the connection ends, as far as is known. */
  #reason = CLOSED;
  #hasMetReadOnly = false;
  #peer: string | undefined;
  #attempts = 0;
  #isClosed = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;

  /** @param at a server of its own, such as a node of a cluster; left out: what the options name */
  constructor(deps: ConnectionDeps, events: ConnectionEvents, at?: HostPort) {
    const { options } = deps;
    this.#deps = deps;
    this.#events = events;
    this.#canLeadElsewhere = at === undefined &&
      (options.sentinels.length > 0 ||
        (!options.server.startsWith("/") && isIP(options.server) === 0));
    this.redis = new Redis({
      ...ioredisOptions(deps),
      ...(at ?? whereabouts(deps)),
      enableOfflineQueue: false,
      retryStrategy: (attempt) => this.#delayMs(attempt),
    });
    surviveUnaskedReplies(this.redis);
    this.watch = new AnswerWatch({
      silenceMs: options.commandTimeoutMs,
      late: (waitedMs) => {
        this.#reason = `Redis has not answered within ${waitedMs} ms`;
        this.redis.disconnect(true);
      },
    });
    this.#listen();
  }

  get isReady(): boolean {
    return this.redis.status === "ready";
  }

  /**
   * Reason why the last attempt to connect failed for good: a refused password; undefined
   * otherwise.
   */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** Sends `commands` in one write; rejects as `RedisCommands.run`. */
  run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    return runBatch(this, commands);
  }

  /** Resolves when the connection is ready; rejects when the attempt under way fails. */
  async whenReady(): Promise<void> {
    if (this.isReady) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const failed = () => reject(downError(this.#reason));
    this.redis.once("ready", resolve).once("close", failed).once("end", failed);
    try {
      await promise;
    } finally {
      this.redis.off("ready", resolve).off("close", failed).off("end", failed);
    }
  }

  /**
   * Announces that the next command is for a slot that moves to this node of a cluster (ASKING).
   */
  asking(): void {
    this.redis.asking().catch(() => {}); // the next command meets the same error
  }

  foundReadOnly(message: string): void {
    if (this.#canLeadElsewhere && this.isReady) this.#events.left(message);
  }

  /** Connects anew: the server is not the one that is wanted. */
  leave(reason: string): void {
    this.#reason = reason;
    this.#hasMetReadOnly = true;
    this.redis.disconnect(true);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    this.watch.close();
    await closeOne(this.redis);
  }

  #listen(): void {
    const { redis } = this;
    const hasPassword = this.#deps.options.password !== "";
    /** True while it is connected and AUTH has no answer yet. */
    let isAtAuth = false;
    let fromSentinel: string | undefined;
    redis.on("connect", () => {
      isAtAuth = hasPassword;
      this.#reason = CLOSED;
    });
    redis.on("sentinelError", (error: Error) => fromSentinel = describeError(error));
    redis.on("error", (error: Error) => {
      // An earlier error tells what ended the connection; that AUTH got no answer only follows from
      // it.
      if (error.message.startsWith("All sentinels are unreachable")) {
        this.#reason = `no Sentinel tells where the master is: ${fromSentinel ?? CLOSED}`;
      } else if (!isAtAuth || !HANG_UP.test(error.message)) this.#reason = describeError(error);
      else if (this.#reason === CLOSED) this.#reason = CLOSED_AT_AUTH;
      if (REFUSED.test(this.#reason)) this.#refusal = this.#reason;
      this.#events.lost(this.#reason); // also before the first connection: nothing else reports it
    });
    redis.on("close", () => {
      if (isAtAuth && this.#reason === CLOSED) this.#reason = CLOSED_AT_AUTH;
      isAtAuth = false;
      this.#events.lost(this.#reason);
    });
    redis.on("ready", () => {
      isAtAuth = false;
      this.#reason = CLOSED;
      this.#refusal = undefined;
      this.#attempts = 0;
      const before = this.#peer;
      this.#peer = `${redis.stream.remoteAddress}:${redis.stream.remotePort}`;
      this.#events.ready(before !== undefined && before !== this.#peer);
    });
    redis.on("end", () => {
      // ioredis gives up when no Sentinel names the master.
      if (this.#isClosed) return;
      const again = () => void redis.connect().catch(() => {}); // the events report it
      this.#retryTimer = setTimeout(again, this.#delayMs(++this.#attempts));
    });
  }

  #delayMs(attempt: number): number {
    this.#deps.tls?.refresh();
    const { reconnectMaxMs } = this.#deps.options;
    const delayMs = Math.min(reconnectMaxMs, 50 * 2 ** Math.min(attempt - 1, 16));
    const leastMs = this.#hasMetReadOnly ? READ_ONLY_PAUSE_MS : 0;
    this.#hasMetReadOnly = false;
    return Math.max(leastMs, delayMs) * (0.9 + Math.random() / 5);
  }
}

/** Opens a connection to `at`, runs `body` on it, and closes it in any case. */
export async function withConnection<T>(
  deps: ConnectionDeps,
  at: HostPort,
  body: (redis: Redis) => Promise<T>,
): Promise<T> {
  const redis = new Redis({ ...ioredisOptions(deps), ...at, retryStrategy: () => null });
  let failure: Error | undefined;
  redis.on("error", (error: Error) => failure ??= error);
  try {
    return await body(redis);
  } catch (error) {
    throw failure ?? error;
  } finally {
    await closeOne(redis);
  }
}

function ioredisOptions({ options, tls }: ConnectionDeps): IoredisOptions {
  const { username, password, commandTimeoutMs } = options;
  return {
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    ...(tls === undefined ? {} : { tls: tls.material }),
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0, // rejects what was under way when the connection broke
    disconnectTimeout: 0, // whatever is disconnected is broken, or is not needed any more
    connectTimeout: commandTimeoutMs,
    socketTimeout: commandTimeoutMs,
  };
}

/** Returns the address of Redis: Sentinels that know it, a Unix socket, or an address. */
function whereabouts({ options, tls }: ConnectionDeps): IoredisOptions {
  const { server, port, sentinels, sentinelName, sentinelUsername, sentinelPassword } = options;
  if (sentinels.length === 0) {
    return server.startsWith("/") ? { path: server } : { host: server, port };
  }
  return {
    sentinels: [...sentinels],
    name: sentinelName,
    ...(sentinelUsername === "" ? {} : { sentinelUsername }),
    ...(sentinelPassword === "" ? {} : { sentinelPassword }),
    ...(tls === undefined ? {} : { sentinelTLS: tls.material, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: options.commandTimeoutMs,
    updateSentinels: false,
    sentinelRetryStrategy: () => null, // the whole attempt is made again, at our own pace
  };
}

/** Private parts of ioredis: the queue of pending commands, made anew with each connection. */
interface RedisInternals {
  commandQueue: { shift(): { readonly command: Command } | undefined };
  resetCommandQueue(): void;
  flushQueue(...args: readonly unknown[]): void;
}

/**
 * Connects anew when a reply comes that nobody asked for. When such a reply is null, ioredis'
 * reader throws, which would end the process.
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

async function closeOne(redis: Redis): Promise<void> {
  const stream = redis.stream;
  const isGone = stream === undefined || stream === null || stream.closed;
  const ended = isGone ? undefined : new Promise<void>((resolve) => stream.once("close", resolve));
  redis.disconnect();
  if (isGone) await pause(0); // ioredis has set a timer for that long, to destroy it
  stream?.destroy(); // a connection attempt into the void would take its whole timeout
  await ended;
}
