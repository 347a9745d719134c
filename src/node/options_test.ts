import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { type Config, configJsonSchema, parseConfig } from "../config/mod.ts";
import { EdgeRates } from "../xmpp/mod.ts";
import {
  accountWatchOptions,
  adminOptions,
  handoverOptions,
  handshakeRates,
  linksOptions,
  managementOptions,
  portLimits,
  requestBounds,
  resumptionOptions,
  routerBounds,
  serviceBounds,
  sessionBounds,
  tableOptions,
  webSocketLimits,
} from "./options.ts";

/** Every limit has a value of its own, so that confusing two of them fails a test. */
const LIMITS = `
max_stanza_bytes = 20001
max_depth = 33
max_attributes = 34
authentication_timeout = 2.8
max_connections = 29
tls_handshake_timeout = 2.7
close_timeout = 2.6
max_unauthenticated = 30
max_unauthenticated_bytes = 3500
max_late_bytes = 3600
max_connections_per_address = 37
max_sessions_per_account = 38
max_directed_presence = 39
max_held_presence = 27
max_pending_requests = 40
max_pending_requests_per_account = 36
account_check_interval = 9.5
kept_requests = 1001
kept_requests_per_sender = 1002
kept_requests_per_contact = 1003
kept_request_bytes = 1004
roster_max_items = 1005
roster_max_requests = 1006
roster_max_groups = 1007
roster_max_name_bytes = 1008
max_iq_bytes = 4001
max_iq_elements = 402
connection_rate_per_address = 41
connection_burst_per_address = 42
login_rate_per_address = 43
login_burst_per_address = 44
failed_login_rate_per_account = 45
failed_login_burst_per_account = 46
session_rate_per_node = 161
session_burst_per_node = 162
stanza_rate_per_account = 47
stanza_burst_per_account = 48
stanza_rate_per_address = 49
stanza_burst_per_address = 50
stanza_rate_per_component = 9
stanza_burst_per_component = 51
wrong_token_rate_per_address = 52
wrong_token_burst_per_address = 53
rate_max_keys = 25
admin_max_connections = 21
admin_request_timeout = 2.2
admin_max_head_bytes = 2300
admin_max_body_bytes = 2400
sasl_attempts = 54
max_pending_bytes = 20000
max_owed_bytes = 3000
slow_reader_timeout = 5.5
websocket_max_fragments = 5
http_max_head_bytes = 2000
keepalive_interval = 5.6
link_max_frame_bytes = 400037
link_handshake_timeout = 5.7
link_max_connections = 7
link_max_unauthenticated = 6
link_silence_timeout = 5.8
link_credit_bytes = 133000
link_max_pending_bytes = 1340000
link_max_lanes = 13
link_lane_lifetime = 14.5
datacenter_max_nodes = 1181
datacenter_max_endpoints_per_node = 62
datacenter_max_endpoints = 1183
datacenter_max_claims = 1184
datacenter_max_claims_per_account = 1189
datacenter_max_domains = 1185
datacenter_max_links = 1186
datacenter_max_unauthenticated = 1187
datacenter_max_lanes = 1188
datacenter_max_lease = 14.6
link_max_unsettled = 15
link_max_senders = 16
lane_max_bytes = 500038
lane_max_items = 55
waiting_max_bytes = 19000000
lookup_max_items = 11
lookup_max_bytes = 1100
lookup_rate_per_account = 1301
lookup_burst_per_account = 1302
lookup_rate_per_component = 1303
lookup_burst_per_component = 1304
handover_max_items = 12
handover_max_bytes = 1200
repeat_max_pairs = 31
resend_max_messages = 32
shutdown_timeout = 6.1
`;

const CONFIG = parsed(`
[listen.admin]
port = 8099
socket = "/run/admin.sock"
token = "sesame"
tokens = [{ name = "grafana", role = "read", token = "open" }]
tls = { certfile = "c.pem", cafile = "ca.pem" }
certificates = [{ name = "Ops.example.com", role = "act" }]
[limits]${LIMITS}
[modules.mod_stream_management]
buffer_max = 61
buffer_max_bytes = 62000
unsettled_max = 63
ack_freq = 64
ack_delay_ms = 65
ack_timeout = 66
resume_timeout = 67
resume_elsewhere_timeout = 8
resume_elsewhere_max = 19
ack_hold_ms = 68
end_hold_ms = 321
moved_check_ms = 123
stream_ends_max = 7
suspect_within_ms = 456
stale_h = { geriatric = 69, max_items = 20 }
`);

function parsed(text: string): Config {
  const file = `hosts = ["example.com", "dc1.example.com"]
node_name = "one"
${text}
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
message_ttl = 80
bounce = { resend_after_ms = 81, max_retries = 82, max_items = 83, max_bytes = 8400 }
hosts_refresh_interval = 71
connections.tls_opts = false
connections.connections_per_endpoint = 72
connections.endpoint_refresh_interval = 73
connections.endpoint_refresh_interval_when_empty = 74
connections.disabled_gc_interval = 75
connections.rehome_after_ms = 17
connections.reroute_after_ms = 18
[modules.mod_global_distrib.redis]
server = "redis.example.com"
port = 76
username = "causeway"
password = "open"
tls = { cafile = "ca.pem", certfile = "redis.pem", servername = "redis.internal" }
pool_size = 10
expire_after = 14
refresh_after = 5
command_timeout_ms = 330
[modules.mod_global_distrib.cache]
cache_missed = false
domain_lifetime_seconds = 77
jid_lifetime_seconds = 78
max_jids = 79
`;
  return parsedFile(file);
}

function parsedFile(file: string): Config {
  return parseConfig(file, {
    file: "/etc/causeway/c.toml",
    env: () => undefined,
    readFile: () => "",
    hostname: () => "box",
  });
}

interface LimitsSchema {
  readonly properties: Readonly<Record<string, { readonly default?: unknown }>>;
}

Deno.test("the limits of these tests differ from each other and from the defaults", () => {
  const limits = [...LIMITS.matchAll(/^(\w+) = (.+)$/gm)].map(([, name, value]) =>
    [name!, Number(value)] as const
  );
  const schema = configJsonSchema() as { readonly properties?: { readonly limits?: LimitsSchema } };
  const options = schema.properties!.limits!.properties;
  for (const [name, value] of limits) assert.notEqual(value, options[name]!.default, name);
  assert.deepEqual(limits.map(([name]) => name), Object.keys(options));
  assert.equal(new Set(limits.map(([, value]) => value)).size, limits.length);
});

Deno.test("linksOptions() gives the links the times and bounds of the file", () => {
  assert.deepEqual(linksOptions(CONFIG), {
    connectionsPerEndpoint: 72,
    hostsRefreshIntervalMs: 71,
    endpointRefreshIntervalMs: 73_000,
    endpointRefreshIntervalWhenEmptyMs: 74_000,
    disabledGcIntervalMs: 75_000,
    rehomeAfterMs: 17,
    rerouteFirstMs: 18,
    expireAfterMs: 14_000,
    maxFrameBytes: 400_037,
    helloTimeoutMs: 5700,
    maxConnections: 7,
    maxUnauthenticated: 6,
    silenceTimeoutMs: 5800,
    pingIntervalMs: 1933,
    creditBytes: 133_000,
    maxPendingBytes: 1_340_000,
    maxInboundLanes: 13,
    inboundMemoryMs: 14_500,
    maxDatacenterLanes: 1188,
    maxDatacenterLinks: 1186,
    maxDatacenterUnauthenticated: 1187,
    maxDatacenterEndpoints: 1183,
    maxUnsettled: 15,
    maxBindings: 16,
    laneMaxBytes: 500_038,
    laneMaxItems: 55,
  });
});

Deno.test("linksOptions() remembers a lane as long as its peer may come back", () => {
  const hasty = { ...CONFIG, links: { ...CONFIG.links, inboundMemoryMs: 13_999 } };
  assert.equal(linksOptions(hasty).inboundMemoryMs, 14_000);
});

Deno.test("tableOptions() gives the session table the names, times and bounds of the file", () => {
  assert.deepEqual(tableOptions(CONFIG, 1), {
    globalHost: "example.com",
    localHost: "dc1.example.com",
    hosts: CONFIG.hosts,
    nodeName: "one",
    incarnation: 1,
    replication: "builtin",
    redis: {
      server: "redis.example.com",
      port: 76,
      username: "causeway",
      password: "open",
      tls: {
        cafile: "/etc/causeway/ca.pem",
        certfile: "/etc/causeway/redis.pem",
        keyfile: "/etc/causeway/redis.pem",
        servername: "redis.internal",
      },
      sentinels: [],
      sentinelName: "mymaster",
      sentinelPassword: "",
      cluster: [],
      poolSize: 10,
      expireAfterMs: 14_000,
      refreshAfterMs: 5000,
      commandTimeoutMs: 330,
    },
    cache: { cacheMissed: false, domainLifetimeMs: 77_000, jidLifetimeMs: 78_000, maxJids: 79 },
    datacenter: {
      maxNodes: 1181,
      maxEndpointsPerNode: 62,
      maxEndpoints: 1183,
      maxClaims: 1184,
      maxClaimsPerAccount: 1189,
      maxDomains: 1185,
      maxLeaseMs: 14_600,
    },
  });
});

Deno.test("tableOptions() gives the session table the Sentinels of the file, or its cluster", () => {
  const at = (text: string) => {
    const file = `hosts = ["example.com", "dc1.example.com"]
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
connections.tls_opts = false
[modules.mod_global_distrib.redis]
${text}
`;
    return tableOptions(parsedFile(file), 1).redis;
  };
  const sentinels = at(`sentinels = [{ host = "192.0.2.1", port = 26379 }]
sentinel_name = "dc1"
sentinel_username = "asker"
sentinel_password = "sesame"`)!;
  assert.deepEqual(sentinels.sentinels, [{ host: "192.0.2.1", port: 26379 }]);
  assert.equal(sentinels.sentinelName, "dc1");
  assert.equal(sentinels.sentinelUsername, "asker");
  assert.equal(sentinels.sentinelPassword, "sesame");
  const cluster = at(`cluster = [{ host = "192.0.2.1", port = 7000 }]\ntls = true`)!;
  assert.deepEqual(cluster.cluster, [{ host: "192.0.2.1", port: 7000 }]);
  assert.deepEqual(Object.values(cluster.tls!), [undefined, undefined, undefined, undefined]);
});

Deno.test("routerBounds() and handoverOptions() give routing the bounds of the file", () => {
  assert.deepEqual(routerBounds(CONFIG), {
    messageTtl: 80,
    bounce: { resendAfterMs: 81, maxRetries: 82, maxItems: 83, maxBytes: 8400 },
    maxQueued: 11,
    maxQueuedBytes: 1100,
    lookupRates: {
      perAccount: { perSec: 1301, burst: 1302, maxKeys: 25 },
      perComponent: { perSec: 1303, burst: 1304, maxKeys: 25 },
    },
    memory: { maxPairs: 31, maxStanzas: 32, resendLifetimeMs: 127_000 },
  });
  const off = parsed("limits = { lookup_rate_per_account = 0, lookup_rate_per_component = 0 }");
  assert.deepEqual(routerBounds(off).lookupRates, {});
  assert.equal(routerBounds({ ...CONFIG, bounce: undefined }).bounce, false);
  assert.deepEqual(handoverOptions(CONFIG), { maxWaiting: 12, maxWaitingBytes: 1200 });
});

Deno.test("adminOptions() gives the admin API the address, token and bounds of the file", () => {
  assert.deepEqual(adminOptions(CONFIG), {
    host: "127.0.0.1",
    port: 8099,
    socket: "/run/admin.sock",
    token: "sesame",
    tokens: [{ name: "grafana", role: "read", token: "open" }],
    certificates: [{ name: "ops.example.com", role: "act" }],
    wrongTokens: { perSec: 52, burst: 53, maxKeys: 25 },
    limits: {
      maxConnections: 21,
      requestTimeoutMs: 2200,
      maxHeadBytes: 2300,
      maxBodyBytes: 2400,
    },
  });
  const open = parsed("limits.wrong_token_rate_per_address = 0");
  assert.deepEqual(Object.keys(adminOptions(open)), ["host", "port", "limits"]);
});

Deno.test("streams get the times and bounds of the file", () => {
  assert.deepEqual(CONFIG.streams, {
    maxStanzaBytes: 20_001,
    maxDepth: 33,
    maxAttributes: 34,
    negotiationTimeoutMs: 2800,
    maxUnauthenticatedBytes: 3500,
    maxLateBytes: 3600,
    maxAuthFailures: 54,
    maxPendingBytes: 20_000,
    maxOwedBytes: 3000,
    slowReaderMs: 5500,
    keepaliveIntervalMs: 5600,
  });
});

Deno.test("clients, accounts, services and ports get the bounds of the file", () => {
  assert.deepEqual(CONFIG.admission, { maxUnauthenticated: 30, maxPerAddress: 37 });
  assert.deepEqual(CONFIG.clients, { maxDirectedPresence: 39, maxHeldPresence: 27 });
  assert.deepEqual(sessionBounds(CONFIG), { maxSessionsPerAccount: 38 });
  assert.deepEqual(serviceBounds(CONFIG), {
    maxPendingRequests: 40,
    maxPendingPerAccount: 36,
    maxIqBytes: 4001,
    maxIqElements: 402,
  });
  assert.deepEqual(accountWatchOptions(CONFIG), { checkIntervalMs: 9500 });
  assert.deepEqual(requestBounds(CONFIG), {
    maxRequests: 1001,
    maxPerSender: 1002,
    maxPerContact: 1003,
    maxBytes: 1004,
  });
});

Deno.test("portLimits() gives a port the bounds of the file, and no handshake longer than a login", () => {
  const bounds = {
    maxConnections: 29,
    maxPendingBytes: 43_000,
    lingerMs: 2600,
    handshakeTimeoutMs: 2700,
    maxHandshakes: 30,
  };
  assert.deepEqual(portLimits(CONFIG), bounds);
  const hasty = { ...CONFIG, streams: { ...CONFIG.streams, negotiationTimeoutMs: 2699 } };
  assert.deepEqual(portLimits(hasty), { ...bounds, handshakeTimeoutMs: 2699 });
});

Deno.test("webSocketLimits() gives a port for WebSockets the bounds of the file", () => {
  assert.deepEqual(webSocketLimits(CONFIG), {
    maxMessageBytes: 20_001,
    maxFragments: 5,
    maxHeadBytes: 2000,
  });
});

Deno.test("managementOptions() gives stream management the times and bounds of the file", () => {
  assert.deepEqual(managementOptions(CONFIG), {
    maxItems: 61,
    maxBytes: 62_000,
    maxUnsettled: 63,
    maxOwedBytes: 3000,
    ackFreq: 64,
    ackDelayMs: 65,
    ackTimeoutMs: 66_000,
    resumeTimeoutMs: 67_000,
    resumeElsewhereTimeoutMs: 8000,
    ackHoldMs: 68,
    endHoldMs: 321,
    movedCheckMs: 123,
    maxStreamEnds: 7,
    suspectWithinMs: 456,
    staleHMs: 69_000,
    maxStaleH: 20,
  });
});

Deno.test("resumptionOptions() gives sessions that move the times and bounds of the file", () => {
  assert.deepEqual(resumptionOptions(CONFIG), {
    timeoutMs: 8000,
    maxItems: 61,
    maxBytes: 62_000,
    maxOwedBytes: 3000,
    maxFrameBytes: 400037,
    maxGivings: 19,
    expireAfterMs: 14_000,
  });
});

Deno.test("without stream management there are no options for it, nor for sessions that move", () => {
  const without = { ...CONFIG, streamManagement: undefined };
  assert.equal(managementOptions(without), undefined);
  assert.equal(resumptionOptions(without), undefined);
});

Deno.test("the edge gets the rates of the file, and no limit where the file has none", () => {
  const rates = CONFIG.edgeRates;
  assert.deepEqual(rates, {
    connectionsPerAddress: { perSec: 41, burst: 42, maxKeys: 25 },
    loginsPerAddress: { perSec: 43, burst: 44, maxKeys: 25 },
    failedLoginsPerAccount: { perSec: 45, burst: 46, maxKeys: 25 },
    sessions: { perSec: 161, burst: 162, maxKeys: 25 },
    stanzasPerAccount: { perSec: 47, burst: 48, maxKeys: 25 },
    stanzasPerAddress: { perSec: 49, burst: 50, maxKeys: 25 },
    stanzasPerComponent: { perSec: 9, burst: 51, maxKeys: 25 },
  });
  const { stanzasPerAccount: _, ...others } = rates;
  const off = LIMITS.replace("stanza_rate_per_account = 47", "stanza_rate_per_account = 0");
  assert.deepEqual(parsed(`[limits]${off}`).edgeRates, others);
});

Deno.test("handshakeRates() lets an address begin TLS as often as it may connect", () => {
  const rates = new EdgeRates(handshakeRates(CONFIG), new ManualClock());
  const peer = { remoteAddress: "192.0.2.1:5222", isLoopback: false };
  const tries = Array.from({ length: 50 }, () => rates.mayConnect(peer));
  assert.equal(tries.filter(Boolean).length, 42);
});
