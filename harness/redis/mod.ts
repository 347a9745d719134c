export type { RedisChoice, RedisMaker } from "./choose_redis.ts";
export { REDIS_CHOICES, redisMakers, startRedises } from "./choose_redis.ts";
export type { RedisKind, RedisServer } from "./redis_server.ts";
export type { RedisAddress } from "./redis_client.ts";
export { RedisClient } from "./redis_client.ts";
export type { RespValue } from "./resp.ts";
export { RespError } from "./resp.ts";
export { EmbeddedRedis } from "./embedded_redis.ts";
export { LocalRedis } from "./local_redis.ts";
