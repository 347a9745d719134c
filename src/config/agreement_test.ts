import assert from "node:assert/strict";
import { ADMIN_LIMITS } from "../admin/mod.ts";
import { DEFAULT_MAX_KEYS, ManualClock } from "../base/mod.ts";
import { resolveLinksOptions } from "../distribution/links/mod.ts";
import { DEFAULT_MAX_GIVINGS } from "../distribution/resumption/mod.ts";
import {
  DEFAULT_MAX_PAIRS,
  DEFAULT_MAX_STANZAS,
  resolveBounceOptions,
  resolveHandoverOptions,
  ROUTER_QUEUE_DEFAULTS,
} from "../distribution/routing/mod.ts";
import { isReservedDomain, resolveTable } from "../distribution/table/mod.ts";
import { resolveListenerLimits } from "../net/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import { DEFAULT_MAX_REQUEST_BYTES } from "../services/subscriptions/mod.ts";
import { resolveRequestBounds } from "../storage/mod.ts";
import type { HostServicesOptions } from "../services/mod.ts";
import {
  DEFAULT_MAX_IQ_BYTES,
  DEFAULT_MAX_IQ_ELEMENTS,
  DEFAULT_MAX_PENDING_REQUESTS,
  HostServices,
} from "../services/mod.ts";
import {
  DEFAULT_MAX_DIRECTED_PRESENCE,
  DEFAULT_MAX_SESSIONS_PER_ACCOUNT,
  resolveStreamManagement,
  SessionRegistry,
  STREAM_MANAGEMENT_RANGES,
  StreamAdmission,
} from "../xmpp/mod.ts";
import { STREAM_LIMIT_RANGES } from "../xmpp/stream/mod.ts";
import { parse, SOUND } from "./_test_config.ts";
import { RESERVED_COMPONENT_DOMAINS } from "./rules.ts";
import { LIMITS } from "./schema_limits.ts";
import { unwrap } from "./schema_walk.ts";

// The parts keep their own defaults and ranges, and the file has its own names and units for them.
// The reference page is correct only as long as both agree.

Deno.test("the file and the links have the same defaults", () => {
  const { limits, globalDistrib: { connections, ...module } } = parse(SOUND);
  const links = resolveLinksOptions();
  assert.deepEqual({
    connectionsPerEndpoint: connections.connectionsPerEndpoint,
    hostsRefreshIntervalMs: module.hostsRefreshIntervalMs,
    endpointRefreshIntervalMs: connections.endpointRefreshIntervalMs,
    endpointRefreshIntervalWhenEmptyMs: connections.endpointRefreshIntervalWhenEmptyMs,
    disabledGcIntervalMs: connections.disabledGcIntervalMs,
    rehomeAfterMs: connections.rehomeAfterMs,
    rerouteFirstMs: connections.rerouteAfterMs,
    expireAfterMs: module.redis.expireAfterMs,
    maxFrameBytes: limits.linkMaxFrameBytes,
    helloTimeoutMs: limits.linkHandshakeTimeoutMs,
    maxConnections: limits.linkMaxConnections,
    maxUnauthenticated: limits.linkMaxUnauthenticated,
    silenceTimeoutMs: limits.linkSilenceTimeoutMs,
    maxPendingBytes: limits.linkMaxPendingBytes,
    maxInboundLanes: limits.linkMaxLanes,
    inboundMemoryMs: limits.linkLaneLifetimeMs,
    maxDatacenterLanes: limits.datacenterMaxLanes,
    maxDatacenterLinks: limits.datacenterMaxLinks,
    maxDatacenterUnauthenticated: limits.datacenterMaxUnauthenticated,
    maxDatacenterEndpoints: limits.datacenterMaxEndpoints,
    maxUnsettled: limits.linkMaxUnsettled,
    maxBindings: limits.linkMaxSenders,
    laneMaxBytes: limits.laneMaxBytes,
    laneMaxItems: limits.laneMaxItems,
    creditBytes: limits.linkCreditBytes,
  }, {
    connectionsPerEndpoint: links.connectionsPerEndpoint,
    hostsRefreshIntervalMs: links.hostsRefreshIntervalMs,
    endpointRefreshIntervalMs: links.endpointRefreshIntervalMs,
    endpointRefreshIntervalWhenEmptyMs: links.endpointRefreshIntervalWhenEmptyMs,
    disabledGcIntervalMs: links.disabledGcIntervalMs,
    rehomeAfterMs: links.rehomeAfterMs,
    rerouteFirstMs: links.rerouteFirstMs,
    expireAfterMs: links.expireAfterMs,
    maxFrameBytes: links.maxFrameBytes,
    helloTimeoutMs: links.helloTimeoutMs,
    maxConnections: links.maxConnections,
    maxUnauthenticated: links.maxUnauthenticated,
    silenceTimeoutMs: links.silenceTimeoutMs,
    maxPendingBytes: links.maxPendingBytes,
    maxInboundLanes: links.maxInboundLanes,
    inboundMemoryMs: links.inboundMemoryMs,
    maxDatacenterLanes: links.maxDatacenterLanes,
    maxDatacenterLinks: links.maxDatacenterLinks,
    maxDatacenterUnauthenticated: links.maxDatacenterUnauthenticated,
    maxDatacenterEndpoints: links.maxDatacenterEndpoints,
    maxUnsettled: links.maxUnsettled,
    maxBindings: links.maxBindings,
    laneMaxBytes: links.laneMaxBytes,
    laneMaxItems: links.laneMaxItems,
    creditBytes: links.creditBytes,
  });
});

Deno.test("the file and the ports and rates have the same defaults", () => {
  const { limits } = parse(SOUND);
  const { lingerMs, handshakeTimeoutMs } = resolveListenerLimits();
  assert.deepEqual(
    [limits.closeTimeoutMs, limits.tlsHandshakeTimeoutMs],
    [lingerMs, handshakeTimeoutMs],
  );
  assert.equal(limits.connectionsPerAddress!.maxKeys, DEFAULT_MAX_KEYS);
});

Deno.test("the file and the admin API have the same defaults", () => {
  const { limits } = parse(SOUND);
  assert.deepEqual({
    maxConnections: limits.adminMaxConnections,
    requestTimeoutMs: limits.adminRequestTimeoutMs,
    maxHeadBytes: limits.adminMaxHeadBytes,
    maxBodyBytes: limits.adminMaxBodyBytes,
  }, ADMIN_LIMITS);
});

Deno.test("the file and bouncing have the same defaults", () => {
  const { bounce } = parse(SOUND).globalDistrib;
  assert.deepEqual(bounce, resolveBounceOptions({}));
});

Deno.test("the file and the waiting queues of routing have the same defaults", () => {
  const { lookupMaxItems, lookupMaxBytes, handoverMaxItems, handoverMaxBytes } =
    parse(SOUND).limits;
  assert.deepEqual(
    { maxQueued: lookupMaxItems, maxQueuedBytes: lookupMaxBytes },
    ROUTER_QUEUE_DEFAULTS,
  );
  assert.deepEqual(
    { maxWaiting: handoverMaxItems, maxWaitingBytes: handoverMaxBytes },
    resolveHandoverOptions(),
  );
});

Deno.test("redis.command_timeout_ms has the same range in the file and the session table", () => {
  const read = (value: number) =>
    parse(`${SOUND}redis.command_timeout_ms = ${value}\n`).globalDistrib.redis.commandTimeoutMs;
  assert.deepEqual([100, 60_000].map(read), [100, 60_000]);
  for (const value of [99, 60_001]) assert.throws(() => read(value), /command_timeout_ms/);
});

Deno.test("the file and the memory of routing have the same defaults", () => {
  const { repeatMaxPairs, resendMaxMessages } = parse(SOUND).limits;
  assert.deepEqual([repeatMaxPairs, resendMaxMessages], [DEFAULT_MAX_PAIRS, DEFAULT_MAX_STANZAS]);
});

Deno.test("the file and the session table have the same defaults", () => {
  const { redis, cache } = parse(SOUND).globalDistrib;
  const table = resolveTable({
    globalHost: "example.com",
    localHost: "dc1.example.com",
    nodeName: "node1",
    incarnation: 1,
  });
  assert.deepEqual(
    [
      redis.host,
      redis.port,
      redis.poolSize,
      redis.expireAfterMs,
      redis.refreshAfterMs,
      redis.commandTimeoutMs,
    ],
    [
      table.redis.server,
      table.redis.port,
      table.redis.poolSize,
      table.redis.expireAfterMs,
      table.redis.refreshAfterMs,
      table.redis.commandTimeoutMs,
    ],
  );
  assert.deepEqual(
    [cache.cachesMissed, cache.domainLifetimeMs, cache.jidLifetimeMs, cache.maxJids],
    [
      table.cache.cacheMissed,
      table.cache.domainLifetimeMs,
      table.cache.jidLifetimeMs,
      table.cache.maxJids,
    ],
  );
});

/** Options of `[limits]` and the limit of a stream that each sets; milliseconds where it is seconds. */
const STREAM_LIMITS = [
  ["max_stanza_bytes", "maxStanzaBytes", 1],
  ["max_depth", "maxDepth", 1],
  ["max_attributes", "maxAttributes", 1],
  ["authentication_timeout", "negotiationTimeoutMs", 1000],
  ["max_unauthenticated_bytes", "maxUnauthenticatedBytes", 1],
  ["max_late_bytes", "maxLateBytes", 1],
  ["sasl_attempts", "maxAuthFailures", 1],
  ["max_pending_bytes", "maxPendingBytes", 1],
  ["max_owed_bytes", "maxOwedBytes", 1],
  ["slow_reader_timeout", "slowReaderMs", 1000],
  ["keepalive_interval", "keepaliveIntervalMs", 1000],
] as const;

for (const [option, limit, unitMs] of STREAM_LIMITS) {
  Deno.test(`limits.${option} has the default and the range of a stream's ${limit}`, () => {
    const schema = LIMITS.shape[option];
    const { byDefault, min, max } = STREAM_LIMIT_RANGES[limit];
    assert.equal(Number(unwrap(schema).defaultValue) * unitMs, byDefault);
    const takes = (value: number) => schema.safeParse(value / unitMs).success;
    assert.deepEqual([takes(min), takes(max)], [true, true]);
    assert.deepEqual([takes(min - 1), takes(max + 1)], [false, false]);
  });
}

Deno.test("the file and stream management have the same defaults", () => {
  const { bufferMax, bufferMaxBytes, unsettledMax, resumeElsewhereMax, ...rest } = parse(SOUND)
    .streamManagement!;
  assert.equal(resumeElsewhereMax, DEFAULT_MAX_GIVINGS);
  const { maxItems, maxBytes, maxUnsettled, maxOwedBytes, ...resolved } = resolveStreamManagement();
  assert.equal(parse(SOUND).limits.maxOwedBytes, maxOwedBytes);
  assert.deepEqual([bufferMax, bufferMaxBytes, unsettledMax], [maxItems, maxBytes, maxUnsettled]);
  assert.deepEqual(rest, resolved);
});

const LINK_LIMITS = [
  ["link_max_frame_bytes", "maxFrameBytes"],
  ["lane_max_bytes", "laneMaxBytes"],
  ["lane_max_items", "laneMaxItems"],
  ["link_credit_bytes", "creditBytes"],
  ["link_max_connections", "maxConnections"],
  ["link_max_unauthenticated", "maxUnauthenticated"],
  ["link_max_pending_bytes", "maxPendingBytes"],
  ["link_max_lanes", "maxInboundLanes"],
  ["datacenter_max_lanes", "maxDatacenterLanes"],
  ["datacenter_max_links", "maxDatacenterLinks"],
  ["datacenter_max_unauthenticated", "maxDatacenterUnauthenticated"],
  ["datacenter_max_endpoints", "maxDatacenterEndpoints"],
  ["link_max_unsettled", "maxUnsettled"],
  ["link_max_senders", "maxBindings"],
] as const;

for (const [option, limit] of LINK_LIMITS) {
  Deno.test(`limits.${option} allows nothing that a link's ${limit} refuses`, () => {
    const { minValue, maxValue } = LIMITS.shape[option].def.innerType;
    for (const value of [minValue, maxValue]) resolveLinksOptions({ [limit]: value! });
  });
}

Deno.test("the file and kept subscription requests have the same defaults", () => {
  const { keptRequests, keptRequestsPerSender, keptRequestsPerContact, keptRequestBytes } =
    parse(SOUND).limits;
  assert.deepEqual({
    maxRequests: keptRequests,
    maxPerSender: keptRequestsPerSender,
    maxPerContact: keptRequestsPerContact,
  }, resolveRequestBounds());
  assert.equal(keptRequestBytes, DEFAULT_MAX_REQUEST_BYTES);
});

const DATACENTER_LIMITS = [
  ["datacenter_max_nodes", "maxNodes"],
  ["datacenter_max_endpoints_per_node", "maxEndpointsPerNode"],
  ["datacenter_max_endpoints", "maxEndpoints"],
  ["datacenter_max_claims", "maxClaims"],
  ["datacenter_max_claims_per_account", "maxClaimsPerAccount"],
  ["datacenter_max_domains", "maxDomains"],
] as const;

for (const [option, bound] of DATACENTER_LIMITS) {
  Deno.test(`limits.${option} has the session table's default, and allows nothing that the table refuses`, () => {
    const table = { globalHost: "example.com", localHost: "dc1", nodeName: "n", incarnation: 1 };
    const schema = LIMITS.shape[option];
    assert.equal(schema.def.defaultValue, resolveTable(table).datacenter[bound]);
    const { minValue, maxValue } = schema.def.innerType;
    const make = (value: number) => resolveTable({ ...table, datacenter: { [bound]: value } });
    for (const value of [minValue!, maxValue!]) make(value);
    for (const value of [minValue! - 1, maxValue! + 1]) {
      assert.equal(schema.safeParse(value).success, false, String(value));
      assert.throws(() => make(value), RangeError);
    }
  });
}

Deno.test("limits.datacenter_max_lease is expire_after unless it is set", () => {
  const lease = (text: string) => parse(SOUND + text).limits.datacenterMaxLeaseMs;
  assert.equal(lease("redis.expire_after = 300\n"), 300_000);
  assert.equal(lease("redis.expire_after = 300\n[limits]\ndatacenter_max_lease = 90.5\n"), 90_500);
  for (const value of ["0.9", "31536001", '"long"']) {
    assert.throws(
      () => lease(`[limits]\ndatacenter_max_lease = ${value}\n`),
      /datacenter_max_lease/,
    );
  }
});

Deno.test("a component may have any domain except a key of the session table", () => {
  for (const domain of RESERVED_COMPONENT_DOMAINS) assert.ok(isReservedDomain(domain));
  assert.ok(isReservedDomain("hosts") && RESERVED_COMPONENT_DOMAINS.has("hosts"));
  assert.ok(!isReservedDomain("echo.example.com"));
});

function makeServices(bounds: Partial<HostServicesOptions>): void {
  new HostServices({
    software: { name: "test", version: "1" },
    publicDomains: () => Promise.resolve([]),
    reply: () => {},
    metrics: new MetricsRegistry(new ManualClock()),
    ...bounds,
  });
}

const EDGE_LIMITS = [
  [
    "max_sessions_per_account",
    DEFAULT_MAX_SESSIONS_PER_ACCOUNT,
    (max: number) =>
      void new SessionRegistry({
        hooks: { opened: () => Promise.resolve(), closed: () => Promise.resolve() },
        accountIq: () => "ignored",
        maxSessionsPerAccount: max,
      }),
  ],
  [
    "max_pending_requests",
    DEFAULT_MAX_PENDING_REQUESTS,
    (max: number) => makeServices({ maxPendingRequests: max }),
  ],
  [
    "max_iq_bytes",
    DEFAULT_MAX_IQ_BYTES,
    (max: number) => makeServices({ maxIqBytes: max }),
  ],
  [
    "max_iq_elements",
    DEFAULT_MAX_IQ_ELEMENTS,
    (max: number) => makeServices({ maxIqElements: max }),
  ],
  [
    "max_unauthenticated",
    1000,
    (max: number) => void new StreamAdmission({ maxUnauthenticated: max }),
  ],
  [
    "max_connections_per_address",
    1000,
    (max: number) => void new StreamAdmission({ maxPerAddress: max }),
  ],
] as const;

for (const [option, byDefault, make] of EDGE_LIMITS) {
  Deno.test(`limits.${option} has the edge's default, and allows nothing that the edge refuses`, () => {
    const schema = LIMITS.shape[option];
    assert.equal(schema.def.defaultValue, byDefault);
    const { minValue, maxValue } = schema.def.innerType;
    for (const value of [minValue!, maxValue!]) make(value);
    for (const value of [minValue! - 1, maxValue! + 1]) {
      assert.equal(schema.safeParse(value).success, false, String(value));
    }
    assert.throws(() => make(minValue! - 1), RangeError);
  });
}

Deno.test("limits.max_directed_presence has a session's default", () => {
  const { defaultValue, innerType } = LIMITS.shape.max_directed_presence.def;
  assert.deepEqual(
    [defaultValue, innerType.minValue, innerType.maxValue],
    [DEFAULT_MAX_DIRECTED_PRESENCE, 1, 100_000],
  );
});

Deno.test("limits.shutdown_timeout ranges from one second to one hour, and defaults to eight seconds", () => {
  assert.equal(parse(SOUND).limits.shutdownTimeoutMs, 8000);
  const takes = (value: number) => LIMITS.shape.shutdown_timeout.safeParse(value).success;
  assert.deepEqual([1, 3600, 0.999, 3600.1].map(takes), [true, true, false, false]);
});

Deno.test("each limit of a port accepts both its bounds, and nothing beyond them", () => {
  for (
    const [option, least, most] of [
      ["link_max_connections", 1, 1_000_000],
      ["link_max_unauthenticated", 1, 1_000_000],
      ["link_max_lanes", 1, 1_000_000],
      ["link_max_senders", 1, 100_000_000],
      ["websocket_max_fragments", 1, 1_000_000],
      ["http_max_head_bytes", 1024, 1_048_576],
      ["admin_max_connections", 1, 1_000_000],
      ["rate_max_keys", 1, 10_000_000],
      ["repeat_max_pairs", 2, 10_000_000],
      ["resend_max_messages", 2, 16_777_216],
      ["admin_max_head_bytes", 1024, 1_048_576],
      ["admin_max_body_bytes", 1024, 16_777_216],
    ] as const
  ) {
    const takes = (value: number) => LIMITS.shape[option].safeParse(value).success;
    assert.deepEqual([least, most].map(takes), [true, true], option);
    assert.deepEqual([least - 1, most + 1].map(takes), [false, false], option);
  }
});

for (
  const [option, name] of [
    ["moved_check_ms", "movedCheckMs"],
    ["end_hold_ms", "endHoldMs"],
    ["stale_h.max_items", "maxStaleH"],
    ["stream_ends_max", "maxStreamEnds"],
    ["suspect_within_ms", "suspectWithinMs"],
  ] as const
) {
  Deno.test(`mod_stream_management.${option} has the same range in the file and in a session`, () => {
    const { min, max } = STREAM_MANAGEMENT_RANGES[name];
    const read = (value: number) =>
      parse(`${SOUND}\n[modules.mod_stream_management]\n${option} = ${value}\n`);
    for (const value of [min, max]) assert.equal(read(value).streamManagement![name], value);
    for (const value of [min - 1, max + 1]) assert.throws(() => read(value), new RegExp(option));
  });
}
