import assert from "node:assert/strict";
import { translateMongooseim } from "./from_mongooseim.ts";
import { parseToml } from "./load_config.ts";
import { findingsIn } from "./testing/config.ts";
import { pathsOf, translated } from "./testing/translation.ts";
import type { Translated } from "./testing/translation.ts";

/** Databases in the newest spelling. */
const NEW_DATABASES = `
[outgoing_pools.cassandra.archive]
scope = "host_type"
workers = 25
strategy = "best_worker"
[outgoing_pools.cassandra.archive.connection]
servers = [{host = "c1.example.com", port = 9042}, {host = "c2.example.com", port = 9142}]
keyspace = "mongooseim"
auth.plain.username = "causeway"
auth.plain.password = "secret"
tls.cacertfile = "c.pem"
tls.ciphers = "ECDHE"
[outgoing_pools.elastic.default]
workers = 7
connection.host = "es.example.com"
connection.port = 9211
[outgoing_pools.ldap.default]
workers = 5
[outgoing_pools.ldap.default.connection]
servers = ["ldap.example.com"]
root_dn = "cn=reader,dc=example,dc=com"
password = "secret"
tls.cacertfile = "l.pem"
[outgoing_pools.ldap.bind.connection]
servers = ["127.0.0.1"]

[auth.ldap]
base = "ou=people,dc=example,dc=com"
dn_filter = {filter = "(a=%s)", attributes = ["sn"]}

[modules.mod_mam]
backend = "rdbms"
pm.backend = "elasticsearch"
pm.same_mam_id_for_peers = false
async_writer.enabled = true
cache.module = "internal"
user_prefs_store = "mnesia"
is_archivable_message = "my_module"
[modules.mod_muc_light]
backend = "rdbms"
rooms_in_rosters = true
cache_affs.time_to_live = 60
promote_on_last_owner_leave = true
config_schema = [
  {field = "roomname", string_value = "The Room"},
  {field = "display-lines", integer_value = 30, internal_key = "display_lines"},
  {field = "all_can_invite", boolean_value = true},
]
[modules.mod_muc]
backend = "rdbms"
hibernate_timeout = 90000
min_message_interval = 1
[modules.mod_vcard]
backend = "ldap"
[modules.mod_vcard.ldap]
base = "ou=cards,dc=example,dc=com"
search_operator = "or"
vcard_map = [{vcard_field = "FN", ldap_pattern = "%s", ldap_field = "displayName"}]
[modules.mod_shared_roster_ldap]
base = "dc=example,dc=com"
groupattr = "ou"
`;

/** The same databases in older spellings, and Riak, which newer versions do not know. */
const OLD_DATABASES = `
[auth.riak]
bucket_type = "accounts"
[outgoing_pools.riak.default]
scope = "single_host"
host = "example.com"
[outgoing_pools.riak.default.connection]
address = "riak.example.com"
port = 8087
credentials.user = "causeway"
credentials.password = "secret"
cacertfile = "r.pem"
ciphers = "ECDHE"
[outgoing_pools.ldap.default.connection]
servers = ["ldap.example.com"]
rootdn = "cn=reader,dc=example,dc=com"
password = "secret"
encrypt = "tls"
cacertfile = "l.pem"
[modules.mod_mam_meta]
backend = "riak"
riak.bucket_type = "mam_yz"
riak.search_index = "others"
pm.archive_groupchats = false
full_text_search = false
cache_users = true
async_writer = false
flush_interval = 500
message_retraction = false
[modules.mod_last]
backend = "riak"
riak.bucket_type = "last"
[modules.mod_roster]
backend = "elasticsearch"
[modules.mod_vcard]
backend = "ldap"
ldap_base = "ou=cards,dc=example,dc=com"
ldap_search_operator = "or"
[modules.mod_shared_roster_ldap]
ldap_base = "dc=example,dc=com"
ldap_groupattr = "ou"
`;

Deno.test("translateMongooseim() takes pools and modules of every database, in the newest spelling", () => {
  const { table, lost, notes } = translated(NEW_DATABASES);
  assert.deepEqual(table.outgoing_pools, {
    cassandra: {
      archive: {
        workers: 25,
        connection: {
          servers: [{ host: "c1.example.com", port: 9042 }, { host: "c2.example.com", port: 9142 }],
          keyspace: "mongooseim",
          username: "causeway",
          password: "secret",
          tls: { cafile: "c.pem" },
        },
      },
    },
    elastic: {
      default: { workers: 7, connection: { host: "es.example.com", port: 9211, tls: false } },
    },
    ldap: {
      default: {
        workers: 5,
        connection: {
          servers: ["ldap.example.com"],
          rootdn: "cn=reader,dc=example,dc=com",
          password: "secret",
          encrypt: "tls",
          tls: { cafile: "l.pem" },
        },
      },
      bind: { connection: { servers: ["127.0.0.1"], encrypt: "none" } },
    },
  });
  assert.deepEqual(table.auth, {
    backend: "ldap",
    mechanisms: ["PLAIN"],
    ldap: { base: "ou=people,dc=example,dc=com" },
  });
  assert.deepEqual(table.modules["mod_mam"], { backend: "elasticsearch", pm: {}, muc: false });
  assert.deepEqual(table.modules["mod_muc_light"], {
    backend: "rdbms",
    config_schema: [
      { field: "roomname", string_value: "The Room" },
      { field: "display-lines", string_value: "30" },
    ],
  });
  assert.deepEqual(table.modules["mod_muc"], { backend: "rdbms" });
  assert.deepEqual(table.modules["mod_vcard"], {
    backend: "ldap",
    ldap: {
      base: "ou=cards,dc=example,dc=com",
      vcard_map: [{ vcard_field: "FN", ldap_pattern: "%s", ldap_field: "displayName" }],
    },
  });
  assert.deepEqual(table.modules["mod_shared_roster_ldap"], {
    base: "dc=example,dc=com",
    groupattr: "ou",
  });
  assert.deepEqual(pathsOf(lost), [
    "auth.ldap.dn_filter",
    "modules.mod_mam.is_archivable_message",
    "modules.mod_muc.min_message_interval",
    "modules.mod_muc_light.config_schema[2].boolean_value",
    "modules.mod_muc_light.rooms_in_rosters",
    "modules.mod_vcard.ldap.search_operator",
    "outgoing_pools.cassandra.archive.connection.tls.ciphers",
  ]);
  assert.deepEqual(pathsOf(notes), [
    "modules.mod_mam.pm.same_mam_id_for_peers",
    "modules.mod_mam.user_prefs_store",
    "modules.mod_muc_light.config_schema[1].integer_value",
    "outgoing_pools.cassandra.archive.connection.keyspace",
    "outgoing_pools.cassandra.archive.connection.tls",
    "outgoing_pools.cassandra.archive.scope",
    "outgoing_pools.elastic.default.connection.host",
    "outgoing_pools.ldap.default.connection.tls",
  ]);
});

Deno.test("translateMongooseim() takes pools and modules of every database, in older spellings", () => {
  const { table, lost, notes } = translated(OLD_DATABASES);
  assert.deepEqual(table.outgoing_pools, {
    riak: {
      default: {
        connection: {
          address: "riak.example.com",
          username: "causeway",
          password: "secret",
          tls: { cafile: "r.pem" },
        },
      },
    },
    ldap: {
      default: {
        connection: {
          servers: ["ldap.example.com"],
          rootdn: "cn=reader,dc=example,dc=com",
          password: "secret",
          encrypt: "tls",
          tls: { cafile: "l.pem" },
        },
      },
    },
  });
  assert.deepEqual(table.auth, { backend: "riak" });
  const { mod_mam, mod_last, mod_roster, mod_vcard, mod_shared_roster_ldap } = table.modules;
  assert.deepEqual(mod_mam, {
    backend: "riak",
    full_text_search: false,
    pm: { archive_groupchats: false },
    muc: false,
  });
  assert.deepEqual(mod_last, { backend: "riak" });
  assert.deepEqual(mod_roster, {});
  assert.deepEqual(mod_vcard, { backend: "ldap", ldap: { base: "ou=cards,dc=example,dc=com" } });
  assert.deepEqual(mod_shared_roster_ldap, { base: "dc=example,dc=com", groupattr: "ou" });
  assert.deepEqual(pathsOf(lost), [
    "auth.riak.bucket_type",
    "modules.mod_mam_meta.riak.search_index",
    "modules.mod_roster.backend",
    "modules.mod_vcard.ldap_search_operator",
    "outgoing_pools.riak.default.connection.ciphers",
    "outgoing_pools.riak.default.scope",
  ]);
  assert.deepEqual(pathsOf(notes), ["outgoing_pools.riak.default.connection.address"]);
});

Deno.test("translateMongooseim() writes pools that causeway check takes", () => {
  for (const databases of [NEW_DATABASES, OLD_DATABASES]) {
    const general = '[general]\nhosts = ["example.com", "dc1.example.com"]\n' +
      '[modules.mod_global_distrib]\nglobal_host = "example.com"\nlocal_host = "dc1.example.com"\n' +
      'connections.tls.enabled = false\nredis.pool = "x"\n' +
      '[outgoing_pools.redis.x.connection]\nhost = "127.0.0.1"\n' +
      '[outgoing_pools.rdbms.default.connection]\ndriver = "pgsql"\nhost = "127.0.0.1"\n' +
      'database = "d"\nusername = "u"\npassword = "p"\n';
    const { toml } = translateMongooseim(general + databases, "m.toml");
    assert.deepEqual(findingsIn(toml), [], toml);
  }
});

Deno.test("translateMongooseim() names a driver that is not here", () => {
  const { lost } = translated(
    '[outgoing_pools.rdbms.default.connection]\ndriver = "cockroachdb"\nhost = "db"\n',
  );
  assert.deepEqual(pathsOf(lost), ["outgoing_pools.rdbms.default.connection.driver"]);
});

Deno.test("translateMongooseim() takes call_timeout of the pool of Redis, and says what it does", () => {
  const { toml, lost, notes } = translateMongooseim(
    "[outgoing_pools.redis.global_distrib]\ncall_timeout = 3000\n[modules.mod_global_distrib]\n",
    "m.toml",
  );
  assert.match(toml, /^command_timeout_ms = 3000$/m);
  assert.deepEqual(lost, []);
  assert.deepEqual(pathsOf(notes), ["outgoing_pools.redis.global_distrib.call_timeout"]);
});

Deno.test("translateMongooseim() takes TLS of the pool of Redis, and names what it leaves out", () => {
  const pool = "outgoing_pools.redis.global_distrib.connection";
  const { toml, lost, notes } = translateMongooseim(
    '[general]\nhosts = ["example.com", "dc1.example.com"]\n' +
      '[[listen.c2s]]\nip_address = "127.0.0.1"\nport = 5222\n' +
      `[${pool}]\nhost = "redis.example.com"\ntls.verify_mode = "peer"\n` +
      'tls.cacertfile = "redis-ca.pem"\ntls.certfile = "redis.pem"\ntls.keyfile = "redis.key"\n' +
      'tls.ciphers = "ALL"\ntls.password = "of the key"\n' +
      "tls.server_name_indication.enabled = true\n" +
      'tls.server_name_indication.host = "cache.example.com"\n' +
      '[modules.mod_global_distrib]\nglobal_host = "example.com"\n' +
      'local_host = "dc1.example.com"\nconnections.tls.enabled = false\n',
    "m.toml",
  );
  assert.deepEqual(findingsIn(toml), [], toml);
  const table: Translated = JSON.parse(JSON.stringify(parseToml(toml, "c.toml")));
  const { redis } = table.modules["mod_global_distrib"] as { redis: Record<string, unknown> };
  assert.deepEqual(
    redis["tls"],
    {
      cafile: "redis-ca.pem",
      certfile: "redis.pem",
      keyfile: "redis.key",
      servername: "cache.example.com",
    },
  );
  assert.deepEqual(pathsOf(lost), [`${pool}.tls.ciphers`, `${pool}.tls.password`]);
  assert.ok(pathsOf(notes).includes(`${pool}.tls`), notes.join("\n"));

  const bare = translateMongooseim(`[${pool}]\ntls = {}\n[modules.mod_global_distrib]\n`, "m.toml");
  assert.match(bare.toml, /^\[modules\.mod_global_distrib\.redis\.tls\]$/m);
  assert.deepEqual(bare.lost, []);
});
