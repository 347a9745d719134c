import assert from "node:assert/strict";
import { translateMongooseim } from "./from_mongooseim.ts";
import { parseToml } from "./load_config.ts";
import { findingsIn, parse } from "./testing/config.ts";

const NEW = `
[general]
hosts = ["example.com", "dc1.example.com"]
loglevel = "warning"
language = "en"

[[listen.c2s]]
port = 5222
max_stanza_size = 65536
shaper = "normal"
tls.mode = "starttls_required"
tls.verify_mode = "none"
tls.certfile = "tls/c2s.pem"
tls.dhfile = "tls/dh.pem"

[[listen.c2s]]
port = 5223
tls.mode = "tls"
tls.verify_mode = "none"
tls.certfile = "tls/c2s.pem"
tls.keyfile = "tls/c2s.key"

[[listen.http]]
port = 5285
tls.certfile = "tls/c2s.pem"
tls.verify_mode = "none"
[[listen.http.handlers.mod_websockets]]
host = "_"
path = "/ws-xmpp"

[auth]
methods = ["rdbms"]
sasl_mechanisms = ["scram_sha256", "scram_sha256_plus", "plain"]
password.format = "scram"
password.scram_iterations = 4096

[outgoing_pools.redis.global_distrib]
workers = 5
[outgoing_pools.redis.global_distrib.connection]
host = "10.0.0.7"
port = 8102

[outgoing_pools.rdbms.default]
workers = 20
[outgoing_pools.rdbms.default.connection]
driver = "pgsql"
host = "db.example.com"
database = "xmpp"
username = "xmpp"
password = "secret"
keepalive_interval = 30
tls.required = true
tls.cacertfile = "tls/db-ca.pem"

[modules.mod_disco]
users_can_see_hidden_services = false
[modules.mod_roster]
backend = "rdbms"
versioning = true
[modules.mod_vcard]
backend = "rdbms"
host = "vjud.@HOST@"
[modules.mod_mam]
backend = "rdbms"
pm.archive_groupchats = true
[modules.mod_stream_management]
buffer_max = 100
stale_h.enabled = true
stale_h.repeat_after = 1800
[modules.mod_offline]
backend = "rdbms"
[modules.mod_presence]

[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
message_ttl = 5
connections.endpoints = [{host = "10.0.0.1", port = 5555}]
connections.advertised_endpoints = false
connections.tls.enabled = true
connections.tls.certfile = "tls/dc1.pem"
connections.tls.cacertfile = "tls/ca.pem"
redis.pool = "global_distrib"
redis.expire_after = 240
cache.domain_lifetime_seconds = 60
bounce.enabled = false

[global_distrib_addr]
"dc2.example.com" = [{host = "203.0.113.7", port = 6555}]
`;

/** The spellings of older versions: options of Redis and TLS in place, and no list of methods. */
const OLD = `
[general]
hosts = ["example.org", "eu.example.org"]

[[listen.c2s]]
ip_address = "127.0.0.1"
port = 5222

[auth.internal]

[outgoing_pools.cassandra.default.connection]
servers = [{host = "127.0.0.1", port = 9042}]

[modules.mod_mam_meta]
backend = "cassandra"
muc.backend = "rdbms"
[modules.mod_register]

[modules.mod_global_distrib]
global_host = "example.org"
local_host = "eu.example.org"
connections.tls_opts.certfile = "eu.pem"
connections.tls_opts.cafile = "ca.pem"
redis.server = "127.0.0.1"
redis.port = 8103
redis.pool_size = 200
bounce = false
`;

Deno.test("translateMongooseim() carries over what both servers have, in the newer spelling", () => {
  const { toml, lost, notes } = translateMongooseim(NEW, "mongooseim.toml");
  assert.deepEqual(findingsIn(toml), []);
  const config = parse(toml);
  assert.deepEqual(config.hosts.map(String), ["example.com", "dc1.example.com"]);
  assert.equal(config.log.level, "warn");
  const text = toml.replaceAll(/\s+/g, " ");
  for (
    const part of [
      'mode = "starttls"',
      'mode = "direct"',
      'keyfile = "tls/c2s.key"',
      "max_stanza_bytes = 65536",
      'mechanisms = [ "SCRAM-SHA-256", "PLAIN" ]',
      "scram_iterations = 10000",
      'server = "10.0.0.7"',
      "pool_size = 5",
      'replication = "external"',
      "expire_after = 240",
      'cafile = "tls/ca.pem"',
      "bounce = false",
      "buffer_max = 100",
      "users_can_see_hidden_services = false",
      '[[global_distrib_addr."dc2.example.com"]] host = "203.0.113.7" port = 6555',
      "archive_groupchats = true",
      "mod_ping = false",
      "message_ttl = 5",
    ]
  ) assert.ok(text.includes(part), `${part} is missing in ${toml}`);
  assert.deepEqual(lost.map((line) => line.split(": ").slice(0, 2).join(": ")), [
    "mongooseim.toml:5: general.language",
    "mongooseim.toml:10: listen.c2s[0].shaper",
    "mongooseim.toml:14: listen.c2s[0].tls.dhfile",
    "mongooseim.toml:35: auth.password.scram_iterations",
    "mongooseim.toml:62: modules.mod_vcard.host",
    "mongooseim.toml:70: modules.mod_offline",
  ]);
  assert.ok(notes.some((line) => line.includes("/xmpp-websocket")), notes.join("\n"));
});

Deno.test("translateMongooseim() keeps hidden components visible where MongooseIM shows them", () => {
  const { toml } = translateMongooseim("[modules.mod_disco]\n", "m.toml");
  assert.match(toml, /\[modules\.mod_disco\]\nusers_can_see_hidden_services = true/);
  const without = translateMongooseim("[modules.mod_ping]\n", "m.toml");
  assert.match(without.toml, /mod_disco = false/);
});

Deno.test("translateMongooseim() reads the older spellings", () => {
  const { toml, lost, notes } = translateMongooseim(OLD, "mongooseim.toml");
  assert.deepEqual(findingsIn(toml), []);
  const text = toml.replaceAll(/\s+/g, " ");
  for (
    const part of [
      'backend = "internal"',
      'cafile = "ca.pem"',
      "port = 8103",
      "pool_size = 64",
      "bounce = false",
      "allow_registration = true",
      "[modules.mod_mam]",
    ]
  ) assert.ok(text.includes(part), `${part} is missing in ${toml}`);
  assert.deepEqual(pathsOf(lost), [
    "modules.mod_global_distrib.redis.pool_size",
    "modules.mod_mam_meta.muc.backend",
  ]);
  assert.match(
    lost.join("\n"),
    /mod_mam_meta\.muc\.backend: not translated: the archives of rooms lie with those/,
  );
  assert.match(notes.join("\n"), /in the clear/);
});

Deno.test("translateMongooseim() gives rooms archives where MongooseIM does", () => {
  const translated = (muc: string) =>
    translateMongooseim(`[modules.mod_mam]\npm.archive_groupchats = false\n${muc}`, "m.toml");
  assert.match(translated("").toml, /muc = false/);
  const { toml, lost } = translated('muc.host = "rooms.@HOST@"\nmuc.max_result_limit = 20\n');
  assert.match(toml, /\[modules\.mod_mam\.muc\]\nmax_result_limit = 20/);
  assert.deepEqual(lost.filter((line) => line.includes("mod_mam")), []);
});

Deno.test("translateMongooseim() takes the options of rooms, and names those that it cannot take", () => {
  const { toml, lost } = translateMongooseim(
    `[modules.mod_muc]\nhost = "muc.@HOST@"\nhistory_size = 30\nmax_room_id = "infinity"\n` +
      `access = "muc"\n[modules.mod_muc.default_room]\npersistent = true\nlogging = true\n`,
    "m.toml",
  );
  const [, rooms] = /\[modules\.mod_muc\]\n([^]*?)\n\n/.exec(`${toml}\n\n`) ?? [];
  assert.match(rooms ?? "", /host = "muc\.@HOST@"/);
  assert.match(rooms ?? "", /history_size = 30/);
  assert.match(toml, /persistent = true/);
  assert.deepEqual(lost.map((line) => line.split(": ")[1]).sort(), [
    "modules.mod_muc.access",
    "modules.mod_muc.default_room.logging",
    "modules.mod_muc.max_room_id",
  ]);
});

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

/** Returns the paths in lines, in their order. */
function pathsOf(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.split(": ")[1]!).sort();
}

function translated(text: string) {
  const translation = translateMongooseim(text, "m.toml");
  // The parser's tables have no prototype.
  const table: Translated = JSON.parse(JSON.stringify(parseToml(translation.toml, "c.toml")));
  return { ...translation, table };
}

interface Translated {
  readonly auth: Readonly<Record<string, unknown>>;
  readonly modules: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly outgoing_pools: unknown;
}

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

Deno.test("translateMongooseim() keeps archives of people off where no section turns them on", () => {
  const { table } = translated('[modules.mod_mam]\nmuc.backend = "rdbms"\n');
  assert.deepEqual(table.modules["mod_mam"], { pm: false, backend: "rdbms", muc: {} });
});

Deno.test("translateMongooseim() names everything that it does not know", () => {
  const { lost } = translateMongooseim(
    '[s2s]\ndefault_policy = "allow"\n[modules.mod_bosh]\nx = 1\n[made.up]\nx = 1\n',
    "m.toml",
  );
  assert.deepEqual(lost.map((line) => line.split(": ")[1]).sort(), [
    "made",
    "modules.mod_bosh",
    "s2s",
  ]);
});

Deno.test("translateMongooseim() names a driver that is not here", () => {
  const { lost } = translated(
    '[outgoing_pools.rdbms.default.connection]\ndriver = "cockroachdb"\nhost = "db"\n',
  );
  assert.deepEqual(pathsOf(lost), ["outgoing_pools.rdbms.default.connection.driver"]);
});

/** Values that MongooseIM takes, or has taken, and that Causeway's ranges move. */
const MOVED: readonly (readonly [option: string, path: string, written: string])[] = [
  ["[[listen.c2s]]\nmax_stanza_size = 4000", "listen.c2s[0]", "max_stanza_bytes = 10000"],
  ["[[listen.c2s]]\nmax_stanza_size = 20000000", "listen.c2s[0]", "max_stanza_bytes = 16777216"],
  ["[auth.password]\nscram_iterations = 4096", "auth.password", "scram_iterations = 10000"],
  ["[auth]\nscram_iterations = 4096", "auth", "scram_iterations = 10000"],
  ["[auth]\nscram_iterations = 20000000", "auth", "scram_iterations = 10000000"],
  [
    "[outgoing_pools.redis.global_distrib]\nworkers = 200",
    "outgoing_pools.redis.global_distrib",
    "pool_size = 64",
  ],
  [
    "[outgoing_pools.redis.global_distrib]\ncall_timeout = 50",
    "outgoing_pools.redis.global_distrib",
    "command_timeout_ms = 100",
  ],
  [
    "[outgoing_pools.redis.global_distrib]\ncall_timeout = 90000",
    "outgoing_pools.redis.global_distrib",
    "command_timeout_ms = 60000",
  ],
  ...([
    ["hosts_refresh_interval = 0", "", "hosts_refresh_interval = 1"],
    ["connections.connections_per_endpoint = 0", ".connections", "connections_per_endpoint = 1"],
    ["connections.endpoint_refresh_interval = 0", ".connections", "endpoint_refresh_interval = 1"],
    [
      "connections.endpoint_refresh_interval_when_empty = 0",
      ".connections",
      "endpoint_refresh_interval_when_empty = 1",
    ],
    ["connections.disabled_gc_interval = 0", ".connections", "disabled_gc_interval = 1"],
    ["redis.pool_size = 65", ".redis", "pool_size = 64"],
    ["redis.refresh_after = 0", ".redis", "refresh_after = 1"],
    ["cache.max_jids = 0", ".cache", "max_jids = 1"],
    ["bounce.resend_after_ms = 0", ".bounce", "resend_after_ms = 1"],
  ] as const).map(([option, table, written]) =>
    [
      `[modules.mod_global_distrib]\n${option}`,
      `modules.mod_global_distrib${table}`,
      written,
    ] as const
  ),
];

for (const [option, path, written] of MOVED) {
  Deno.test(`translateMongooseim() says that it writes ${written} for ${JSON.stringify(option)}`, () => {
    const table = "[modules.mod_global_distrib]\n";
    const text = option.startsWith(table) ? option : `${option}\n${table}`;
    const { toml, lost } = translateMongooseim(`${text}\n`, "m.toml");
    assert.match(toml, new RegExp(`^${written}$`, "m"));
    const key = /(\w+) = \d+$/.exec(option)![1]!;
    const [value] = /\d+$/.exec(written)!;
    assert.equal(lost.length, 1, lost.join("\n"));
    assert.equal(lost[0]!.split(": ")[1], `${path}.${key}`);
    assert.match(
      lost[0]!,
      new RegExp(`: not translated as it stands: .* is ${value} (now|for)\\b`),
    );
  });
}

Deno.test("translateMongooseim() writes moved values that causeway check takes", () => {
  const { toml } = translateMongooseim(
    '[general]\nhosts = ["example.com", "dc1.example.com"]\n[auth]\nscram_iterations = 1\n' +
      "[outgoing_pools.redis.global_distrib]\nworkers = 1000\ncall_timeout = 1\n" +
      '[outgoing_pools.redis.global_distrib.connection]\nhost = "127.0.0.1"\n' +
      '[[listen.c2s]]\nip_address = "127.0.0.1"\nport = 5222\nmax_stanza_size = 1\n' +
      '[modules.mod_global_distrib]\nglobal_host = "example.com"\n' +
      'local_host = "dc1.example.com"\nhosts_refresh_interval = 0\n' +
      "connections.connections_per_endpoint = 0\nconnections.endpoint_refresh_interval = 0\n" +
      "connections.endpoint_refresh_interval_when_empty = 0\n" +
      "connections.disabled_gc_interval = 0\nredis.refresh_after = 0\ncache.max_jids = 0\n" +
      "bounce.resend_after_ms = 0\n",
    "m.toml",
  );
  assert.deepEqual(findingsIn(toml), [], toml);
});

Deno.test("translateMongooseim() names ports whose bound of a stanza is not the one of all ports", () => {
  const port = (size: string) => `[[listen.c2s]]\nmax_stanza_size = ${size}\n`;
  const { toml, lost } = translateMongooseim(
    port("20000") + port("65536") + port('"infinity"') + port("65536"),
    "m.toml",
  );
  assert.match(toml, /^max_stanza_bytes = 65536$/m);
  assert.deepEqual(pathsOf(lost), [
    "listen.c2s[0].max_stanza_size",
    "listen.c2s[2].max_stanza_size",
  ]);
  const unbounded = translateMongooseim(port("0"), "m.toml");
  assert.doesNotMatch(unbounded.toml, /max_stanza_bytes/);
  assert.deepEqual(pathsOf(unbounded.lost), ["listen.c2s[0].max_stanza_size"]);
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

/** Options that are not the same here, with how the translation tells so. */
const TOLD: readonly (readonly [option: string, path: string, list: "lost" | "notes"])[] = [
  ['[general]\nloglevel = "none"', "general.loglevel", "notes"],
  ['[general]\nloglevel = "loud"', "general.loglevel", "lost"],
  ['[auth]\npassword.hash = ["sha512"]', "auth.password.hash", "notes"],
  [
    '[auth]\nmethods = ["ldap"]\nsasl_mechanisms = ["scram_sha256"]',
    "auth.sasl_mechanisms",
    "notes",
  ],
  [
    '[modules.mod_global_distrib.connections.tls]\ncertfile = "c.pem"\nverify_mode = "none"',
    "modules.mod_global_distrib.connections.tls.verify_mode",
    "notes",
  ],
  [
    "[[listen.http]]\ntransport.num_acceptors = 5\ntransport.max_connections = 10\n" +
    '[[listen.http.handlers.mod_websockets]]\nhost = "_"',
    "listen.http[0].transport.max_connections",
    "lost",
  ],
];

for (const [option, path, list] of TOLD) {
  Deno.test(`translateMongooseim() names ${path} among the ${list}: ${JSON.stringify(option)}`, () => {
    const translation = translateMongooseim(`${option}\n`, "m.toml");
    assert.deepEqual(pathsOf(translation[list]), [path]);
  });
}

Deno.test("translateMongooseim() says where metrics are", () => {
  const { lost } = translateMongooseim("[instrumentation.prometheus]\n", "m.toml");
  assert.match(lost[0]!, /\/metrics/);
});
