import assert from "node:assert/strict";
import { translateMongooseim } from "./from_mongooseim.ts";
import { findingsIn, parse } from "./testing/config.ts";
import { pathsOf, translated } from "./testing/translation.ts";

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
