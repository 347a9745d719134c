export type { CassandraNode } from "./cassandra.ts";
export {
  CASSANDRA_DATACENTER,
  CASSANDRA_HOME,
  CASSANDRA_ROOT,
  CassandraServer,
} from "./cassandra.ts";
export type { DatabaseServerOptions } from "./database_server.ts";
export { DatabaseServer } from "./database_server.ts";
export { isFile, isOnPath } from "./programs.ts";
export type { CommandLine, ServerCertificate, ServerKind } from "./server_kinds.ts";
export type { SearchKind } from "./search_kinds.ts";
export {
  elasticsearch8,
  ELASTICSEARCH_5_DOUBLE,
  ELASTICSEARCH_6_DOUBLE,
  ELASTICSEARCH_7,
  ELASTICSEARCH_8,
  openSearch2,
  OPENSEARCH_2,
  SNAPSHOTS,
} from "./search_kinds.ts";
export type { DirectoryContent, DirectoryPerson } from "./slapd.ts";
export {
  base64,
  DIRECTORY_BASE,
  DIRECTORY_KEEPER,
  DIRECTORY_READER,
  DirectoryServer,
  groupLdif,
  personLdif,
} from "./slapd.ts";
export { MARIADB, MSSQL_DOUBLE, MYSQL, POSTGRESQL, PYTHON_CHECKERS_HOME } from "./server_kinds.ts";
export type {
  DatabaseChoice,
  DatabaseKind,
  DatabaseSections,
  SharedDatabase,
  SharedDatabaseOptions,
} from "./shared_database.ts";
export { DATABASE_CHOICES, startSharedDatabase } from "./shared_database.ts";
