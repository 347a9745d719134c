import { Redis } from "ioredis";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { connect } from "node:net";
import { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { type Command, DYNOMITE_CLOSES_ON } from "./dynomite_commands.ts";
import { EmbeddedRedis } from "./embedded_redis.ts";
import { LocalRedis } from "./local_redis.ts";
import { RedisClient } from "./redis_client.ts";
import type { RedisServer } from "./redis_server.ts";
import { ReplicatingProxy } from "./replicating_proxy.ts";
import { encodeValue } from "./resp.ts";

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
  const dc1 = await place(new LocalRedis({ run, name: "dc1-redis" }));
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

/** All that comes back until the connection ends, for commands sent in one write. */
async function answerTo(proxy: ReplicatingProxy, commands: readonly Command[]): Promise<string> {
  const { host, port } = proxy.address;
  const socket = connect({ host, port });
  let answer = "";
  socket.on("data", (chunk) => answer += chunk);
  socket.on("error", () => {}); // `close` follows
  socket.write(Buffer.concat(commands.map((command) => encodeValue(command))));
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return answer;
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

Deno.test("ReplicatingProxy forwards every write unchanged, whatever its result here", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  await dc2.direct.call("SET", "k", "there first");
  assert.equal(await dc1.node.call("SET", "k", "here", "NX", "EX", 100), "OK");
  await dc1.direct.call("SET", "only here", "1");
  assert.equal(await dc1.node.call("SET", "only here", "2", "NX"), null);
  await dc2.direct.call("SET", "only there", "1");
  assert.equal(await dc1.node.call("EXPIRE", "only there", 100), 0);
  await dc1.node.call("SET", "last", "1");
  await arrives(dc2, "last", "1");
  assert.equal(await dc2.direct.call("GET", "k"), "there first", "the condition is tried there");
  assert.equal(await dc2.direct.call("GET", "only here"), "2", "it failed here, and not there");
  assert.equal(await dc2.direct.call("TTL", "only there"), 100);
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

Deno.test("ReplicatingProxy answers refused commands in order", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1 } = await pair(stack);
  dc1.proxy.refuse(["GET"]);
  const answers = await Promise.allSettled([
    dc1.node.call("SET", "a", "1"),
    dc1.node.call("GET", "a"),
    dc1.node.call("SET", "a", "2"),
    dc1.node.call("SUNION", "a", "b"),
  ]);
  const seen = answers.map((each) =>
    each.status === "fulfilled" ? each.value : String(each.reason.message)
  );
  assert.deepEqual(seen, [
    "OK",
    "ERR unknown command 'GET'",
    "OK",
    "ERR a rack of several nodes cannot answer SUNION of keys without one tag",
  ]);
  dc1.proxy.refuse([]);
  assert.equal(await dc1.node.call("GET", "a"), "2", "it is the same connection");
});

Deno.test("ReplicatingProxy closes on commands unknown to Dynomite, and drops pending answers", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  for (const [at, command] of DYNOMITE_CLOSES_ON.entries()) {
    const sent = [["SET", `before-${at}`, "1"], command, ["SET", `behind-${at}`, "1"]];
    assert.equal(await answerTo(dc1.proxy, sent), "", command.join(" "));
    await arrives(dc1, `before-${at}`, "1");
    await arrives(dc2, `before-${at}`, "1");
    assert.equal(await dc1.node.call("GET", `behind-${at}`), null, command.join(" "));
  }
  assert.equal(dc1.proxy.unknownCommands, DYNOMITE_CLOSES_ON.length);
});

Deno.test("ReplicatingProxy accepts further commands that Dynomite accepts", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  assert.match(String(await dc1.node.call("INFO")), /redis_version/);
  assert.equal(await dc1.node.call("MSET", "a", "1", "b", "2"), "OK");
  assert.deepEqual(await dc1.node.call("MGET", "a", "b"), ["1", "2"]);
  assert.equal(await dc1.node.call("EXISTS", "a", "b"), 2);
  assert.deepEqual([...await dc1.node.call("KEYS", "*") as string[]].sort(), ["a", "b"]);
  assert.equal(await dc1.node.call("EVAL", "return redis.call('GET', KEYS[1])", "1", "a"), "1");
  assert.deepEqual(await dc1.node.call("CONFIG", "GET", "appendonly"), ["appendonly", "no"]);
  assert.equal(await dc1.node.call("DEL", "a", "b"), 2);
  assert.equal(dc1.proxy.unknownCommands, 0);
  assert.equal(dc1.proxy.connections, 1);
  await until(() => dc1.proxy.towards("dc2").held === 0, { what: "all is sent on" });
  assert.equal(await dc2.direct.call("EXISTS", "a", "b"), 0);
});

Deno.test("ReplicatingProxy serves the client library that nodes use", async () => {
  await using stack = new AsyncDisposableStack();
  const { dc1, dc2 } = await pair(stack);
  for (const { proxy, server } of [dc1, dc2]) {
    const { host, port } = proxy.address;
    const quiet = { protocol: 2, disableClientInfo: true, lazyConnect: true } as const;
    const redis = new Redis({ host, port, ...quiet });
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
