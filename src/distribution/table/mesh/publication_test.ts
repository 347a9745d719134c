import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { HybridClock } from "../claims/hybrid_clock.ts";
import { resolveTable } from "../options.ts";
import { datacenterKey } from "../redis/keys.ts";
import type { RedisCommand } from "../redis/redis_commands.ts";
import { MemoryRedis, MemoryRedisCommands } from "../redis/testing/memory_redis.ts";
import { Publication } from "./publication.ts";

const DC1 = "dc1.example.com";

/** Nodes of one datacenter with one Redis. */
class Nodes {
  readonly clock = new ManualClock();
  readonly memory = new MemoryRedis(this.clock);
  /** Called before a node's second request of a beat reaches Redis. */
  beforeWrite: (() => Promise<void>) | undefined;
  #incarnation = 0;

  get id(): unknown {
    return this.memory.run(["GET", datacenterKey(DC1)]);
  }

  node(nodeName: string): Publication {
    const redis = new MemoryRedisCommands(this.memory, this.clock);
    const options = resolveTable({
      globalHost: "example.com",
      localHost: DC1,
      nodeName,
      incarnation: ++this.#incarnation,
    });
    const run = redis.run.bind(redis);
    redis.run = async (commands: readonly RedisCommand[]) => {
      const { beforeWrite } = this;
      if (beforeWrite !== undefined && commands.some(([verb]) => verb === "SET")) {
        this.beforeWrite = undefined;
        await beforeWrite();
      }
      return await run(commands);
    };
    return new Publication(redis, options, new HybridClock(this.clock));
  }
}

Deno.test("Publication.beat() keeps the datacenter's id when Redis loses all data between two beats", async () => {
  const nodes = new Nodes();
  const witness = nodes.node("node1");
  await witness.beat();
  const { id } = nodes;
  nodes.memory.flush();
  const late = nodes.node("node2");
  await late.beat();
  assert.notEqual(nodes.id, id, "it has found none, and made one up");
  await witness.beat();
  assert.equal(nodes.id, id);
  assert.equal(witness.datacenterId, id);
  assert.ok(witness.hasBeenForgotten);
  assert.equal(witness.hasNewId, false);
  await late.beat();
  assert.equal(late.datacenterId, id);
  assert.ok(late.hasNewId);
});

Deno.test("Publication.beat() keeps the id when Redis loses all data, and another node starts, within a beat", async () => {
  const nodes = new Nodes();
  const witness = nodes.node("node1");
  await witness.beat();
  const { id } = nodes;
  const late = nodes.node("node2");
  nodes.beforeWrite = async () => {
    nodes.memory.flush();
    await late.beat();
    assert.notEqual(nodes.id, id, "it has found none, and made one up");
  };
  await witness.beat();
  assert.equal(nodes.id, id);
  assert.equal(witness.datacenterId, id);
  assert.ok(witness.hasBeenForgotten);
  assert.equal(witness.hasNewId, false);
});

Deno.test("Publication.beat() takes the id of nodes that have run before", async () => {
  const nodes = new Nodes();
  const [one, other] = [nodes.node("node1"), nodes.node("node2")];
  await one.beat();
  await other.beat();
  assert.equal(other.datacenterId, one.datacenterId);
  for (const node of [one, other]) {
    await node.beat();
    assert.equal(node.hasBeenForgotten, false);
    assert.equal(node.hasNewId, false);
  }
});
