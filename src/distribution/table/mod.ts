export type {
  AddressInspection,
  InspectedClaim,
  InspectedKey,
  RedisInspection,
} from "./lookup/address_inspection.ts";
export type { CachedAnswer } from "./lookup/location_cache.ts";
export type { AccountSession } from "./lookup/account_sessions.ts";
export type { EndpointAddress, PublicDomain } from "./mesh/directory.ts";
export type { CacheOptions, RedisOptions, TableOptions } from "./options.ts";
export { isReservedDomain } from "./redis/keys.ts";
export { resolveTable } from "./options.ts";
export type { HostRemoval, TableSnapshot } from "./session_table.ts";
export { SessionTable } from "./session_table.ts";
export type { TableDeps } from "./table_parts.ts";
export type { AnnouncedHost, AnnouncedNode, TableInspection } from "./inspect_table.ts";
export { inspectTable } from "./inspect_table.ts";
export { REDIS_LAYOUT } from "./redis/layout.ts";
export type { RedisSettings } from "./redis/inspect_redis.ts";
