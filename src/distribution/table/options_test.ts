import assert from "node:assert/strict";
import type { CacheOptions, RedisOptions } from "./options.ts";
import { resolveTable } from "./options.ts";

const NAMES = {
  globalHost: "example.com",
  localHost: "dc1.example.com",
  nodeName: "node1@dc1.example.com",
  incarnation: 1,
};

Deno.test("resolveTable() fills in the documented defaults", () => {
  const { redis, cache } = resolveTable(NAMES);
  assert.deepEqual({ ...redis, readBackMs: [] }, {
    server: "127.0.0.1",
    port: 8102,
    username: "",
    password: "",
    tls: undefined,
    sentinels: [],
    sentinelName: "mymaster",
    sentinelUsername: "",
    sentinelPassword: "",
    cluster: [],
    poolSize: 1,
    expireAfterMs: 120_000,
    refreshAfterMs: 60_000,
    commandTimeoutMs: 5_000,
    reconnectMaxMs: 2_000,
    readBackMs: [],
    withdrawMs: 5_000,
  });
  assert.deepEqual(cache, {
    cacheMissed: true,
    domainLifetimeMs: 600_000,
    jidLifetimeMs: 5_000,
    maxJids: 10_000,
  });
});

const LIMITS: readonly (readonly [RedisOptions, RedisOptions])[] = [
  [{ port: 1 }, { port: 0 }],
  [{ port: 65_535 }, { port: 65_536 }],
  [{ poolSize: 64 }, { poolSize: 65 }],
  [{ poolSize: 1 }, { poolSize: 0 }],
  [{ commandTimeoutMs: 100 }, { commandTimeoutMs: 99 }],
  [{ commandTimeoutMs: 60_000 }, { commandTimeoutMs: 60_001 }],
  [{ reconnectMaxMs: 50 }, { reconnectMaxMs: 49 }],
  [{ expireAfterMs: 1_000, refreshAfterMs: 100 }, { expireAfterMs: 999, refreshAfterMs: 100 }],
  [{ expireAfterMs: 1_000, refreshAfterMs: 999 }, { expireAfterMs: 1_000, refreshAfterMs: 99 }],
];

for (const [within, beyond] of LIMITS) {
  Deno.test(`resolveTable() takes ${JSON.stringify(within)} and refuses ${JSON.stringify(beyond)}`, () => {
    resolveTable({ ...NAMES, redis: within });
    assert.throws(() => resolveTable({ ...NAMES, redis: beyond }), RangeError);
  });
}

const CACHE_LIMITS: readonly (readonly [CacheOptions, CacheOptions])[] = [
  [{ maxJids: 1 }, { maxJids: 0 }],
  [{ jidLifetimeMs: 0 }, { jidLifetimeMs: -1 }],
  [{ domainLifetimeMs: 0 }, { domainLifetimeMs: -1 }],
];

for (const [within, beyond] of CACHE_LIMITS) {
  Deno.test(`resolveTable() takes ${JSON.stringify(within)} and refuses ${JSON.stringify(beyond)}`, () => {
    resolveTable({ ...NAMES, cache: within });
    assert.throws(() => resolveTable({ ...NAMES, cache: beyond }), RangeError);
  });
}

Deno.test("resolveTable() refuses a refresh interval as long as entries live", () => {
  const redis = { refreshAfterMs: 60_000, expireAfterMs: 60_000 };
  assert.throws(() => resolveTable({ ...NAMES, redis }), {
    code: "table/refresh-not-below-expire",
  });
});
