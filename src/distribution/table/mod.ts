export type { EndpointAddress, PublicDomain } from "./directory.ts";
export type { CacheOptions, RedisOptions, TableOptions } from "./options.ts";
export { isReservedDomain } from "./keys.ts";
export { resolveTable } from "./options.ts";
export type { HostRemoval, TableDependencies, TableSnapshot } from "./session_table.ts";
export { SessionTable } from "./session_table.ts";
