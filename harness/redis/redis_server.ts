import type { RedisAddress } from "./redis_client.ts";

/** What a Redis of the harness is made of. */
export type RedisKind = "docker" | "local" | "embedded";

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
  /** The end of what it wrote, for messages. */
  tail(): string;
}
