import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { findingsIn, parse, SOUND } from "./testing/config.ts";
import { ConfigError } from "./config_error.ts";

const FIXTURES = new URL("../../fixtures/config/", import.meta.url);

interface Case {
  readonly what: string;
  /** Put behind a sound file, at line 9, inside `modules.mod_global_distrib`. */
  readonly text: string;
  readonly expected: string;
}

const MODULE = "modules.mod_global_distrib";

const CASES: readonly Case[] = [
  {
    what: "an unknown key beside a near one",
    text: "mesage_ttl = 3",
    expected: `9: ${MODULE}.mesage_ttl: unknown key, did you mean message_ttl? allowed here: ` +
      "global_host, local_host, message_ttl, hosts_refresh_interval, connections, redis, cache, bounce",
  },
  {
    what: "an unknown key that resembles none",
    text: "cache.zzz = 3",
    expected: `9: ${MODULE}.cache.zzz: unknown key; allowed here: cache_missed, ` +
      "domain_lifetime_seconds, jid_lifetime_seconds, max_jids",
  },
  {
    what: "a key where none are allowed",
    text: "[modules.mod_ping]\nfast = true",
    expected: "10: modules.mod_ping.fast: unknown key; no keys are allowed here",
  },
  {
    what: "an unknown key in a table that may also be false",
    text: "bounce = { max_retry = 3 }",
    expected: `9: ${MODULE}.bounce.max_retry: unknown key, did you mean max_retries? ` +
      "allowed here: resend_after_ms, max_retries, max_items, max_bytes",
  },
  {
    what: "true for a module that is on by itself",
    text: "[modules]\nmod_ping = true",
    expected: "10: modules.mod_ping: expected a table, or false to turn it off, found true",
  },
  {
    what: "an unknown table",
    text: "[modules.mod_pong]",
    expected: "9: modules.mod_pong: unknown key, did you mean mod_ping? allowed here: " +
      "mod_global_distrib, mod_stream_management, mod_disco, mod_carboncopy, mod_ping, mod_time, mod_version, mod_last, mod_mam, mod_muc_light, mod_muc, mod_blocking, mod_privacy, mod_private, mod_pubsub, mod_roster, mod_shared_roster_ldap, mod_register, mod_vcard, mod_offline",
  },
  {
    what: "an unknown kind of pool",
    text: "[outgoing_pools.mysql.default]",
    expected: "9: outgoing_pools.mysql: unknown key, did you mean rdbms? allowed here: " +
      "cassandra, elastic, ldap, rdbms, riak",
  },
  {
    what: "a pool of Redis, whose server is named elsewhere",
    text: "[outgoing_pools.redis.default]",
    expected:
      "9: outgoing_pools.redis: not allowed here: Redis holds the session table alone, and " +
      "its server is named in [modules.mod_global_distrib.redis]",
  },
  {
    what: "a text for an integer",
    text: 'message_ttl = "4"',
    expected: `9: ${MODULE}.message_ttl: expected an integer, 0 or more, found "4"`,
  },
  {
    what: "a fraction for an integer",
    text: "message_ttl = 1.5",
    expected: `9: ${MODULE}.message_ttl: expected an integer, 0 or more, found 1.5`,
  },
  {
    what: "a number below the least",
    text: "message_ttl = -1",
    expected: `9: ${MODULE}.message_ttl: expected an integer, 0 or more, found -1`,
  },
  {
    what: "infinity",
    text: "message_ttl = inf",
    expected: `9: ${MODULE}.message_ttl: expected an integer, 0 or more, found Infinity`,
  },
  {
    what: "a date for a number",
    text: "message_ttl = 2026-01-01",
    expected: `9: ${MODULE}.message_ttl: expected an integer, 0 or more, found a date`,
  },
  {
    what: "a list for a table",
    text: "cache = [1]",
    expected: `9: ${MODULE}.cache: expected a table, found a list`,
  },
  {
    what: "a table for a list",
    text: "connections.endpoints = { host = 'a', port = 1 }",
    expected:
      `9: ${MODULE}.connections.endpoints: expected a list of { host, port }, found a table`,
  },
  {
    what: "a text for a boolean",
    text: 'cache.cache_missed = "yes"',
    expected: `9: ${MODULE}.cache.cache_missed: expected true or false, found "yes"`,
  },
  {
    what: "a word that is none of the allowed",
    text: '[log]\nlevel = "warning"',
    expected: '10: log.level: expected "debug", "info", "warn" or "error", found "warning", ' +
      'did you mean "warn"?',
  },
  {
    what: "an engine of SQL by a name of its own",
    text: '[outgoing_pools.rdbms.default.connection]\nurl = "mysql://a@localhost/b"\n' +
      'driver = "postgres"',
    expected: '11: outgoing_pools.rdbms.default.connection.driver: expected "pgsql", "mysql" or ' +
      '"mssql", found "postgres", did you mean "pgsql"?',
  },
  {
    what: "an engine of SQL for the backend that has them all",
    text: '[auth]\nbackend = "mysql"',
    expected: '10: auth.backend: expected "internal", "redis", "rdbms", "riak", "elasticsearch", ' +
      '"ldap" or "cassandra", found "mysql", did you mean "rdbms"?',
  },
  {
    what: "an option by its name in MongooseIM",
    text: '[listen.admin]\nip_address = "127.0.0.1"',
    expected: "10: listen.admin.ip_address: unknown key, did you mean host? " +
      "allowed here: host, port, socket, token, tokens, tls, certificates",
  },
  {
    what: "an option by its name in MongooseIM that resembles another one",
    text: '[modules.mod_global_distrib.redis.tls]\ncacertfile = "ca.pem"',
    expected: `10: ${MODULE}.redis.tls.cacertfile: unknown key, did you mean cafile? ` +
      "allowed here: cafile, certfile, keyfile, servername",
  },
  {
    what: "true for a table or false",
    text: "bounce = true",
    expected: `9: ${MODULE}.bounce: expected a table, or false to turn bouncing off, found true`,
  },
  {
    what: "an address with its port inside",
    text: 'connections.seeds = [{ host = "a", port = 1 }, { host = "b:5555" }]',
    expected:
      `9: ${MODULE}.connections.seeds[1].port: missing; expected an integer from 1 to 65535`,
  },
  {
    what: "a URL for an address",
    text:
      'connections.seeds = [\n  { host = "a", port = 1 },\n  { host = "tcp://b", port = 1 },\n]',
    expected: `11: ${MODULE}.connections.seeds[1].host: expected a host name or IP address, ` +
      'found "tcp://b"',
  },
  {
    what: "port 0 of another node",
    text: 'connections.advertised_endpoints = [{ host = "a", port = 0 }]',
    expected: `9: ${MODULE}.connections.advertised_endpoints[0].port: expected an integer from 1 ` +
      "to 65535, found 0",
  },
  {
    what: "a port that TCP does not have",
    text: 'connections.endpoints = [{ host = "a", port = 65536 }]',
    expected:
      `9: ${MODULE}.connections.endpoints[0].port: expected an integer from 0 to 65535, found 65536`,
  },
  {
    what: "a domain with a character that none has",
    text: '[global_distrib_addr]\n"dc 2" = [{ host = "a", port = 1 }]',
    expected:
      '10: global_distrib_addr."dc 2": expected a domain such as "example.com" as the key, ' +
      'found "dc 2"',
  },
  {
    what: "an address list without an address",
    text: '[global_distrib_addr]\n"dc2.example.com" = []',
    expected: '10: global_distrib_addr."dc2.example.com": expected a list of at least 1 of ' +
      "{ host, port }, found an empty list",
  },
  {
    what: "a secret of another type, without showing it",
    text: "redis.password = 12345",
    expected: `9: ${MODULE}.redis.password: expected a string, { env = "NAME" } or ` +
      '{ file = "PATH" }, found a number',
  },
  {
    what: "the secret of enumeration, without showing it",
    text: "[auth]\nenumeration_secret = 12345",
    expected: '10: auth.enumeration_secret: expected a string, { env = "NAME" } or ' +
      '{ file = "PATH" }, found a number',
  },
  {
    what: "a secret from somewhere else",
    text: 'redis.password = { vault = "x" }',
    expected: `9: ${MODULE}.redis.password: expected a string, { env = "NAME" } or ` +
      '{ file = "PATH" }, found a table',
  },
  {
    what: "a secret from two places",
    text: 'redis.password = { env = "SET", file = "x" }',
    expected: `9: ${MODULE}.redis.password.file: not allowed together with env`,
  },
  {
    what: "a variable that is not set",
    text: 'redis.password = { env = "UNSET" }',
    expected: `9: ${MODULE}.redis.password.env: the environment variable UNSET is not set`,
  },
];

for (const { what, text, expected } of CASES) {
  Deno.test(`parseConfig() reports ${what}`, () => {
    assert.deepEqual(findingsIn(`${SOUND}${text}\n`), [expected]);
  });
}

Deno.test("parseConfig() reports text that is not TOML, with its line", () => {
  assert.deepEqual(findingsIn("a = 1\nb = [1,\nc"), ["3: : not TOML: invalid value (column 1)"]);
  assert.deepEqual(findingsIn("a = 1\na = 2"), [
    "2: : not TOML: trying to redefine an already defined table or value (column 1)",
  ]);
});

Deno.test("parseConfig() reports the required options that an empty file lacks", () => {
  assert.deepEqual(findingsIn("", { hostname: () => "box" }), [
    "-: hosts: missing; expected a list of at least one domain",
    "-: modules: missing; expected a table with mod_global_distrib",
  ]);
});

Deno.test("parseConfig() reports an unreadable file at the key that names it", () => {
  const text = SOUND.replace(
    "tls_opts = false",
    'tls_opts = { certfile = "a.pem", cafile = "b.pem" }',
  );
  const readFile = (path: string): string => {
    if (path === "/etc/causeway/b.pem") throw new Error("permission denied");
    return "";
  };
  assert.deepEqual(findingsIn(text, { readFile }), [
    `7: ${MODULE}.connections.tls_opts.cafile: cannot read /etc/causeway/b.pem: permission denied`,
  ]);
});

Deno.test("parseConfig() asks for node_name when the machine's name is unknown", () => {
  const hostname = (): string => {
    throw new Error("not permitted");
  };
  assert.deepEqual(findingsIn(SOUND, { hostname }), []);
  assert.deepEqual(findingsIn(SOUND.replace(/node_name.*\n/, ""), { hostname }), [
    "-: node_name: missing, and this machine's name is unknown: not permitted",
  ]);
});

Deno.test("parseConfig() reports all mistakes of a file at once, in the file's order", () => {
  const expected = readFileSync(new URL("broken.findings.txt", FIXTURES), "utf8").trimEnd();
  const text = readFileSync(new URL("broken.toml", FIXTURES), "utf8");
  const readFile = (): string => {
    throw new Error("no such file");
  };
  assert.throws(() => parse(text, { file: "broken.toml", readFile }), (thrown) => {
    assert.ok(thrown instanceof ConfigError);
    assert.equal(thrown.code, "config/invalid");
    assert.deepEqual(thrown.message.split("\n"), expected.split("\n"));
    return true;
  });
});

Deno.test("parseConfig() explains why TLS driver options of the reference have no effect", () => {
  for (
    const [key, value, reason] of [
      ["dhfile", '"dh.pem"', /TLS 1\.3 alone, .*Diffie-Hellman parameters .* have no effect/],
      ["ciphers", '"TLS_AES_128_GCM_SHA256"', /TLS 1\.3 alone, .* takes no choice among them/],
      ["protocol_options", '["no_tlsv1"]', /TLS 1\.3 alone, .* older versions/],
    ] as const
  ) {
    const found = findingsIn(SOUND.replace(
      "tls_opts = false",
      `tls_opts = { certfile = "a.pem", cafile = "b.pem", ${key} = ${value} }`,
    ));
    assert.equal(found.length, 1, found.join("\n"));
    assert.match(
      found[0]!,
      new RegExp(`^7: ${MODULE}\\.connections\\.tls_opts\\.${key}: not allowed`),
    );
    assert.match(found[0]!, reason);
  }
});

Deno.test("parseConfig() does not speak of links where a port for clients has TLS driver options", () => {
  const found = findingsIn(SOUND.replace(
    "[modules.mod_global_distrib]",
    '[[listen.c2s]]\ntls = { mode = "none", dhfile = "dh.pem" }\n\n[modules.mod_global_distrib]',
  ));
  const [mistake] = found.filter((line) => line.includes("dhfile"));
  assert.match(
    mistake!,
    /listen\.c2s\[0\]\.tls\.dhfile: not allowed: TLS 1\.2 and 1\.3 are spoken here/,
  );
});

Deno.test("parseConfig() names the command that translates a configuration of MongooseIM", () => {
  const found = findingsIn(`${SOUND}\n[general]\nloglevel = "warning"\n`);
  assert.match(found.join("\n"), /general: no table of Causeway's: .*config from-mongooseim/);
});
