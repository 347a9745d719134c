/**
 * One command: verb, key, and arguments as Redis takes them. Each names one key (SUNION: keys that
 * share one `{tag}`). There are no other forms: a replicating proxy such as Dynomite knows fewer
 * than Redis. On any other form it closes the connection and swallows the replies to earlier
 * commands. `redis_commands_test.ts` checks them against Dynomite's.
 */
export type RedisCommand =
  | readonly ["GET" | "DEL" | "TTL" | "HGETALL" | "SCARD" | "SMEMBERS", key: string]
  | readonly ["SET", key: string, value: string, ...options: SetOptions]
  | readonly ["EXPIRE", key: string, seconds: string]
  /** One field only: Dynomite takes no second one. */
  | readonly ["HSET", key: string, field: string, value: string]
  | readonly ["HDEL" | "SADD" | "SREM", key: string, ...members: string[]]
  | readonly ["SUNION", key: string, ...keys: string[]];

type SetOptions = [] | ["EX", seconds: string] | ["EX", seconds: string, "NX"];

/** Name of a command. */
export type RedisVerb = RedisCommand[0];

/** An error that Redis answered, such as `WRONGTYPE …` or `OOM …`, in place of a reply. */
export class RedisErrorReply {
  /** First word of the answer in capitals: `WRONGTYPE`, `OOM`, `READONLY`, `NOAUTH`. */
  readonly kind: string;
  readonly message: string;

  constructor(message: string) {
    this.message = message;
    this.kind = message.split(" ", 1)[0] ?? "";
  }
}

/** Answers by verb; HGETALL's is name, value, name, value; sets have no order. */
export interface RedisAnswers {
  readonly GET: string | null;
  readonly SET: "OK" | null;
  readonly DEL: number;
  readonly EXPIRE: number;
  /** Seconds; negative without a key, and for one that does not expire. */
  readonly TTL: number;
  readonly HSET: number;
  readonly HDEL: number;
  readonly SADD: number;
  readonly SREM: number;
  readonly SCARD: number;
  readonly HGETALL: readonly string[];
  readonly SMEMBERS: readonly string[];
  readonly SUNION: readonly string[];
}

/** A reply to any command. */
export type RedisReply = string | number | null | readonly string[] | RedisErrorReply;

/** Callbacks to the owner of a `RedisCommands`. They run outside of any call into it. */
export interface RedisEvents {
  /**
   * Called when commands can be sent. `mayHaveLost`: the server may lack the last writes, such as a
   * replica that has become the master.
   */
  connected(mayHaveLost?: boolean): void;
  /**
   * Called once for each loss: no command can be sent until `connected`. `reason` is a message
   * without secrets.
   */
  disconnected(reason: string): void;
}

/**
 * Redis as the session table sees it; the simulation replaces it.
 *
 * Commands on one key run in the order of the calls.
 */
export interface RedisCommands {
  /** Begins to connect, and goes on until `close`. */
  connect(events: RedisEvents): void;
  /**
   * Sends `commands` in one write and resolves with their replies, in order: each of the type that
   * `RedisAnswers` has for the verb, or an error. Callers use `ask`, which tells the two apart.
   * @throws CausewayError `table/redis-down` when there is no connection, or it broke or was silent
   *   for too long before all replies were here. Commands that were sent may have run
   */
  run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]>;
  /**
   * Reason why the last attempt to connect failed for good: a refused password; undefined
   * otherwise.
   */
  readonly refusal: string | undefined;
  close(): Promise<void>;
}
