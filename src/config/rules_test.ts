import assert from "node:assert/strict";
import { findingsIn, SOUND } from "./testing/config.ts";

interface Case {
  readonly what: string;
  readonly text: string;
  readonly expected: readonly string[];
}

/** Returns `SOUND` with one text replaced. */
function edited(from: string, to: string): string {
  assert.ok(SOUND.includes(from), from);
  return SOUND.replace(from, to);
}

function appended(text: string): string {
  return `${SOUND}${text}`;
}

const MODULE = "modules.mod_global_distrib";

const CASES: readonly Case[] = [
  { what: "a sound file", text: SOUND, expected: [] },
  {
    what: "a host that is listed twice",
    text: edited('"dc1.example.com"]', '"dc1.example.com", "EXAMPLE.com"]'),
    expected: ['1: hosts[2]: "EXAMPLE.com" is listed twice'],
  },
  {
    what: "a host whose key is the session table's own",
    text: edited('"dc1.example.com"]', '"dc1.example.com", "Hosts."]'),
    expected: [
      '1: hosts[2]: "Hosts." is a key of the session table, and cannot be a domain',
    ],
  },
  {
    what: "a global host that is not served",
    text: edited('global_host = "example.com"', 'global_host = "exmaple.com"'),
    expected: [
      `5: ${MODULE}.global_host: expected one of hosts ("example.com" or "dc1.example.com"), ` +
      'found "exmaple.com", did you mean "example.com"?',
    ],
  },
  {
    what: "a local host that is not served",
    text: edited('local_host = "dc1.example.com"', 'local_host = "elsewhere.net"'),
    expected: [
      `6: ${MODULE}.local_host: expected one of hosts ("example.com" or "dc1.example.com"), ` +
      'found "elsewhere.net"',
    ],
  },
  {
    what: "a host written in another case",
    text: edited('global_host = "example.com"', 'global_host = "Example.COM"'),
    expected: [],
  },
  {
    what: "one host as global and local",
    text: edited('local_host = "dc1.example.com"', 'local_host = "example.com"'),
    expected: [
      `6: ${MODULE}.local_host: expected a domain of this datacenter alone, ` +
      'found the global host "example.com"',
    ],
  },
  {
    what: "the module under host_config",
    text: appended('[host_config."example.com".modules.mod_global_distrib]\nmessage_ttl = 1\n'),
    expected: [
      '9: host_config."example.com".modules.mod_global_distrib: not allowed in host_config: the ' +
      "module stands only under the top-level modules, as [modules.mod_global_distrib]",
    ],
  },
  {
    what: "host_config of a host without quotes",
    text: appended("[host_config.example.com.modules]\nmod_ping = false\n"),
    expected: [
      "9: host_config.example.com: unknown key; allowed here: auth, modules",
      '9: host_config.example: a name with dots needs quotes, as in [host_config."example.com"]',
    ],
  },
  {
    what: "host_config of a host that is not served",
    text: appended('[host_config."dc2.example.com".modules.mod_ping]\n'),
    expected: [
      '9: host_config."dc2.example.com": expected one of hosts ("example.com" or ' +
      '"dc1.example.com"), found "dc2.example.com", did you mean "dc1.example.com"?',
    ],
  },
  {
    what: "mod_offline on every host",
    text: appended("[modules.mod_offline]\n"),
    expected: [
      "9: modules.mod_offline: not allowed: here it is active on every host, and mod_offline must " +
      "not be active on the global host or the local host; name the other hosts it is for, as " +
      '[host_config."HOST".modules.mod_offline]',
    ],
  },
  {
    what: "mod_offline on the global host",
    text: appended('[host_config."example.com".modules.mod_offline]\n'),
    expected: [
      '9: host_config."example.com".modules.mod_offline: not allowed: mod_offline must not be ' +
      'active on the global host "example.com"',
    ],
  },
  {
    what: "mod_offline on the local host",
    text: appended('[host_config."DC1.example.com".modules.mod_offline]\n'),
    expected: [
      '9: host_config."DC1.example.com".modules.mod_offline: not allowed: mod_offline must not be ' +
      'active on the local host "DC1.example.com"',
    ],
  },
  {
    what: "rooms of another host than the global one",
    text: appended('[host_config."dc1.example.com".modules.mod_muc_light]\n'),
    expected: [
      '9: host_config."dc1.example.com".modules.mod_muc_light: not allowed: rooms are those of the ' +
      "global host",
    ],
  },
  {
    what: "rooms at the domain of a host",
    text: appended("[modules.mod_muc_light]\nhost = 'dc1.example.com'\n"),
    expected: [
      '10: modules.mod_muc_light.host: "dc1.example.com" is a host or a component already',
    ],
  },
  {
    what: "rooms elsewhere",
    text: appended("[modules.mod_muc_light]\nhost = 'rooms.@HOST@.org'\n"),
    expected: [
      '10: modules.mod_muc_light.host: expected a domain below global_host ("example.com"), found ' +
      '"rooms.example.com.org"',
    ],
  },
  {
    what: "rooms of two kinds at one domain",
    text: appended(
      "[modules.mod_muc]\nhost = 'rooms.@HOST@'\n[modules.mod_muc_light]\nhost = 'rooms.@HOST@'\n",
    ),
    expected: [
      '10: modules.mod_muc.host: "rooms.example.com" is the domain of mod_muc_light already',
    ],
  },
  {
    what: "Multi-User Chat elsewhere",
    text: appended("[modules.mod_muc]\nhost = 'rooms.example.org'\n"),
    expected: [
      '10: modules.mod_muc.host: expected a domain below global_host ("example.com"), found ' +
      '"rooms.example.org"',
    ],
  },
  {
    what: "a refresh as late as expiry",
    text: appended("redis.refresh_after = 30\nredis.expire_after = 30\n"),
    expected: [`9: ${MODULE}.redis.refresh_after: expected less than expire_after (30), found 30`],
  },
  {
    what: "a refresh just before expiry",
    text: appended("redis.refresh_after = 29\nredis.expire_after = 30\n"),
    expected: [],
  },
  {
    what: "a refresh later than the default expiry",
    text: appended("redis.refresh_after = 121\n"),
    expected: [
      `9: ${MODULE}.redis.refresh_after: expected less than expire_after (120), found 121`,
    ],
  },
  {
    what: "an expiry before the default refresh",
    text: appended("redis.expire_after = 60\n"),
    expected: [`9: ${MODULE}.redis.expire_after: expected more than refresh_after (60), found 60`],
  },
  {
    what: "Redis at a server and at Sentinels",
    text: appended(
      'redis.server = "127.0.0.1"\nredis.sentinels = [{ host = "127.0.0.1", port = 26379 }]\n',
    ),
    expected: [
      `9: ${MODULE}.redis.server: not allowed together with sentinels, which says where Redis is`,
    ],
  },
  {
    what: "Redis at a port, at Sentinels and at a cluster of several connections",
    text: appended(
      "redis.port = 6379\n" +
        'redis.sentinels = [{ host = "127.0.0.1", port = 26379 }]\n' +
        'redis.cluster = [{ host = "127.0.0.1", port = 7000 }]\n' +
        "redis.pool_size = 2\n",
    ),
    expected: [
      `9: ${MODULE}.redis.port: not allowed together with cluster, which says where Redis is`,
      `10: ${MODULE}.redis.sentinels: not allowed together with cluster, which says where Redis is`,
      `12: ${MODULE}.redis.pool_size: not allowed together with cluster: one connection goes to ` +
      "each of its masters",
    ],
  },
  {
    what: "a password for Sentinels where there are none",
    text: appended('redis.sentinel_password = "hunter2"\n'),
    expected: [`9: ${MODULE}.redis.sentinel_password: not allowed without sentinels`],
  },
  {
    what: "a user of Redis without a password",
    text: appended('redis.username = "causeway"\n'),
    expected: [`9: ${MODULE}.redis.username: not allowed without password`],
  },
  {
    what: "a user of Redis with a password, over TLS, at Sentinels",
    text: appended(
      'redis.username = "causeway"\nredis.password = "hunter2"\nredis.tls = true\n' +
        'redis.sentinels = [{ host = "127.0.0.1", port = 26379 }]\nredis.sentinel_name = "dc1"\n',
    ),
    expected: [],
  },
  {
    what: "TLS over a Unix socket",
    text: appended('redis.server = "/run/redis.sock"\nredis.tls = true\n'),
    expected: [
      `10: ${MODULE}.redis.tls: not allowed with a Unix socket, found server = "/run/redis.sock"`,
    ],
  },
  {
    what: "a key for Redis without its certificate",
    text: appended('redis.tls = { keyfile = "key.pem" }\n'),
    expected: [`9: ${MODULE}.redis.tls.keyfile: not allowed without certfile, to which it belongs`],
  },
  {
    what: "no tls_opts",
    text: edited("connections.tls_opts = false\n", "connections.seeds = []\n"),
    expected: [
      `7: ${MODULE}.connections.tls_opts: missing; expected a table with certfile and cafile ` +
      "(and keyfile), or false for plain TCP",
    ],
  },
  ...["0.0.0.0", "::"].map((host) => ({
    what: `links within the datacenter at ${host}`,
    text: edited(
      "connections.tls_opts = false\n",
      `connections = { tls_opts = false, cluster = { host = "${host}", port = 0 } }\n`,
    ),
    expected: [
      `7: ${MODULE}.connections.cluster.host: expected an address of this node that the other ` +
      `nodes of its datacenter can reach, found "${host}"`,
    ],
  })),
  {
    what: "no connections at all",
    text: edited("connections.tls_opts = false\n", ""),
    expected: [`4: ${MODULE}.connections: missing; expected a table`],
  },
  {
    what: "tls_opts = true",
    text: edited("tls_opts = false", "tls_opts = true"),
    expected: [
      `7: ${MODULE}.connections.tls_opts: expected a table with certfile and cafile ` +
      "(and keyfile), or false for plain TCP, found true",
    ],
  },
  {
    what: "tls_opts without its CA",
    text: edited("tls_opts = false", 'tls_opts = { certfile = "a.pem" }'),
    expected: [`7: ${MODULE}.connections.tls_opts.cafile: missing; expected a file path`],
  },
  {
    what: "clients in the clear off loopback",
    text: appended('[[listen.c2s]]\nhost = "192.0.2.1"\ntls = { mode = "none" }\n'),
    expected: [
      '11: listen.c2s[0].tls.mode: "none" is refused on 192.0.2.1, which is not loopback: ' +
      'expected "starttls" or "direct", or allow_plaintext = true beside tls',
    ],
  },
  {
    what: "clients in the clear on every address by default",
    text: appended('[[listen.c2s]]\ntls = { mode = "none" }\n'),
    expected: [
      '10: listen.c2s[0].tls.mode: "none" is refused on 0.0.0.0, which is not loopback: ' +
      'expected "starttls" or "direct", or allow_plaintext = true beside tls',
    ],
  },
  {
    what: "clients in the clear off loopback, allowed",
    text: appended('[[listen.c2s]]\nallow_plaintext = true\ntls = { mode = "none" }\n'),
    expected: [],
  },
  ...["127.0.0.1", "127.9.9.9", "::1", "localhost"].map((host) => ({
    what: `clients in the clear on ${host}`,
    text: appended(`[[listen.c2s]]\nhost = "${host}"\ntls = { mode = "none" }\n`),
    expected: [],
  })),
  {
    what: "TLS without a certificate",
    text: appended('[[listen.c2s]]\ntls = { mode = "starttls" }\n'),
    expected: ['10: listen.c2s[0].tls.certfile: missing; mode "starttls" needs a file path'],
  },
  {
    what: "a certificate without TLS",
    text: appended(
      '[[listen.c2s]]\nhost = "::1"\n[listen.c2s.tls]\nmode = "none"\nkeyfile = "k.pem"\n',
    ),
    expected: ['13: listen.c2s[0].tls.keyfile: not allowed with mode "none"'],
  },
  {
    what: "clients without any word on TLS",
    text: appended("[[listen.c2s]]\nport = 0\n"),
    expected: [
      "9: listen.c2s[0].tls: missing; expected a table such as " +
      '{ mode = "starttls", certfile = "…", keyfile = "…" }',
    ],
  },
  {
    what: "a component with the domain of a host",
    text: appended('[[listen.component]]\ndomains = [{ name = "example.com", secret = "s" }]\n'),
    expected: [
      '10: listen.component[0].domains[0].name: "example.com" is one of hosts, and is served here ' +
      "itself",
    ],
  },
  {
    what: "a component with a domain whose key is the session table's own",
    text: appended('[[listen.component]]\ndomains = [{ name = "HOSTS", secret = "s" }]\n'),
    expected: [
      '10: listen.component[0].domains[0].name: "HOSTS" is a key of the session table, and ' +
      "cannot be a domain",
    ],
  },
  {
    what: "a component's domain on two ports",
    text: appended(
      '[[listen.component]]\ndomains = [{ name = "echo.example.com", secret = "s" }]\n'.repeat(2),
    ),
    expected: ['12: listen.component[1].domains[0].name: "echo.example.com" is listed twice'],
  },
  {
    what: "a component port without domains",
    text: appended("[[listen.component]]\ndomains = []\n"),
    expected: [
      "10: listen.component[0].domains: expected a list of at least one { name, secret }, " +
      "found an empty list",
    ],
  },
  {
    what: "admin off loopback without a token",
    text: appended('[listen.admin]\nhost = "0.0.0.0"\n'),
    expected: [
      "9: listen.admin.token: missing; the admin port on 0.0.0.0, which is not loopback, " +
      "needs a token",
    ],
  },
  {
    what: "admin off loopback with a token",
    text: appended('[listen.admin]\nhost = "0.0.0.0"\ntoken = "t"\n'),
    expected: [],
  },
  {
    what: "admin off loopback with a token that has a role",
    text: appended(
      '[listen.admin]\nhost = "0.0.0.0"\n' +
        'tokens = [{ name = "grafana", role = "read", token = "t" }]\n',
    ),
    expected: [],
  },
  {
    what: "two admin tokens with one name, and one that is empty",
    text: appended(
      '[[listen.admin.tokens]]\nname = "ops"\nrole = "act"\ntoken = "t"\n' +
        '[[listen.admin.tokens]]\nname = "ops"\nrole = "admin"\ntoken = ""\n',
    ),
    expected: [
      '14: listen.admin.tokens[1].name: "ops" is listed twice',
      "16: listen.admin.tokens[1].token: expected a secret, found an empty string",
    ],
  },
  {
    what: "admin certificates without authorities to verify them",
    text: appended(
      '[listen.admin]\nhost = "0.0.0.0"\n' +
        'tls = { certfile = "c.pem", keyfile = "k.pem" }\n' +
        'certificates = [{ name = "ops.example.com", role = "act" }]\n',
    ),
    expected: [
      "12: listen.admin.certificates: needs listen.admin.tls.cafile, by which client " +
      "certificates are verified",
    ],
  },
  {
    what: "admin off loopback with client certificates",
    text: appended(
      '[listen.admin]\nhost = "0.0.0.0"\n' +
        'tls = { certfile = "c.pem", keyfile = "k.pem", cafile = "ca.pem" }\n' +
        'certificates = [{ name = "ops.example.com", role = "act" }]\n',
    ),
    expected: [],
  },
  {
    what: "an empty admin token",
    text: appended('[listen.admin]\nhost = "0.0.0.0"\ntoken = ""\n'),
    expected: ["11: listen.admin.token: expected a secret, found an empty string"],
  },
  {
    what: "an empty secret of a component",
    text: appended(
      '[[listen.component]]\nport = 1\ndomains = [{ name = "a.example.com", secret = "" }]\n',
    ),
    expected: [
      "11: listen.component[0].domains[0].secret: expected a secret, found an empty string",
    ],
  },
  {
    what: "an empty enumeration secret",
    text: appended('[auth]\nenumeration_secret = ""\n'),
    expected: ["10: auth.enumeration_secret: expected a secret, found an empty string"],
  },
  {
    what: "too few PBKDF2 rounds",
    text: appended("[auth]\nscram_iterations = 9999\n"),
    expected: [
      "10: auth.scram_iterations: expected an integer from 10000 to 10000000, found 9999",
    ],
  },
  {
    what: "the least PBKDF2 rounds",
    text: appended("[auth]\nscram_iterations = 10000\n"),
    expected: [],
  },
  {
    what: "a frame one byte too small for a stanza",
    text: appended("[limits]\nmax_stanza_bytes = 100000\nlink_max_frame_bytes = 124575\n"),
    expected: [
      "11: limits.link_max_frame_bytes: expected 124576 or more, so that a stanza of " +
      "max_stanza_bytes (100000) fits a frame, found 124575",
    ],
  },
  {
    what: "a frame just large enough for a stanza",
    text: appended("[limits]\nmax_stanza_bytes = 100000\nlink_max_frame_bytes = 124576\n"),
    expected: [],
  },
  {
    what: "a budget for what waits that is too small for stanzas",
    text: appended(
      "[limits]\nmax_stanza_bytes = 1048577\nlink_max_frame_bytes = 2000000\nwaiting_max_bytes = 16777216\n",
    ),
    expected: [
      "12: limits.waiting_max_bytes: expected 16 times max_stanza_bytes (16777232) or more, " +
      "found 16777216",
    ],
  },
  {
    what: "a lane smaller than a frame",
    text: appended("[limits]\nlane_max_bytes = 524287\n"),
    expected: [
      "10: limits.lane_max_bytes: expected link_max_frame_bytes (524288) or more, found 524287",
    ],
  },
  {
    what: "more credit than may wait for a node to read",
    text: appended("[limits]\nlink_credit_bytes = 16252929\n"),
    expected: [
      "9: limits.link_max_pending_bytes: expected link_credit_bytes + link_max_frame_bytes " +
      "(16777217) or more, found 16777216",
    ],
  },
  {
    what: "as much credit as may wait for a node to read",
    text: appended("[limits]\nlink_credit_bytes = 16252928\n"),
    expected: [],
  },
  {
    what: "builtin replication, which is the default",
    text: edited('redis.replication = "external"', "redis.port = 8102"),
    expected: [],
  },
  {
    what: "builtin replication by name",
    text: edited('"external"', '"builtin"'),
    expected: [],
  },
  {
    what: "WebSockets without TLS off loopback, by default",
    text: appended("[[listen.websocket]]\nport = 5280\n"),
    expected: [
      "9: listen.websocket[0].tls: missing; a port on 0.0.0.0, which is not loopback, needs it, or " +
      "allow_plaintext = true",
    ],
  },
  {
    what: "WebSockets without TLS off loopback where that is allowed",
    text: appended("[[listen.websocket]]\nallow_plaintext = true\n"),
    expected: [],
  },
  ...["127.0.0.1", "::1", "localhost"].map((host) => ({
    what: `WebSockets without TLS on ${host}`,
    text: appended(`[[listen.websocket]]\nhost = "${host}"\n`),
    expected: [],
  })),
  ...["wss://chat.example.com/x?a=b", "ws://[2001:db8::1]:5280/xmpp-websocket"].map((url) => ({
    what: `WebSockets that are reached at ${url}`,
    text: appended(`[[listen.websocket]]\nhost = "::1"\nurl = "${url}"\n`),
    expected: [],
  })),
  ...["https://example.com/", "wss://", "wss://a b", "wss://a'b/", "wss://a/#x"].map((url) => ({
    what: `WebSockets that are reached at ${url}, which is no such URL`,
    text: appended(`[[listen.websocket]]\nhost = "::1"\nurl = "${url}"\n`),
    expected: [
      "11: listen.websocket[0].url: expected a URL such as " +
      `"wss://chat.example.com/xmpp-websocket", found "${url}"`,
    ],
  })),
  {
    what: "vCards and items that no stanza can bring",
    text: appended(
      "[modules.mod_vcard]\nmax_bytes = 253_953\n[modules.mod_pubsub]\n" +
        'max_payload_size = 300_000\n[host_config."example.com".modules.mod_vcard]\n' +
        "max_bytes = 1_000_000\n",
    ),
    expected: [
      ...[
        "10: modules.mod_vcard.max_bytes: expected 253952 or less, ",
        "12: modules.mod_pubsub.max_payload_size: expected 253952 or less, ",
        '14: host_config."example.com".modules.mod_vcard.max_bytes: expected 253952 or less, ',
      ].map((begin, index) =>
        `${begin}so that a request with it fits max_stanza_bytes (262144), found ` +
        ["253953", "300000", "1000000"][index]
      ),
    ],
  },
  {
    what: "the largest vCards and items that a stanza can bring, and defaults that are larger",
    text: appended(
      "[modules.mod_vcard]\nmax_bytes = 1808\n[limits]\nmax_stanza_bytes = 10_000\n",
    ),
    expected: [],
  },
  {
    what: "headers for a collector that would travel in the clear",
    text: appended(
      '[observe.otlp]\nendpoint = "http://collector.example.net:4318"\n' +
        'headers = { authorization = { env = "SET" } }\n',
    ),
    expected: [
      "10: observe.otlp.endpoint: expected an https URL, as headers for collector.example.net, " +
      "which is not loopback, are secrets",
    ],
  },
  {
    what: "headers for a collector over TLS",
    text: appended(
      '[observe.otlp]\nendpoint = "https://collector.example.net:4318"\n' +
        'headers = { authorization = { file = "token" } }\n',
    ),
    expected: [],
  },
  {
    what: "headers for a collector on this machine",
    text: appended('[observe.otlp]\nendpoint = "http://[::1]:4318"\nheaders = { a = "b" }\n'),
    expected: [],
  },
  {
    what: "a collector that is no URL, is asked for by a header that is no name, and gets too much",
    text: appended(
      '[observe.otlp]\nendpoint = "collector:4318"\nheaders = { "a b" = "c" }\n' +
        "signals = []\nsample_ratio = 1.5\n",
    ),
    expected: [
      "10: observe.otlp.endpoint: expected an http or https URL such as " +
      '"http://127.0.0.1:4318", found "collector:4318"',
      '11: observe.otlp.headers."a b": expected a header name as the key, found "a b"',
      '12: observe.otlp.signals: expected a list of "traces", "metrics" and "logs", found an empty list',
      "13: observe.otlp.sample_ratio: expected a number from 0 to 1, found 1.5",
    ],
  },
  {
    what: "offline storage on a third host",
    text: edited('"dc1.example.com"]', '"dc1.example.com", "other.net"]') +
      '[host_config."other.net".modules.mod_offline]\n',
    expected: [],
  },
];

for (const { what, text, expected } of CASES) {
  const behaviour = expected.length === 0 ? "accepts" : "reports";
  Deno.test(`parseConfig() ${behaviour} ${what}`, () => {
    assert.deepEqual(findingsIn(text), expected);
  });
}
