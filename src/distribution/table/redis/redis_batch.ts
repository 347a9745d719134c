import type { Buffer } from "node:buffer";
import type { Command, Redis } from "ioredis";
import { CausewayError, describeError } from "../../../base/mod.ts";
import type { AnswerWatch } from "./answer_watch.ts";
import { encodeCommands } from "./encode_commands.ts";
import type { RedisCommand, RedisReply, RedisVerb } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";

/** The connection of a batch, which hears of replies that concern the connection itself. */
export interface BatchDeps {
  readonly redis: Redis;
  readonly watch: Pick<AnswerWatch, "asked" | "answered">;
  /** Redis has answered READONLY: the server is a replica by now. */
  foundReadOnly(message: string): void;
}

/**
 * Sends `commands` in one write. ioredis' own commands take three times the processor time: each
 * makes a promise, half a dozen closures, and text from many pieces.
 */
export function runBatch(
  deps: BatchDeps,
  commands: readonly RedisCommand[],
): Promise<readonly RedisReply[]> {
  const { redis } = deps;
  const batch = new Batch(deps, commands);
  for (let i = 0; i < commands.length; i++) {
    const command = new BatchCommand(batch, commands[i]!, i);
    // It has every member of a command that ioredis uses; see `BatchCommand`.
    redis.sendCommand(command as unknown as Command, batch.sink);
  }
  if (batch.hasFailed) return batch.replies;
  redis.stream.write(encodeCommands(commands));
  return batch.replies;
}

/** Commands that went in one write, and what has come back. */
class Batch {
  readonly replies: Promise<readonly RedisReply[]>;
  /** Stand-in for the stream to which ioredis would write the commands one by one. */
  readonly sink: { isPipeline: true; write: () => void; destination: { redis: Redis } };
  hasFailed = false;
  readonly #deps: BatchDeps;
  readonly #found: RedisReply[];
  readonly #resolve: (replies: readonly RedisReply[]) => void;
  readonly #reject: (error: Error) => void;
  #missing: number;

  constructor(deps: BatchDeps, commands: readonly RedisCommand[]) {
    const { promise, resolve, reject } = Promise.withResolvers<readonly RedisReply[]>();
    this.replies = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deps = deps;
    this.#found = new Array(commands.length).fill(null);
    this.#missing = commands.length;
    this.sink = { isPipeline: true, write: () => {}, destination: deps };
    deps.watch.asked(this);
  }

  answered(at: number, verb: RedisVerb, reply: RawReply): void {
    const value = toReply(reply);
    if (isAnswerTo(verb, value)) return this.#take(at, value);
    // One reply too few or too many shifts all later ones. Only a new connection puts that right.
    this.#deps.redis.disconnect(true);
    this.#fail(downError(`${verb} was answered with something that is no answer to it`));
  }

  refused(at: number, error: Error): void {
    if (error.name !== "ReplyError") return this.#fail(downError(whyDown(error), error));
    const reply = new RedisErrorReply(error.message);
    if (reply.kind === "READONLY") this.#deps.foundReadOnly(reply.message);
    this.#take(at, reply);
  }

  #take(at: number, reply: RedisReply): void {
    this.#found[at] = reply;
    if (--this.#missing > 0) return;
    this.#deps.watch.answered(this);
    this.#resolve(this.#found);
  }

  #fail(error: CausewayError): void {
    this.hasFailed = true;
    this.#deps.watch.answered(this);
    this.#reject(error);
  }
}

/**
 * A command in ioredis' queue that passes its reply to its batch. ioredis reads its name and
 * arguments, asks it to write itself (the whole batch is written at once), and calls `resolve` or
 * `reject`.
 */
class BatchCommand {
  /** Name in lower case, as ioredis compares it. */
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
  TTL: "ttl",
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
    case "TTL":
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

/** Replies as ioredis reads them: bytes where the protocol has text. */
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
  // the most frequent answer, without a new string
  return bytes.length === 2 && bytes[0] === 0x4f && bytes[1] === 0x4b ? OK : bytes.toString();
}

/** Says why a command has no reply. ioredis' own words for a lost connection name its options. */
function whyDown(error: Error): string {
  return error.name === "MaxRetriesPerRequestError"
    ? "the connection was lost"
    : describeError(error);
}

/** Returns the error for commands that cannot be sent, or whose replies have not all come. */
export function downError(reason: string, cause?: Error): CausewayError {
  return new CausewayError("table/redis-down", `Cannot ask Redis: ${reason}`, {
    retryable: true,
    ...(cause === undefined ? {} : { cause }),
  });
}
