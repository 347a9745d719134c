import { readdir } from "node:fs/promises";
import { PROJECT_DIRECTORY } from "../process/mod.ts";

/**
 * Folders with many files of short tests. `deno task test` leaves them out, and has each suite load its
 * tests as one module, `NAME_test.ts` beside this file.
 */
export const SUITES = {
  distribution: ["src/distribution"],
  services: ["src/services"],
  xmpp: ["src/xmpp"],
  node: [
    "src/base",
    "src/config",
    "src/doctor",
    "src/net",
    "src/node",
    "src/observe",
    "src/terminal",
  ],
  storage: ["src/admin", "src/cli", "src/migration", "src/storage"],
  harness: [
    ...["bench", "deploy"],
    ...["clients", "command", "databases", "desktop", "fuzz", "ledger", "load", "peers", "process"]
      .map((folder) => `harness/${folder}`),
    ...["harness/redis", "harness/screen", "harness/soak"],
  ],
} as const;

/**
 * Files in these folders that take long, so that others should run beside them, or that start a server
 * for all tests of their module.
 */
export const ALONE: ReadonlySet<string> = new Set([
  "src/admin/admin_server_test.ts",
  "src/admin/api/action_routes_test.ts",
  "src/admin/api/real_actions_test.ts",
  "src/admin/api/real_node_test.ts",
  "src/admin/dashboard_keyboard_test.ts",
  "src/admin/dashboard_test.ts",
  "src/cli/archive_command_test.ts",
  "src/cli/backends_command_test.ts",
  "src/cli/killed_import_test.ts",
  "src/cli/main_test.ts",
  "src/cli/moving_test.ts",
  "src/migration/account_lock_test.ts",
  "src/migration/import_refusals_test.ts",
  "src/migration/interrupted_import_test.ts",
  "src/migration/mongooseim_left_test.ts",
  "src/migration/mongooseim_nodes_test.ts",
  "src/migration/mongooseim_owners_test.ts",
  "src/migration/mongooseim_sql_test.ts",
  "src/storage/backup_test.ts",
  "src/storage/cassandra/cassandra_archive_store_test.ts",
  "src/storage/cassandra/cassandra_datacenters_test.ts",
  "src/storage/cassandra/cassandra_faults_test.ts",
  "src/storage/copy_accounts_test.ts",
  "src/storage/copy_archives_servers_test.ts",
  "src/storage/copy_archives_test.ts",
  "src/storage/copy_data_test.ts",
  "src/storage/elastic/stores_elasticsearch_5_test.ts",
  "src/storage/elastic/stores_elasticsearch_6_test.ts",
  "src/storage/elastic/stores_elasticsearch_7_test.ts",
  "src/storage/elastic/stores_elasticsearch_8_test.ts",
  "src/storage/elastic/stores_opensearch_2_test.ts",
  "src/storage/foreign_database_test.ts",
  "src/storage/internal_store_test.ts",
  "src/storage/ldap/ldap_faults_test.ts",
  "src/storage/ldap/ldap_user_store_test.ts",
  "src/storage/ldap/ldap_vcard_store_test.ts",
  "src/storage/ldap/merged_roster_store_test.ts",
  "src/storage/riak/riak_archives_test.ts",
  "src/storage/riak/riak_stores_test.ts",
  "src/storage/sql/engines/mssql_connection_test.ts",
  "src/storage/sql/engines/mssql_schema_test.ts",
  "src/storage/sql/engines/postgres_client_test.ts",
  "src/storage/sql/engines/postgres_test.ts",
  "src/storage/sql/every_store_faults_test.ts",
  "src/storage/sql/sql_faults_test.ts",
  "src/storage/sql/sql_tls_test.ts",
  "src/storage/sql/sql_vcard_store_test.ts",
  "src/storage/sql/stores_mariadb_test.ts",
  "src/storage/sql/stores_mssql_test.ts",
  "src/storage/sql/stores_mysql_test.ts",
  "src/storage/sql/stores_postgresql_test.ts",
  "src/storage/stores_test.ts",
]);

/** Returns the paths of a suite's files, in order. */
export async function filesOf(suite: keyof typeof SUITES): Promise<readonly string[]> {
  const files = await Promise.all(SUITES[suite].map(async (folder) => {
    const found = await readdir(`${PROJECT_DIRECTORY}/${folder}`, { recursive: true });
    return found.filter((file) => file.endsWith("_test.ts")).map((file) => `${folder}/${file}`);
  }));
  return files.flat().filter((file) => !ALONE.has(file)).toSorted();
}
