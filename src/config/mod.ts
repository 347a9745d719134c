export type {
  AdminListenConfig,
  AuthConfig,
  C2sListenConfig,
  C2sTls,
  CertificateFiles,
  ComponentDomainConfig,
  ComponentListenConfig,
  Config,
  ConfigNote,
  ConnectionsConfig,
  GlobalDistribConfig,
  HostModulesConfig,
  HostPort,
  LinkTlsConfig,
  LogConfig,
  OtlpConfig,
  RedisConfig,
  SaslMechanism,
  WebSocketListenConfig,
} from "./config.ts";
export { Secret } from "./secret.ts";
export type { Finding } from "./config_error.ts";
export { ConfigError, formatFinding } from "./config_error.ts";
export type { ParseOptions } from "./surroundings.ts";
export { loadConfig, parseConfig } from "./load_config.ts";
export type { ChangedKey, ReloadPlan } from "./plan_reload.ts";
export { planReload } from "./plan_reload.ts";
export type { ReloadEffect } from "./reload_table.ts";
export type { Translation } from "./from_mongooseim.ts";
export { translateMongooseim } from "./from_mongooseim.ts";
export { configJsonSchema } from "./config_json_schema.ts";
export { MSSQL_PORT, renderOdbcEntry, withOdbcEntry } from "./odbc_entry.ts";
export { sqlAddressOf } from "./rdbms_pools.ts";
export { nearestKey } from "./nearest_key.ts";
export { BUILD, COMMIT, VERSION } from "./version.ts";
