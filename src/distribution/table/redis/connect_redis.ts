import { IoredisCommands } from "./ioredis_commands.ts";
import type { RedisOptions } from "../options.ts";
import { RedisClusterCommands } from "./redis_cluster.ts";
import type { RedisCommands } from "./redis_commands.ts";

/**
 * Redis as the options describe it: a server, the master that Sentinels name, or a cluster.
 * @throws CausewayError `table/redis-tls` for a file that cannot be used
 */
export function connectRedis(options: Required<RedisOptions>): RedisCommands {
  return options.cluster.length > 0
    ? new RedisClusterCommands(options)
    : new IoredisCommands(options);
}
