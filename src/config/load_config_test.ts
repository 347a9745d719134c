import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, SOUND } from "./_test_config.ts";
import { ConfigError } from "./config_error.ts";
import { loadConfig } from "./load_config.ts";

const FIXTURES = new URL("../../fixtures/config/", import.meta.url);

Deno.test("parseConfig() fills in every default", () => {
  const config = parse(readFileSync(new URL("minimal.toml", FIXTURES), "utf8"));
  assert.deepEqual(config, {
    file: "/etc/causeway/c.toml",
    hosts: ["example.com", "dc1.example.com"],
    nodeName: "box@dc1.example.com",
    listen: {
      c2s: [],
      websocket: [],
      component: [],
      admin: { host: "127.0.0.1", port: 8088, token: undefined },
    },
    auth: {
      backend: "internal",
      mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"],
      scramIterations: 10_000,
      enumerationSecret: undefined,
    },
    storage: { internal: { path: "/etc/causeway/causeway.sqlite" } },
    log: { level: "info", format: "text" },
    limits: {
      maxStanzaBytes: 262_144,
      maxDepth: 64,
      maxAttributes: 64,
      authenticationTimeoutMs: 30_000,
      maxConnections: 10_000,
      tlsHandshakeTimeoutMs: 10_000,
      closeTimeoutMs: 5000,
      maxUnauthenticated: 1000,
      maxUnauthenticatedBytes: 32_768,
      maxLateBytes: 4_194_304,
      maxConnectionsPerAddress: 1000,
      maxSessionsPerAccount: 50,
      maxDirectedPresence: 1000,
      maxPendingRequests: 1000,
      keptRequests: 10_000,
      keptRequestsPerSender: 100,
      keptRequestsPerContact: 100,
      keptRequestBytes: 4096,
      maxIqBytes: 65_536,
      maxIqElements: 1000,
      connectionsPerAddress: { perSec: 100, burst: 1000, maxKeys: 10_000 },
      loginsPerAddress: { perSec: 50, burst: 1000, maxKeys: 10_000 },
      failedLoginsPerAccount: { perSec: 0.2, burst: 30, maxKeys: 10_000 },
      stanzasPerAccount: undefined,
      stanzasPerAddress: undefined,
      stanzasPerComponent: undefined,
      wrongTokensPerAddress: { perSec: 1, burst: 30, maxKeys: 10_000 },
      adminMaxConnections: 256,
      adminRequestTimeoutMs: 10_000,
      adminMaxHeadBytes: 16_384,
      adminMaxBodyBytes: 65_536,
      saslAttempts: 3,
      maxPendingBytes: 1_048_576,
      maxOwedBytes: 67_108_864,
      slowReaderTimeoutMs: 30_000,
      websocketMaxFragments: 1024,
      httpMaxHeadBytes: 16_384,
      keepaliveIntervalMs: 150_000,
      linkMaxFrameBytes: 524_288,
      linkHandshakeTimeoutMs: 10_000,
      linkMaxConnections: 10_000,
      linkMaxUnauthenticated: 1024,
      linkSilenceTimeoutMs: 15_000,
      linkCreditBytes: 4_194_304,
      linkMaxPendingBytes: 16_777_216,
      linkMaxLanes: 4096,
      linkLaneLifetimeMs: 600_000,
      datacenterMaxNodes: 256,
      datacenterMaxEndpointsPerNode: 16,
      datacenterMaxEndpoints: 256,
      datacenterMaxClaims: 1_000_000,
      datacenterMaxClaimsPerAccount: 200,
      datacenterMaxDomains: 1_000,
      datacenterMaxLinks: 2_500,
      datacenterMaxUnauthenticated: 256,
      datacenterMaxLanes: 1_024,
      datacenterMaxLeaseMs: 120_000,
      linkMaxUnsettled: 1_048_576,
      linkMaxSenders: 200_000,
      laneMaxBytes: 16_777_216,
      laneMaxItems: 65_536,
      waitingMaxBytes: 536_870_912,
      lookupMaxItems: 100_000,
      lookupMaxBytes: 67_108_864,
      lookupsPerAccount: { perSec: 200, burst: 1000, maxKeys: 10_000 },
      lookupsPerComponent: { perSec: 2000, burst: 10_000, maxKeys: 10_000 },
      handoverMaxItems: 100_000,
      handoverMaxBytes: 67_108_864,
      repeatMaxPairs: 65_536,
      resendMaxMessages: 262_144,
      shutdownTimeoutMs: 8000,
    },
    globalDistrib: {
      globalHost: "example.com",
      localHost: "dc1.example.com",
      messageTtl: 4,
      hostsRefreshIntervalMs: 3000,
      connections: {
        endpoints: [{ host: "dc1.example.com", port: 5555 }],
        advertisedEndpoints: undefined,
        connectionsPerEndpoint: 1,
        endpointRefreshIntervalMs: 60_000,
        endpointRefreshIntervalWhenEmptyMs: 3000,
        disabledGcIntervalMs: 60_000,
        rehomeAfterMs: 3000,
        rerouteAfterMs: 1000,
        seeds: [],
        cluster: { host: "127.0.0.1", port: 0 },
        tls: undefined,
      },
      redis: {
        host: "127.0.0.1",
        port: 8102,
        username: undefined,
        password: undefined,
        tls: undefined,
        sentinels: [],
        sentinelName: "mymaster",
        sentinelUsername: undefined,
        sentinelPassword: undefined,
        cluster: [],
        poolSize: 1,
        replication: "external",
        expireAfterMs: 120_000,
        refreshAfterMs: 60_000,
        commandTimeoutMs: 5000,
      },
      cache: {
        cachesMissed: true,
        domainLifetimeMs: 600_000,
        jidLifetimeMs: 5000,
        maxJids: 10_000,
      },
      bounce: { resendAfterMs: 200, maxRetries: 4, maxItems: 100_000, maxBytes: 67_108_864 },
    },
    streamManagement: {
      bufferMax: 5000,
      bufferMaxBytes: 8_388_608,
      unsettledMax: 256,
      ackFreq: 10,
      ackDelayMs: 1000,
      ackTimeoutMs: 60_000,
      resumeTimeoutMs: 600_000,
      resumeElsewhereTimeoutMs: 5000,
      resumeElsewhereMax: 10_000,
      ackHoldMs: 5000,
      endHoldMs: 500,
      movedCheckMs: 5000,
      maxStreamEnds: 3,
      suspectWithinMs: 2000,
      staleHMs: 3_600_000,
      maxStaleH: 100_000,
    },
    modules: new Map(["example.com", "dc1.example.com"].map((host) => [host, {
      mod_disco: { usersCanSeeHiddenServices: false },
      mod_ping: true,
      mod_time: true,
      mod_version: true,
    }])),
    globalDistribAddr: new Map(),
    notes: [{
      path: "storage.internal",
      text:
        "accounts of a globally distributed host are kept in the built-in store, which is for " +
        "trying out: other nodes and datacenters do not see them",
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
`).limits;
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
    [written?.bufferMax, written?.ackTimeoutMs, written?.resumeTimeoutMs, written?.staleHMs],
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
  const { connections, redis, cache, bounce, hostsRefreshIntervalMs } = config.globalDistrib;
  assert.equal(hostsRefreshIntervalMs, 250);
  assert.deepEqual(connections, {
    endpoints: [],
    advertisedEndpoints: [{ host: "198.51.100.1", port: 1 }],
    connectionsPerEndpoint: 1,
    endpointRefreshIntervalMs: 2000,
    endpointRefreshIntervalWhenEmptyMs: 1000,
    disabledGcIntervalMs: 7000,
    rehomeAfterMs: 20,
    rerouteAfterMs: 30,
    seeds: [{ host: "::1", port: 65535 }],
    cluster: { host: "10.0.0.1", port: 0 },
    tls: undefined,
  });
  assert.equal(redis.host, "/run/redis.sock");
  assert.deepEqual([redis.expireAfterMs, redis.refreshAfterMs], [3000, 1000]);
  assert.deepEqual(cache, {
    cachesMissed: false,
    domainLifetimeMs: 0,
    jidLifetimeMs: 1000,
    maxJids: 1,
  });
  assert.equal(bounce, undefined);
  assert.equal(config.limits.authenticationTimeoutMs, 250);
  assert.equal(config.limits.linkSilenceTimeoutMs, 100);
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
[[listen.component]]
domains = [{ name = "Echo.example.com", secret = "plain", hidden = true }]
`);
  assert.equal(config.globalDistrib.redis.password?.reveal(), "from the environment");
  assert.equal(config.listen.admin.token?.reveal(), "/etc/causeway/token");
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

Deno.test("parseConfig() turns every service on unless it is false", () => {
  const on = { mod_ping: true, mod_time: true, mod_version: true };
  const disco = { usersCanSeeHiddenServices: false };
  const both = (text: string) => {
    const { modules } = parse(`${SOUND}${text}`);
    return ["example.com", "dc1.example.com"].map((host) => modules.get(host));
  };
  assert.deepEqual(both(""), [{ mod_disco: disco, ...on }, { mod_disco: disco, ...on }]);
  assert.deepEqual(
    both(
      "[modules]\nmod_ping = false\nmod_disco = false\n" +
        '[host_config."dc1.example.com".modules]\nmod_ping = {}\nmod_version = false\n',
    ),
    [
      { mod_disco: false, ...on, mod_ping: false },
      { mod_disco: false, ...on, mod_version: false },
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
    const problem = `cannot read the file: ENOENT: no such file or directory, open '${file}'`;
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
