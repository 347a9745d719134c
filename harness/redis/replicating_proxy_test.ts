import { Redis } from "ioredis";
import assert from "node:assert/strict";
import { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { EmbeddedRedis } from "./embedded_redis.ts";
import { LocalRedis } from "./local_redis.ts";
import { RedisClient } from "./redis_client.ts";
import type { RedisServer } from "./redis_server.ts";
import { DYNOMITE_REFUSES, ReplicatingProxy } from "./replicating_proxy.ts";

interface Place {
  readonly server: RedisServer;
  readonly proxy: ReplicatingProxy;
  /** Through the proxy, as a node would. */
  readonly node: RedisClient;
  /** Past the proxy. */
  readonly direct: RedisClient;
}

/** Two datacenters that replicate to each other. */
async function pair(stack: AsyncDisposableStack): Promise<{ dc1: Place; dc2: Place; run: Run }> {
  const run = stack.use(await Run.start());
  const place = async (server: RedisServer): Promise<Place> => {
    stack.use(server);
    await server.start();
    const proxy = stack.use(new ReplicatingProxy(() => server.address));
    await proxy.start();
    const node = stack.use(new RedisClient(proxy.address));
    return { server, proxy, node, direct: stack.use(new RedisClient(server.address)) };
  };
  const dc1 = await place(new LocalRedis({ run, name: "dc1-redis", password: "s3cret" }));
  const dc2 = await place(new EmbeddedRedis());
  dc1.proxy.replicateTo("dc2", () => dc2.server.address);
  dc2.proxy.replicateTo("dc1", () => dc1.server.address);
  return { dc1, dc2, run };
}

function arrives(place: Place, key: string, value: string | null): Promise<unknown> {
  return until(async () => await place.direct.call("GET", key) === value, {
    what: `${key} is ${value}`,
  });
}

Deno.test("ReplicatingProxy answers from its own Redis and copies writes both ways", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  assert.equal(await dc1.node.call("SET", "bob@example.com", "dc1", "EX", 120), "OK");
  assert.equal(await dc1.node.call("GET", "bob@example.com"), "dc1");
  await arrives(dc2, "bob@example.com", "dc1");
  assert.equal(await dc2.direct.call("TTL", "bob@example.com"), 120);
  await dc2.node.call("SADD", "hosts", "dc2");
  await until(() => dc1.direct.call("SISMEMBER", "hosts", "dc2"), { what: "the set arrives" });
  await dc2.node.call("DEL", "bob@example.com");
  await arrives(dc1, "bob@example.com", null);
});

Deno.test("ReplicatingProxy copies what a conditional write did, not its condition", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  await dc2.direct.call("SET", "k", "there first");
  assert.equal(await dc1.node.call("SET", "k", "here", "NX", "EX", 100), "OK");
  await arrives(dc2, "k", "here");
  assert.equal(await dc1.node.call("SET", "k", "again", "NX"), null);
  await dc1.node.call("SET", "last", "1");
  await arrives(dc2, "last", "1");
  assert.equal(await dc2.direct.call("GET", "k"), "here");
});

Deno.test("ReplicatingProxy holds writes while parted and delivers them in order after", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  const lane = dc1.proxy.towards("dc2");
  lane.part();
  await dc1.node.call("SET", "k", "1");
  await dc1.node.call("SET", "k", "2");
  await dc2.node.call("SET", "k", "3");
  await arrives(dc1, "k", "3"); // the other direction is not parted
  assert.equal(lane.held, 2);
  assert.equal(await dc2.direct.call("GET", "k"), "3");
  lane.heal();
  await until(() => lane.held === 0 && lane.delivered === 2, { what: "all is delivered" });
  assert.equal(await dc2.direct.call("GET", "k"), "2", "the last arrival wins, not the last write");
});

Deno.test("ReplicationLane.lagMs delays what is written from then on", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  const lane = dc1.proxy.towards("dc2");
  lane.lagMs = 3_600_000;
  await dc1.node.call("SET", "slow", "1");
  assert.equal(lane.held, 1);
  lane.lagMs = 0;
  await dc1.node.call("SET", "quick", "1");
  assert.equal(lane.held, 2, "what comes later does not overtake");
  assert.equal(await dc2.direct.call("GET", "quick"), null);
});

Deno.test("ReplicationLane delivers what it held once a stopped Redis is back", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  await dc2.server.stop();
  await dc1.node.call("SET", "k", "1");
  await assert.rejects(dc2.node.call("GET", "k"), /Lost the connection/);
  await dc2.server.start();
  await arrives(dc2, "k", "1");
  assert.equal(await dc2.node.call("GET", "k"), "1", "the proxy finds its Redis again");
});

Deno.test("ReplicatingProxy refuses in turn what no replicator takes", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1 } = await pair(stack);
  const answers = await Promise.allSettled([
    dc1.node.call("SET", "a", "1"),
    dc1.node.call("MULTI"),
    dc1.node.call("GET", "a"),
    dc1.node.call("KEYS", "*"),
    dc1.node.call("DEL", "a", "b"),
    dc1.node.call("GET", "a"),
  ]);
  const seen = answers.map((each) =>
    each.status === "fulfilled" ? each.value : String(each.reason.message).split(" does")[0]
  );
  assert.deepEqual(seen, [
    "OK",
    "ERR the replicating proxy",
    "1",
    "ERR the replicating proxy",
    "ERR the replicating proxy takes DEL of one key only",
    "1",
  ]);
  assert.equal(dc1.proxy.refusedCommands, 3);
});

Deno.test("ReplicatingProxy that refuses like Dynomite still serves a client that insists on little", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  dc2.proxy.refuse(DYNOMITE_REFUSES);
  for (const command of [["CLIENT", "ID"], ["INFO"], ["SELECT", "0"], ["HELLO", "2"]]) {
    await assert.rejects(dc2.node.call(...command), /unknown command/);
  }
  assert.equal(await dc2.node.call("SET", "k", "v"), "OK");
  await arrives(dc1, "k", "v");
});

Deno.test("ReplicatingProxy serves the client library that nodes use", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  for (const { proxy, server } of [dc1, dc2]) {
    const { host, port, password } = proxy.address;
    const redis = new Redis({ host, port, ...(password && { password }), lazyConnect: true });
    await redis.connect();
    assert.equal(await redis.set("k", "ü", "EX", 100, "NX"), "OK", server.kind);
    assert.equal(await redis.get("k"), "ü");
    assert.equal(await redis.del("k"), 1);
    await until(() => dc1.proxy.towards("dc2").held + dc2.proxy.towards("dc1").held === 0, {
      what: "both agree",
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    redis.once("close", () => resolve());
    redis.disconnect();
    await promise;
  }
});
