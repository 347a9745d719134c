import assert from "node:assert/strict";
import type { LinksOptions } from "./links_options.ts";
import { resolveLinksOptions } from "./links_options.ts";

Deno.test("resolveLinksOptions() has the defaults of the configuration", () => {
  const options = resolveLinksOptions();
  assert.equal(options.connectionsPerEndpoint, 1);
  assert.equal(options.hostsRefreshIntervalMs, 3000);
  assert.equal(options.endpointRefreshIntervalMs, 60_000);
  assert.equal(options.endpointRefreshIntervalWhenEmptyMs, 3000);
  assert.equal(options.disabledGcIntervalMs, 60_000);
  assert.equal(options.silenceTimeoutMs, 15_000);
  assert.ok(Object.isFrozen(options));
});

Deno.test("resolveLinksOptions() takes each value at its bound and refuses one past it", () => {
  const good: readonly LinksOptions[] = [
    { connectionsPerEndpoint: 1 },
    { connectionsPerEndpoint: 1000 },
    { maxFrameBytes: 16_384 },
    { laneMaxBytes: 131_072 },
    { maxPendingBytes: 131_072 },
    { ackDelayMs: 0 },
    { laneHighWater: 0.875 },
    { pingIntervalMs: 14_999 },
  ];
  for (const options of good) resolveLinksOptions(options);
  const bad: readonly LinksOptions[] = [
    { connectionsPerEndpoint: 0 },
    { connectionsPerEndpoint: 1001 },
    { connectionsPerEndpoint: 1.5 },
    { maxFrameBytes: 16_383 },
    { laneMaxBytes: 131_071 },
    { maxPendingBytes: 131_071 },
    { ackDelayMs: -1 },
    { laneHighWater: 0.876 },
    { laneLowWater: 0 },
    { laneLowWater: 0.5 },
    { pingIntervalMs: 15_000 },
    { reconnectMaxMs: 100 },
    { expireAfterMs: Number.NaN },
  ];
  for (const options of bad) {
    assert.throws(() => resolveLinksOptions(options), RangeError, JSON.stringify(options));
  }
});
