import type { RedisAddress, RedisClient } from "./redis_client.ts";

/** Kind of program behind a Redis of the harness. */
export type RedisKind = "docker" | "local" | "embedded";

/** One server, or several of which another takes over when one dies. */
export type RedisForm = "single" | "sentinel" | "cluster";

/** A Redis of several servers. */
export interface FailoverRedis extends RedisServer {
  /** Ends a master as a crash would; nobody is told, and it stays away until `restore`. */
  killMaster(): Promise<void>;
  /** Starts again what was killed, as a replica of what has taken over; resolves when it follows. */
  restore(): Promise<void>;
}

/**
 * A Redis that a datacenter has to itself. It keeps its port for as long as the object lives, and
 * forgets its data when it stops, as a cache without persistence does.
 */
export interface RedisServer extends AsyncDisposable {
  readonly kind: RedisKind;
  /** For people, its port on loopback included: `redis-server :23456`. */
  readonly description: string;
  /** Valid once started. */
  readonly address: RedisAddress;
  readonly isRunning: boolean;
  start(): Promise<void>;
  /** Ends it at once; clients see their connections closed and new ones refused. */
  stop(): Promise<void>;
  /** It keeps its connections and answers nothing, until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Options for a node's `redis` table, if they are not a server and a port. */
  readonly place?: Readonly<Record<string, unknown>>;
  /** A client, where it takes more than connecting to `address`. */
  client?(): RedisClient;
  /** The end of what it wrote, for messages. */
  tail(): string;
}
