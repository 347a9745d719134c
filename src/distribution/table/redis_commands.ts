/**
 * One command: verb, key, and arguments as Redis takes them. Each names one key (SUNION: keys that share
 * one `{tag}`), and these forms are all that there are: a replicating proxy such as Dynomite, which knows
 * fewer than Redis, closes the connection on any other and swallows the replies to what was sent before.
 * `redis_commands_test.ts` compares them with what Dynomite takes.
 */
export type RedisCommand =
  | readonly ["GET" | "DEL" | "HGETALL" | "SCARD" | "SMEMBERS", key: string]
  | readonly ["SET", key: string, value: string, ...options: SetOptions]
  | readonly ["EXPIRE", key: string, seconds: string]
  /** One field only: Dynomite takes no second one. */
  | readonly ["HSET", key: string, field: string, value: string]
  | readonly ["HDEL" | "SADD" | "SREM", key: string, ...members: string[]]
  | readonly ["SUNION", key: string, ...keys: string[]];

type SetOptions = [] | ["EX", seconds: string] | ["EX", seconds: string, "NX"];

/** What a command is called. */
export type RedisVerb = RedisCommand[0];

/** An error that Redis answered, such as `WRONGTYPE …` or `OOM …`; it stands in a reply's place. */
export class RedisErrorReply {
  /** First word of the answer in capitals: `WRONGTYPE`, `OOM`, `READONLY`, `NOAUTH`. */
  readonly kind: string;
  readonly message: string;

  constructor(message: string) {
    this.message = message;
    this.kind = message.split(" ", 1)[0] ?? "";
  }
}

/** HGETALL is given as name, value, name, value; sets in no order. */
export type RedisReply = string | number | null | readonly string[] | RedisErrorReply;

/** What the owner of a `RedisCommands` is told. Runs outside of any call into it. */
export interface RedisEvents {
  /**
   * Commands can be sent. `mayHaveLost`: to a server that may lack what was written last, such as a
   * replica that has become the master.
   */
  connected(mayHaveLost?: boolean): void;
  /** They cannot until `connected`; `reason` is a message without secrets. Said once for each loss. */
  disconnected(reason: string): void;
}

/**
 * Redis as the session table sees it; the simulation stands in here.
 *
 * Commands on one key are carried out in the order of the calls.
 */
export interface RedisCommands {
  /** Begins connecting, and goes on until `close`. */
  connect(events: RedisEvents): void;
  /**
   * Sends `commands` in one write and resolves with their replies, in order.
   * @throws CausewayError `table/redis-down` when there is no connection, or it broke or was silent
   *   for too long before all replies were here: what was sent may have been carried out
   */
  run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]>;
  /** Why the last attempt to connect failed for good: a refused password; undefined otherwise. */
  readonly refusal: string | undefined;
  close(): Promise<void>;
}
