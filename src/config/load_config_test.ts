import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, SOUND } from "./testing/config.ts";
import { ConfigError } from "./config_error.ts";
import { loadConfig } from "./load_config.ts";

const FIXTURES = new URL("../../fixtures/config/", import.meta.url);

const MAM = {
  defaultLimit: 50,
  maxLimit: 50,
  hasChatMarkers: false,
  hasGroupchats: false,
  hasStanzaIds: true,
  isSearched: true,
  maxAgeMs: Infinity,
};

const PUBSUB = {
  maxNodes: 200,
  maxItemsPerNode: 1000,
  maxItemBytes: 131_072,
  maxBytes: 8_388_608,
};

Deno.test("parseConfig() fills in every default", () => {
  const config = parse(readFileSync(new URL("minimal.toml", FIXTURES), "utf8"));
  // What single options set is in agreement_test.ts, but for rates and bounds of the node itself.
  assert.deepEqual(config.admin.wrongTokens, { perSec: 1, burst: 30, maxKeys: 10_000 });
  assert.deepEqual(config.edgeRates, {
    connectionsPerAddress: { perSec: 100, burst: 1000, maxKeys: 10_000 },
    loginsPerAddress: { perSec: 50, burst: 1000, maxKeys: 10_000 },
    failedLoginsPerAccount: { perSec: 0.2, burst: 30, maxKeys: 10_000 },
  });
  assert.deepEqual(config.lookupRates, {
    perAccount: { perSec: 200, burst: 1000, maxKeys: 10_000 },
    perComponent: { perSec: 2000, burst: 10_000, maxKeys: 10_000 },
  });
  assert.deepEqual(config.limits, { waitingMaxBytes: 536_870_912, shutdownTimeoutMs: 8000 });
  const { file, hosts, nodeName, listen, auth, storage, log } = config;
  const { globalDistrib, modules, mucLight, muc, globalDistribAddr, notes } = config;
  assert.deepEqual({
    ...{ file, hosts, nodeName, listen, auth, storage, log },
    ...{ globalDistrib, modules, mucLight, muc, globalDistribAddr, notes },
  }, {
    file: "/etc/causeway/c.toml",
    hosts: ["example.com", "dc1.example.com"],
    nodeName: "box@dc1.example.com",
    listen: {
      c2s: [],
      websocket: [],
      component: [],
      admin: {
        host: "127.0.0.1",
        port: 8088,
        socket: undefined,
        token: undefined,
        tokens: [],
        tls: undefined,
        certificates: [],
      },
    },
    auth: {
      mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"],
      sasl2: true,
      channelBinding: true,
      scramIterations: 10_000,
      enumerationSecret: undefined,
    },
    storage: {
      internal: { path: "/etc/causeway/causeway.sqlite" },
      pools: new Map(),
      ldapPools: new Map(),
      serverPools: new Map(),
      sharedRosters: new Map(),
      users: new Map(["example.com", "dc1.example.com"].map((host) => [host, {
        backend: "internal",
      }])),
      data: new Map(
        [
          "last",
          "mam",
          "muc_light",
          "muc",
          "privacy",
          "offline",
          "private",
          "pep",
          "roster",
          "vcard",
        ].map(
          (
            kind,
          ) => [kind, new Map()],
        ),
      ),
    },
    log: { level: "info", format: "text" },
    globalDistrib: {
      globalHost: "example.com",
      localHost: "dc1.example.com",
      connections: {
        endpoints: [{ host: "dc1.example.com", port: 5555 }],
        advertisedEndpoints: undefined,
        seeds: [],
        cluster: { host: "127.0.0.1", port: 0 },
        tls: undefined,
      },
      redis: { password: undefined, tls: undefined, sentinelPassword: undefined },
    },
    modules: new Map(["example.com", "dc1.example.com"].map((host) => [host, {
      mod_disco: { usersCanSeeHiddenServices: false },
      mod_carboncopy: true,
      mod_ping: true,
      mod_time: true,
      mod_version: true,
      mod_last: true,
      mod_mam: MAM,
      mod_blocking: true,
      mod_privacy: { maxLists: 50, maxItems: 1_000, maxBytes: 131_072 },
      mod_offline: false,
      mod_private: { maxElements: 200, maxBytes: 1_048_576 },
      mod_pubsub: PUBSUB,
      mod_roster: { hasVersions: true },
      mod_register: { allowRemoval: true, passwordStrength: 32, registration: undefined },
      mod_vcard: { maxBytes: 131_072, search: undefined },
    }])),
    mucLight: undefined,
    muc: undefined,
    globalDistribAddr: new Map(),
    notes: [{
      path: "storage.internal",
      text:
        "accounts of a globally distributed host are kept in the built-in store, which is for " +
        "one machine only: nodes of other machines do not see them",
    }],
  });
});

Deno.test("parseConfig() reads a rate of 0 as no limit, and accepts 0.001 to a million", () => {
  const ratesOf = (rate: string) =>
    parse(`${SOUND}
[limits]
connection_rate_per_address = ${rate}
connection_burst_per_address = 7
stanza_rate_per_account = ${rate}
`).edgeRates;
  assert.equal(ratesOf("0").connectionsPerAddress, undefined);
  assert.equal(ratesOf("0").stanzasPerAccount, undefined);
  for (const rate of ["0.001", "1000000"]) {
    assert.deepEqual(ratesOf(rate).connectionsPerAddress, {
      perSec: Number(rate),
      burst: 7,
      maxKeys: 10_000,
    });
    assert.deepEqual(ratesOf(rate).stanzasPerAccount, {
      perSec: Number(rate),
      burst: 1000,
      maxKeys: 10_000,
    });
  }
  for (const rate of ["0.0009", "1000001", "-1"]) {
    assert.throws(() => ratesOf(rate), /0 for no limit, or a number from 0\.001 to 1000000/, rate);
  }
});

Deno.test("parseConfig() turns stream management off, or its durations into milliseconds", () => {
  const read = (text: string) => parse(`${SOUND}\n${text}\n`).streamManagement;
  assert.equal(read("[modules]\nmod_stream_management = false"), undefined);
  const written = read(`[modules.mod_stream_management]
buffer_max = 7
ack_timeout = 2
resume_timeout = 0
stale_h = { enabled = false }`);
  assert.deepEqual(
    [written?.maxItems, written?.ackTimeoutMs, written?.resumeTimeoutMs, written?.staleHMs],
    [7, 2000, 0, 0],
  );
  assert.equal(
    read("[modules.mod_stream_management]\nstale_h = { geriatric = 9 }")?.staleHMs,
    9000,
  );
});

Deno.test("parseConfig() converts to milliseconds, absolute paths and normalised names", () => {
  const config = parse(`${SOUND}
hosts_refresh_interval = 250
connections.endpoint_refresh_interval = 2
connections.endpoint_refresh_interval_when_empty = 1
connections.disabled_gc_interval = 7
connections.rehome_after_ms = 20
connections.reroute_after_ms = 30
connections.endpoints = []
connections.advertised_endpoints = [{ host = "198.51.100.1", port = 1 }]
connections.seeds = [{ host = "::1", port = 65535 }]
connections.cluster = { host = "10.0.0.1", port = 0 }
redis.server = "/run/redis.sock"
redis.expire_after = 3
redis.refresh_after = 1
cache = { cache_missed = false, domain_lifetime_seconds = 0, jid_lifetime_seconds = 1, max_jids = 1 }
bounce = false
[limits]
authentication_timeout = 0.25
link_silence_timeout = 0.1
[[listen.c2s]]
port = 0
tls = { mode = "direct", certfile = "tls/cert.pem" }
[storage.internal]
path = "../data/store.sqlite"
[global_distrib_addr]
"DC2.example.com" = [{ host = "127.0.0.1", port = 6555 }]
`);
  const { globalDistrib: { connections }, redis, cache, bounce, links } = config;
  assert.equal(links.hostsRefreshIntervalMs, 250);
  assert.deepEqual(connections, {
    endpoints: [],
    advertisedEndpoints: [{ host: "198.51.100.1", port: 1 }],
    seeds: [{ host: "::1", port: 65535 }],
    cluster: { host: "10.0.0.1", port: 0 },
    tls: undefined,
  });
  assert.deepEqual([
    links.endpointRefreshIntervalMs,
    links.endpointRefreshIntervalWhenEmptyMs,
    links.disabledGcIntervalMs,
    links.rehomeAfterMs,
    links.rerouteFirstMs,
  ], [2000, 1000, 7000, 20, 30]);
  assert.equal(redis.server, "/run/redis.sock");
  assert.deepEqual([redis.expireAfterMs, redis.refreshAfterMs], [3000, 1000]);
  assert.deepEqual(cache, {
    cacheMissed: false,
    domainLifetimeMs: 0,
    jidLifetimeMs: 1000,
    maxJids: 1,
  });
  assert.equal(bounce, undefined);
  assert.equal(config.streams.negotiationTimeoutMs, 250);
  assert.equal(config.links.silenceTimeoutMs, 100);
  assert.deepEqual(config.listen.c2s, [{
    host: "0.0.0.0",
    port: 0,
    tls: {
      mode: "direct",
      certfile: "/etc/causeway/tls/cert.pem",
      keyfile: "/etc/causeway/tls/cert.pem",
    },
    allowPlaintext: false,
  }]);
  assert.equal(config.storage.internal.path, "/etc/data/store.sqlite");
  assert.deepEqual([...config.globalDistribAddr.keys()], ["dc2.example.com"]);
});

Deno.test("parseConfig() reads ports for WebSockets", () => {
  const { websocket } = parse(SOUND.replace(
    "[modules",
    `[[listen.websocket]]
tls = { certfile = "tls/cert.pem" }
url = "wss://chat.example.com/ws"
[[listen.websocket]]
host = "::1"
port = 0
allow_plaintext = true

[modules`,
  )).listen;
  assert.deepEqual(websocket, [
    {
      host: "0.0.0.0",
      port: 5280,
      tls: {
        certfile: "/etc/causeway/tls/cert.pem",
        keyfile: "/etc/causeway/tls/cert.pem",
      },
      allowPlaintext: false,
      url: "wss://chat.example.com/ws",
    },
    { host: "::1", port: 0, tls: undefined, allowPlaintext: true, url: undefined },
  ]);
});

Deno.test("parseConfig() accepts tls_opts with and without a separate key file", () => {
  const tlsOf = (table: string) =>
    parse(SOUND.replace("tls_opts = false", `tls_opts = ${table}`)).globalDistrib.connections.tls;
  assert.deepEqual(tlsOf('{ certfile = "/c.pem", keyfile = "k.pem", cafile = "ca.pem" }'), {
    certfile: "/c.pem",
    keyfile: "/etc/causeway/k.pem",
    cafile: "/etc/causeway/ca.pem",
  });
  assert.equal(tlsOf('{ certfile = "/c.pem", cafile = "ca.pem" }')?.keyfile, "/c.pem");
});

Deno.test("parseConfig() reads secrets from the text, the environment and files, and shows none", () => {
  const config = parse(`${SOUND}redis.password = { env = "SET" }
[listen.admin]
token = { file = "token" }
tokens = [{ name = "ops", role = "act", token = "plain" }]
[[listen.component]]
domains = [{ name = "Echo.example.com", secret = "plain", hidden = true }]
`);
  assert.equal(config.globalDistrib.redis.password?.reveal(), "from the environment");
  assert.equal(config.listen.admin.token?.reveal(), "/etc/causeway/token");
  assert.equal(config.listen.admin.tokens[0]?.token.reveal(), "plain");
  const domain = config.listen.component[0]?.domains[0];
  assert.equal(domain?.name, "echo.example.com");
  assert.equal(domain?.isHidden, true);
  assert.equal(domain?.secret.reveal(), "plain");
  const shown = `${JSON.stringify(config)} ${
    Deno.inspect(config, { depth: 20 })
  } ${domain?.secret}`;
  for (const secret of ["from the environment", "/etc/causeway/token", 'plain"']) {
    assert.ok(!shown.includes(secret), secret);
  }
});

Deno.test("parseConfig() lets a module of host_config replace that of the top level", () => {
  const { modules } = parse(`${SOUND}
[modules.mod_disco]
users_can_see_hidden_services = true
[host_config."DC1.example.com".modules.mod_disco]
[host_config."example.com".modules.mod_ping]
`);
  assert.deepEqual(modules.get("example.com")?.mod_disco, { usersCanSeeHiddenServices: true });
  assert.deepEqual(modules.get("dc1.example.com")?.mod_disco, { usersCanSeeHiddenServices: false });
});

Deno.test("parseConfig() turns services on unless they are false", () => {
  const on = {
    mod_carboncopy: true,
    mod_ping: true,
    mod_time: true,
    mod_version: true,
    mod_last: true,
    mod_mam: MAM,
    mod_blocking: true,
    mod_privacy: { maxLists: 50, maxItems: 1_000, maxBytes: 131_072 },
    mod_offline: false,
    mod_private: { maxElements: 200, maxBytes: 1_048_576 },
    mod_pubsub: PUBSUB,
    mod_roster: { hasVersions: true },
    mod_register: { allowRemoval: true, passwordStrength: 32, registration: undefined },
    mod_vcard: { maxBytes: 131_072, search: undefined },
  };
  const disco = { usersCanSeeHiddenServices: false };
  const both = (text: string) => {
    const { modules } = parse(`${SOUND}${text}`);
    return ["example.com", "dc1.example.com"].map((host) => modules.get(host));
  };
  assert.deepEqual(both(""), [{ mod_disco: disco, ...on }, { mod_disco: disco, ...on }]);
  assert.deepEqual(
    both(
      "[modules]\nmod_ping = false\nmod_disco = false\n" +
        "mod_mam = { max_result_limit = 20, archive_chat_markers = true, no_stanzaid_element = true, " +
        "full_text_search = false, retention.max_age = 86400 }\n" +
        "mod_private = { max_bytes = 7 }\nmod_roster.versioning = false\n" +
        '[host_config."dc1.example.com".modules]\nmod_ping = {}\nmod_version = false\n' +
        'mod_private = false\nmod_roster = false\n[host_config."dc1.example.com".modules.mod_mam]\n' +
        "pm = false\n",
    ),
    [
      {
        mod_disco: false,
        ...on,
        mod_carboncopy: true,
        mod_ping: false,
        mod_mam: {
          ...MAM,
          defaultLimit: 20,
          maxLimit: 20,
          hasChatMarkers: true,
          hasStanzaIds: false,
          isSearched: false,
          maxAgeMs: 86_400_000,
        },
        mod_private: { maxElements: 200, maxBytes: 7 },
        mod_roster: { hasVersions: false },
      },
      {
        mod_disco: false,
        ...on,
        mod_mam: false,
        mod_version: false,
        mod_private: false,
        mod_roster: false,
      },
    ],
  );
});

Deno.test("parseConfig() returns a deeply frozen configuration", () => {
  const config = parse(`${SOUND}[global_distrib_addr]\n"a.net" = [{ host = "a", port = 1 }]\n`);
  const seen = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    assert.ok(Object.isFrozen(value), Deno.inspect(value));
    for (const inner of value instanceof Map ? value.values() : Object.values(value)) visit(inner);
  };
  visit(config);
  assert.ok(seen.size > 15);
});

Deno.test("loadConfig() reads a file and its references, and reports a file that it cannot read", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-config-" });
  try {
    const file = join(directory, "c.toml");
    const problem = "cannot read the file: there is no such file or folder";
    assert.throws(() => loadConfig(file), (thrown) => {
      assert.ok(thrown instanceof ConfigError);
      assert.deepEqual(thrown.findings, [{ file, line: undefined, path: "", problem }]);
      assert.equal(thrown.message, `${file}: ${problem}`);
      return true;
    });
    await Deno.writeTextFile(join(directory, "password"), "hunter2\r\n");
    await Deno.writeTextFile(file, `${SOUND}redis.password = { file = "password" }\n`);
    assert.equal(loadConfig(file).globalDistrib.redis.password?.reveal(), "hunter2");
    assert.equal(loadConfig(file).storage.internal.path, join(directory, "causeway.sqlite"));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("parseConfig() resolves the rooms of the global host", () => {
  const { mucLight } = parse(
    `${SOUND}[modules.mod_muc_light]\nall_can_invite = true\nmax_occupants = 7\n`,
  );
  const fields = [
    { name: "roomname", defaultValue: "Untitled" },
    { name: "subject", defaultValue: "" },
  ];
  const expected = {
    domain: "muclight.example.com",
    areEqual: false,
    canAllInvite: true,
    canAllConfigure: false,
    hasBlocking: true,
    maxOccupants: 7,
    roomsPerUser: 200,
    roomsPerPage: 10,
    maxConfigBytes: 4_096,
    fields,
  };
  assert.deepEqual(mucLight, expected);
  const own = parse(
    `${SOUND}[modules.mod_muc_light]\n[host_config."example.com".modules.mod_muc_light]\n` +
      "host = 'Groups.@HOST@'\nconfig_schema = [{ field = 'colour', string_value = 'red' }]\n",
  ).mucLight;
  assert.equal(own?.domain, "groups.example.com");
  assert.deepEqual(own.fields, [{ name: "colour", defaultValue: "red" }]);
  assert.equal(parse(`${SOUND}[modules]\nmod_muc_light = false\n`).mucLight, undefined);
});

Deno.test("parseConfig() resolves the Multi-User Chat rooms of the global host", () => {
  const { muc } = parse(
    `${SOUND}[modules.mod_muc]\nhistory_size = 7\nmax_users = 50\n` +
      "default_room = { members_only = true, anonymous = false }\n",
  );
  assert.equal(muc?.domain, "conference.example.com");
  assert.deepEqual([muc.historySize, muc.maxUsers, muc.maxUserConferences], [7, 50, 100]);
  assert.equal(muc.maxCreatedRooms, 200);
  assert.deepEqual(muc.defaultRoom, {
    title: "",
    description: "",
    persistent: false,
    public: true,
    moderated: true,
    membersOnly: true,
    membersByDefault: true,
    allowChangeSubject: true,
    allowUserInvites: false,
    allowPrivateMessages: true,
    passwordProtected: false,
    password: "",
    anonymous: false,
    maxUsers: 50,
  });
  assert.equal(parse(`${SOUND}[modules]\nmod_muc = false\n`).muc, undefined);
});

Deno.test("parseConfig() resolves offline messages, registration and search of one host", () => {
  const { modules } = parse(
    SOUND.replace('"dc1.example.com"]', '"dc1.example.com", "other.net"]') +
      '[host_config."other.net".modules]\n' +
      "mod_offline = { access_max_user_messages = 7, expire_after = 60 }\n" +
      "mod_vcard = { search = true, search_finds = 'all', matches = 3 }\n" +
      '[host_config."other.net".modules.mod_register]\nallow_registration = true\n' +
      "registration_timeout = 5\nip_access = [{ address = '10.0.0.0/8', policy = 'deny' }]\n",
  );
  const { mod_offline, mod_register, mod_vcard } = modules.get("other.net")!;
  assert.deepEqual({ mod_offline, mod_register, mod_vcard }, {
    mod_offline: { maxMessages: 7, maxBytes: 4_194_304, lifetimeMs: 60_000 },
    mod_register: {
      allowRemoval: true,
      passwordStrength: 32,
      registration: {
        ipAccess: [{ address: "10.0.0.0/8", policy: "deny" }],
        timeoutMs: 5_000,
      },
    },
    mod_vcard: { maxBytes: 131_072, search: { matches: 3, findsAll: true } },
  });
});
