import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "../redis/testing/memory_redis.ts";
import { Housekeeping } from "./housekeeping.ts";
import { HOSTS_KEY, leaseKey, nodesKey } from "../redis/keys.ts";
import { formatLease, NodeLeases } from "../claims/node_leases.ts";
import { resolveTable } from "../options.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const EXPIRE_AFTER_MS = 10_000;

/** Makes the housekeeping of a node of dc1; in its Redis dc2 has one live and one dead node. */
function sweeper(replication: "builtin" | "external", leaseLifetimeMs = 0) {
  const clock = new ManualClock();
  const memory = new MemoryRedis(clock);
  const redis = new MemoryRedisCommands(memory, clock);
  const options = resolveTable({
    globalHost: "example.com",
    localHost: DC1,
    nodeName: "node1",
    incarnation: 1,
    replication,
    redis: { expireAfterMs: EXPIRE_AFTER_MS, refreshAfterMs: EXPIRE_AFTER_MS / 2 },
  });
  const leases = new NodeLeases(redis, clock, leaseLifetimeMs);
  const housekeeping = new Housekeeping(redis, leases, clock, options);
  const lease = (host: string, node: string) =>
    memory.run(["SET", leaseKey(host, node), formatLease({ incarnation: 7, startedUs: 7 })]);
  memory.run(["SADD", HOSTS_KEY, DC1, DC2]);
  memory.run(["SADD", nodesKey(DC1), "node1", "former"]);
  memory.run(["SADD", nodesKey(DC2), "living", "former"]);
  lease(DC1, "node1");
  lease(DC2, "living");
  const members = (key: string) => (memory.run(["SMEMBERS", key]) as string[]).toSorted();
  return { clock, housekeeping, lease, leases, members };
}

Deno.test("Housekeeping.prune() spares a node that has its lease again since the last read", async () => {
  const { housekeeping, lease, leases, members } = sweeper("builtin", 5_000);
  await leases.read([{ host: DC1, node: "former" }]);
  lease(DC1, "former");
  await housekeeping.prune();
  assert.deepEqual(members(nodesKey(DC1)), ["former", "node1"]);
});

Deno.test("Housekeeping.prune() removes other datacenters' dead nodes with builtin replication", async () => {
  const { clock, housekeeping, members } = sweeper("builtin");
  await housekeeping.prune();
  assert.deepEqual(members(nodesKey(DC1)), ["node1"], "our own dead nodes are removed at once");
  clock.advance(EXPIRE_AFTER_MS - 1);
  await housekeeping.prune();
  assert.deepEqual(members(nodesKey(DC2)), ["former", "living"]);
  clock.advance(1);
  await housekeeping.prune();
  assert.deepEqual(members(nodesKey(DC2)), ["living"]);
  assert.deepEqual(members(HOSTS_KEY), [DC1, DC2]);
});

Deno.test("Housekeeping.prune() begins anew when a node has lived in between", async () => {
  const { clock, housekeeping, lease, members } = sweeper("builtin");
  await housekeeping.prune();
  clock.advance(EXPIRE_AFTER_MS - 1);
  lease(DC2, "former");
  await housekeeping.prune();
  clock.advance(EXPIRE_AFTER_MS);
  await housekeeping.prune();
  assert.deepEqual(members(nodesKey(DC2)), ["former", "living"]);
});

Deno.test("Housekeeping.prune() leaves other datacenters' nodes alone with an external replicator", async () => {
  const { clock, housekeeping, members } = sweeper("external");
  for (let look = 0; look < 3; look++) {
    await housekeeping.prune();
    clock.advance(EXPIRE_AFTER_MS);
  }
  assert.deepEqual(members(nodesKey(DC2)), ["former", "living"]);
});
