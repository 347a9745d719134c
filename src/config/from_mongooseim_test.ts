import assert from "node:assert/strict";
import { translateMongooseim } from "./from_mongooseim.ts";
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
`;

/** The spellings of older versions: options of Redis and TLS in place, and no list of methods. */
const OLD = `
[general]
hosts = ["example.org", "eu.example.org"]

[[listen.c2s]]
ip_address = "127.0.0.1"
port = 5222

[auth.internal]

[modules.mod_mam_meta]
backend = "cassandra"
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
      "archive_groupchats = true",
      "mod_ping = false",
      "message_ttl = 5",
    ]
  ) assert.ok(text.includes(part), `${part} is missing in ${toml}`);
  assert.deepEqual(lost.map((line) => line.split(": ").slice(0, 2).join(": ")).sort(), [
    "mongooseim.toml:10: listen.c2s[0].shaper",
    "mongooseim.toml:14: listen.c2s[0].tls.dhfile",
    "mongooseim.toml:5: general.language",
    "mongooseim.toml:62: modules.mod_vcard.host",
    "mongooseim.toml:70: modules.mod_offline",
  ]);
  assert.ok(notes.some((line) => line.includes("/xmpp-websocket")), notes.join("\n"));
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
  assert.equal(lost.length, 1, lost.join("\n"));
  assert.match(lost[0]!, /mod_mam_meta\.backend: not translated: no backend "cassandra" here$/);
  assert.match(notes.join("\n"), /in the clear/);
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
