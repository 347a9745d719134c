import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { PacedLog, SILENT_LOGGER } from "../../../observe/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "../redis/testing/memory_redis.ts";
import { AUTHORS_KEY, leaseKey, nodesKey } from "../redis/keys.ts";
import type { NodeRef } from "../claims/node_leases.ts";
import { formatLease, NodeLeases } from "../claims/node_leases.ts";
import { nodeId, NodeWatch } from "./node_watch.ts";
import { replicaSeconds, resolveTable } from "../options.ts";

const DC1 = "dc1.example.com";
const A: NodeRef = { host: "dc2.example.com", node: "a" };
const B: NodeRef = { host: "dc2.example.com", node: "b" };

/** Makes the watch of a node of dc1, in whose Redis its own lease and those of `live` are. */
function watcher(...live: readonly NodeRef[]) {
  const clock = new ManualClock();
  const memory = new MemoryRedis(clock);
  const redis = new MemoryRedisCommands(memory, clock);
  const options = resolveTable({
    globalHost: "example.com",
    localHost: DC1,
    nodeName: "node1",
    incarnation: 1,
  });
  const heard: string[] = [];
  let burial: PromiseWithResolvers<void> | undefined;
  const watch = new NodeWatch({
    redis,
    clock,
    lives: new PacedLog(SILENT_LOGGER, clock),
    options,
    leases: new NodeLeases(redis, clock, 0),
    writer: {
      lookAgain: (node) => Promise.resolve(heard.push(`look at ${nodeId(node)}`) > 0),
      forget: async (author, isLast) => {
        heard.push(`forget ${nodeId(author)}${isLast ? ", the last" : ""}`);
        await burial?.promise;
        return true;
      },
    },
    isRedisUp: () => true,
    redisLost: () => void heard.push("redis lost"),
    died: (node) => void heard.push(`${nodeId(node)} died`),
    buried: () => {},
    failed: (reason) => void heard.push(reason),
  });
  const grant = ({ host, node }: NodeRef) =>
    memory.run(["SET", leaseKey(host, node), formatLease({ incarnation: 7, startedUs: 7 })]);
  for (const node of [{ host: DC1, node: "node1" }, ...live]) grant(node);
  const revoke = ({ host, node }: NodeRef) => memory.run(["DEL", leaseKey(host, node)]);
  const look = async () => {
    const answered = watch.look();
    clock.advance(100); // time to Redis and back
    await answered;
    return heard.splice(0);
  };
  /** Makes burials take until the returned function is called. */
  const holdBurials = () => {
    burial = Promise.withResolvers();
    return burial.resolve;
  };
  const renewMs = Number(replicaSeconds(options)) * 1000 / 4;
  return { clock, memory, watch, grant, revoke, look, holdBurials, renewMs };
}

Deno.test("NodeWatch.look() has a node's entries checked when its lease ends, and when it is back", async () => {
  const { watch, grant, revoke, look } = watcher(A);
  watch.note(A, true);
  assert.deepEqual(await look(), []);
  revoke(A);
  assert.deepEqual(await look(), [`${nodeId(A)} died`, `look at ${nodeId(A)}`]);
  assert.equal(watch.isLiveHost(A.host), false);
  assert.deepEqual(await look(), [], "once");
  grant(A);
  assert.deepEqual(await look(), [`look at ${nodeId(A)}`]);
  assert.equal(watch.isLiveHost(A.host), true);
});

Deno.test("NodeWatch.look() buries a node that has been dead for long, and checks one that lives again", async () => {
  const { clock, watch, look, renewMs } = watcher(B);
  watch.note(A, false);
  watch.note(B, true);
  clock.advance(renewMs - 200);
  assert.deepEqual(await look(), []);
  clock.advance(100);
  assert.deepEqual(await look(), [`forget ${nodeId(A)}`, `look at ${nodeId(B)}`]);
  assert.equal(watch.isLastNode(B), true);
  assert.equal(watch.hasNodes(B.host), true);
});

Deno.test("NodeWatch.look() checks who lives while it buries a node, and buries none that is back by then", async () => {
  const { clock, watch, grant, look, holdBurials, renewMs } = watcher();
  const C: NodeRef = { host: A.host, node: "c" };
  for (const node of [A, B, C]) watch.note(node, false);
  clock.advance(renewMs);
  const end = holdBurials();
  assert.deepEqual(await look(), [`forget ${nodeId(A)}, the last`]);
  grant(B);
  assert.deepEqual(await look(), [`look at ${nodeId(B)}`]);
  end();
  assert.deepEqual(await look(), [`forget ${nodeId(C)}`]);
  assert.equal(watch.isLive(B), true);
});

Deno.test("NodeWatch.look() checks all entries when another node of its own datacenter has died", async () => {
  const { memory, watch, revoke, look } = watcher(A, { host: DC1, node: "node2" });
  memory.run(["SADD", nodesKey(DC1), "node1", "node2"]);
  watch.note(A, true);
  assert.deepEqual(await look(), [], "node2 is new");
  assert.deepEqual(await look(), [], "node2 lives");
  revoke({ host: DC1, node: "node2" });
  assert.deepEqual(await look(), [`look at ${nodeId(A)}`]);
});

Deno.test("NodeWatch.look() finds an author that another node of its datacenter has written", async () => {
  const { memory, watch, look } = watcher(A);
  assert.equal(watch.isLiveHost(A.host), false);
  memory.run(["SADD", AUTHORS_KEY, nodeId(A), nodeId({ host: DC1, node: "node1" }), "garbage"]);
  await look();
  assert.equal(watch.isLiveHost(A.host), true);
  assert.equal(watch.hasNodes(DC1), false);
  assert.deepEqual(await look(), [`look at ${nodeId(A)}`]);
});

Deno.test("NodeWatch.look() reports that Redis has lost its data once its own lease is gone", async () => {
  const { watch, revoke, look } = watcher();
  revoke({ host: DC1, node: "node1" });
  assert.deepEqual(await look(), [], "the lease was never written");
  watch.leaseWritten();
  assert.deepEqual(await look(), ["redis lost"]);
  assert.deepEqual(await look(), [], "said once");
});

Deno.test("NodeWatch.isLastNode() counts nodes that were not checked yet as alive", async () => {
  const { watch, look } = watcher(A);
  watch.note(A, true);
  assert.equal(watch.isLastNode(A), true);
  watch.note(B, undefined);
  assert.equal(watch.isLastNode(A), false);
  await look();
  assert.equal(watch.isLastNode(A), true, "B has no lease");
});
