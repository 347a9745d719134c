import type { Buffer } from "node:buffer";
import type { Command, Redis } from "ioredis";
import { CausewayError, describeError } from "../../../base/mod.ts";
import { encodeCommands } from "./encode_commands.ts";
import type { RedisCommand, RedisReply, RedisVerb } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";

/** The connection of a batch, told what a reply says of the connection itself. */
export interface BatchOwner {
  readonly redis: Redis;
  /** Redis has answered READONLY: the server is a replica by now. */
  foundReadOnly(message: string): void;
}

/**
 * Sends `commands` in one write. ioredis' own commands would do the same at three times the CPU: they
 * make a promise and half a dozen closures each, and text that is put together piece by piece.
 */
export function runBatch(
  owner: BatchOwner,
  commands: readonly RedisCommand[],
): Promise<readonly RedisReply[]> {
  const { redis } = owner;
  const batch = new Batch(owner, commands);
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
  readonly #owner: BatchOwner;
  readonly #found: RedisReply[];
  readonly #resolve: (replies: readonly RedisReply[]) => void;
  readonly #reject: (error: Error) => void;
  #missing: number;

  constructor(owner: BatchOwner, commands: readonly RedisCommand[]) {
    const { promise, resolve, reject } = Promise.withResolvers<readonly RedisReply[]>();
    this.replies = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#owner = owner;
    this.#found = new Array(commands.length).fill(null);
    this.#missing = commands.length;
    this.sink = { isPipeline: true, write: () => {}, destination: owner };
  }

  answered(at: number, verb: RedisVerb, reply: RawReply): void {
    const value = toReply(reply);
    if (isAnswerTo(verb, value)) return this.#take(at, value);
    // A reply too few or too many shifts all that follow: only a new connection puts that right.
    this.#owner.redis.disconnect(true);
    this.#fail(downError(`${verb} was answered with something that is no answer to it`));
  }

  refused(at: number, error: Error): void {
    if (error.name !== "ReplyError") return this.#fail(downError(describeError(error), error));
    const reply = new RedisErrorReply(error.message);
    if (reply.kind === "READONLY") this.#owner.foundReadOnly(reply.message);
    this.#take(at, reply);
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
  // what most commands are answered with
  return bytes.length === 2 && bytes[0] === 0x4f && bytes[1] === 0x4b ? OK : bytes.toString();
}

/** Commands cannot be sent, or their replies have not all come. */
export function downError(reason: string, cause?: Error): CausewayError {
  return new CausewayError("table/redis-down", `Cannot ask Redis: ${reason}`, {
    retryable: true,
    ...(cause === undefined ? {} : { cause }),
  });
}
