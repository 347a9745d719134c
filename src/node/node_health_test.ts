import assert from "node:assert/strict";
import type { NodePhase } from "./node_health.ts";
import { nodeHealth } from "./node_health.ts";

const UP = { status: "up", reason: undefined } as const;

const CASES: readonly (readonly [NodePhase, object])[] = [
  ["starting", { name: "node", state: "down", reason: "starting" }],
  ["running", { name: "node", state: "up" }],
  ["draining", { name: "node", state: "draining", reason: "stopping" }],
  ["stopped", { name: "node", state: "draining", reason: "stopping" }],
];
for (const [phase, node] of CASES) {
  Deno.test(`nodeHealth() reports a node that is ${phase}`, () => {
    assert.deepEqual(nodeHealth(phase, UP, []), [{ name: "redis", state: "up" }, node]);
  });
}

Deno.test("nodeHealth() says why Redis is degraded", () => {
  const redis = { status: "degraded", reason: "connection refused" } as const;
  assert.deepEqual(nodeHealth("running", redis, [])[0], {
    name: "redis",
    state: "degraded",
    reason: "connection refused",
  });
});

Deno.test("nodeHealth() names the databases, and says why one cannot be reached", () => {
  const databases = [
    { pool: "internal", lastFailure: undefined },
    { pool: "rdbms.default", lastFailure: new Error("Cannot connect") },
  ];
  assert.deepEqual(nodeHealth("running", UP, databases), [
    { name: "redis", state: "up" },
    { name: "internal", state: "up" },
    { name: "rdbms.default", state: "degraded", reason: "Cannot connect" },
    { name: "node", state: "up" },
  ]);
});
