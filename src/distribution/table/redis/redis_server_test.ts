import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { randomIncarnation, SystemClock } from "../../../base/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { RedisServer, until } from "./testing/redis_server.ts";
import { bareJid, domainJid, fullJid, TestMetrics } from "../testing/table.ts";
import { inspectTable } from "../inspect_table.ts";
import type { RedisOptions } from "../options.ts";
import { SessionTable } from "../session_table.ts";

const HERE = "dc1.example.com";
const THERE = "dc2.example.com";
const NODE = `node1@${HERE}`;
const BOB = fullJid("bob", "phone");

interface Setup extends AsyncDisposable {
  readonly table: SessionTable;
  readonly metrics: TestMetrics;
  readonly logger: MemoryLogger;
}

function open(server: RedisServer, redis: RedisOptions = {}, host = HERE): Setup {
  const metrics = new TestMetrics();
  const logger = new MemoryLogger();
  const table = new SessionTable({
    globalHost: "example.com",
    localHost: host,
    nodeName: `node1@${host}`,
    incarnation: randomIncarnation(),
    replication: "external",
    redis: { server: server.socket, reconnectMaxMs: 50, ...redis },
  }, { metrics, logger });
  return { table, metrics, logger, [Symbol.asyncDispose]: () => table.close() };
}

/** Connects a client beside the table, to look at Redis and to break it. */
function client(server: RedisServer, password?: string): Redis {
  return new Redis({
    path: server.socket,
    ...(password === undefined ? {} : { password }),
    disableClientInfo: true,
  });
}

async function dump(redis: Redis): Promise<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  for (const key of (await redis.keys("*")).sort()) {
    if (key.startsWith("causeway:")) continue;
    const type = await redis.type(key);
    shown[key] = type === "string" ? await redis.get(key) : (await redis.smembers(key)).toSorted();
  }
  return shown;
}

const NODE_KEYS = {
  [`${HERE}#${NODE}#{endpoints}`]: ["127.0.0.1#5555", "::1#5555"],
  [`${HERE}#{nodes}`]: [NODE],
  "hosts": [HERE],
};

for (const poolSize of [1, 3]) {
  Deno.test(`SessionTable writes exactly the keys of the table to Redis over ${poolSize} connections`, async () => {
    await using server = await RedisServer.start();
    const redis = client(server);
    {
      await using setup = open(server, { poolSize, expireAfterMs: 60_000, refreshAfterMs: 500 });
      const { table } = setup;
      await table.start();
      await table.publishEndpoints([
        { host: "127.0.0.1", port: 5555 },
        { host: "::1", port: 5555 },
      ]);
      assert.deepEqual(await dump(redis), NODE_KEYS);

      await table.sessionOpened(BOB);
      await table.domainAdded("echo.example.com", { hidden: false });
      await table.domainAdded("secret.example.com", { hidden: true });
      const loggedIn = {
        ...NODE_KEYS,
        [`${HERE}#${NODE}#{domains}`]: ["echo.example.com", "secret.example.com"],
        [`${HERE}#${NODE}#{public_domains}`]: ["echo.example.com"],
        "bob@example.com": HERE,
        "bob@example.com/phone": HERE,
        "echo.example.com": HERE,
        "secret.example.com": HERE,
      };
      assert.deepEqual(await dump(redis), loggedIn);
      const own = (await redis.keys("causeway:*")).sort();
      assert.deepEqual(own, [
        "causeway:claims:bob@example.com",
        "causeway:claims:echo.example.com",
        "causeway:claims:secret.example.com",
        `causeway:dc:${HERE}`,
        "causeway:layout",
        `causeway:node:${HERE}#${NODE}`,
      ]);
      for (const key of await redis.keys("*")) {
        const ttl = await redis.ttl(key);
        assert.ok(
          ttl >= 1 && ttl <= (/^causeway:(dc:|layout$)/.test(key) ? 604_800 : 60),
          `${key} ${ttl}`,
        );
      }

      // refreshed: every shortened expiry is long again, and nothing else has changed
      for (const key of await redis.keys("*")) await redis.pexpire(key, 30_000);
      await until(async () => {
        const ttls = await Promise.all((await redis.keys("*")).map((key) => redis.pttl(key)));
        return ttls.every((ttl) => ttl > 30_000);
      }, "every entry is renewed");
      assert.deepEqual(await dump(redis), loggedIn);

      await table.sessionClosed(BOB);
      await table.domainRemoved("echo.example.com");
      await table.domainRemoved("secret.example.com");
      assert.deepEqual(await dump(redis), NODE_KEYS);
      assert.equal((await redis.keys("causeway:claims:*")).length, 0);
    }
    assert.deepEqual((await redis.keys("*")).sort(), [`causeway:dc:${HERE}`, "causeway:layout"]);
    await redis.quit();
  });
}

Deno.test("SessionTable survives a Redis that is killed, and fills the new one", async () => {
  await using server = await RedisServer.start();
  await using setup = open(server);
  const { table } = setup;
  await table.start();
  await table.sessionOpened(BOB);
  await table.domainAdded("echo.example.com", { hidden: false });
  await server.kill();
  await until(() => table.status === "degraded", "the table is degraded");
  await table.sessionOpened(fullJid("alice", "desk")); // ends without Redis, and does not hang
  assert.equal(await table.locate(bareJid("nobody")), undefined);
  assert.equal(await table.locate(bareJid("bob")), HERE);
  assert.deepEqual(await table.hosts(), [HERE]);
  await server.launch();
  await until(() => table.status === "up", "the table is up");
  const redis = client(server);
  await until(
    async () => (await redis.get("alice@example.com/desk")) === HERE,
    "a session opened meanwhile is written",
  );
  assert.equal(await redis.get("bob@example.com"), HERE);
  assert.equal(await redis.get("echo.example.com"), HERE);
  assert.deepEqual(setup.logger.entries.map(({ event }) => event), [
    "redis.up",
    "redis.down",
    "redis.up",
  ]);
  await redis.quit();
});

Deno.test("SessionTable.start() resolves without Redis, and the table recovers when it comes", async () => {
  await using server = await RedisServer.start();
  await server.kill();
  await using setup = open(server);
  await setup.table.start();
  assert.equal(setup.table.status, "degraded");
  await setup.table.sessionOpened(BOB);
  assert.equal(await setup.table.locate(BOB), HERE);
  await server.launch();
  const redis = client(server);
  await until(async () => (await redis.get("bob@example.com")) === HERE, "the login is written");
  await redis.quit();
});

Deno.test("SessionTable.start() refuses a wrong password and a missing one, and takes the right one", async () => {
  await using server = await RedisServer.start("--requirepass", "secret");
  for (const password of ["wrong", ""]) {
    await using setup = open(server, { password });
    await assert.rejects(setup.table.start(), (thrown: { code?: string; message: string }) => {
      assert.equal(thrown.code, "table/redis-auth");
      assert.match(thrown.message, /Cannot log in to Redis at .*: (WRONGPASS|NOAUTH)/);
      assert.ok(!thrown.message.includes("wrong "), thrown.message);
      return true;
    });
  }
  await using setup = open(server, { password: "secret" });
  await setup.table.start();
  await setup.table.sessionOpened(BOB);
  assert.equal(setup.table.status, "up");
  const redis = client(server, "secret");
  assert.equal(await redis.get("bob@example.com"), HERE);
  await redis.quit();
});

Deno.test("SessionTable connects through a Redis that knows no CLIENT, INFO, SELECT, HELLO or MULTI", async () => {
  const unknown = [
    "CLIENT",
    "INFO",
    "SELECT",
    "HELLO",
    "MULTI",
    "KEYS",
    "SCAN",
    "EVAL",
    "SUBSCRIBE",
  ];
  await using server = await RedisServer.start(
    ...unknown.flatMap((command) => ["--rename-command", command, ""]),
  );
  await using setup = open(server, { poolSize: 2 });
  await setup.table.start();
  assert.equal(setup.table.status, "up");
  await setup.table.sessionOpened(BOB);
  setup.table.forget(BOB);
  assert.equal(await setup.table.locate(BOB), HERE);
  assert.equal(setup.metrics.value("causeway_redis_errors_total"), 0);
});

Deno.test("SessionTable is degraded while Redis is full, and writes its own entries when it has room again", async () => {
  await using server = await RedisServer.start("--maxmemory-policy", "noeviction");
  await using setup = open(server);
  const redis = client(server);
  await setup.table.start();
  await redis.config("SET", "maxmemory", "1");
  await setup.table.sessionOpened(BOB);
  assert.equal(setup.table.status, "degraded");
  assert.match(setup.table.snapshot().reason!, /^OOM /);
  assert.equal(await setup.table.locate(bareJid("nobody")), undefined);
  await redis.config("SET", "maxmemory", "0");
  await until(async () => (await redis.get("bob@example.com")) === HERE, "the login is written");
  await until(() => setup.table.status === "up", "the table knows that it can write");
  await redis.quit();
});

Deno.test("SessionTable is degraded while Redis is a read-only replica, and still looks up", async () => {
  await using server = await RedisServer.start();
  await using setup = open(server);
  const redis = client(server);
  await setup.table.start();
  await redis.set("eve@example.com", THERE);
  await redis.replicaof("127.0.0.1", "1"); // no primary there: it keeps its data
  await setup.table.sessionOpened(BOB);
  assert.match(setup.table.snapshot().reason!, /^READONLY /);
  assert.equal(await setup.table.locate(bareJid("eve")), THERE);
  await redis.replicaof("NO", "ONE");
  await until(async () => (await redis.get("bob@example.com")) === HERE, "the login is written");
  await redis.quit();
});

Deno.test("SessionTable disconnects from a silent Redis, and recovers when it answers", async () => {
  await using server = await RedisServer.start();
  await using setup = open(server, { commandTimeoutMs: 200 });
  await setup.table.start();
  const redis = client(server);
  server.signal("SIGSTOP");
  const startMs = performance.now();
  assert.equal(await setup.table.locate(bareJid("eve")), undefined);
  await setup.table.sessionOpened(BOB);
  assert.ok(performance.now() - startMs < 60_000, "the lookup hung");
  await until(() => setup.table.status === "degraded", "the table is degraded");
  server.signal("SIGCONT");
  await until(async () => (await redis.get("bob@example.com")) === HERE, "the login is written");
  await until(() => setup.table.status === "up", "the table knows that it can write");
  await redis.quit();
});

Deno.test("SessionTable ignores, counts and survives garbage in a real Redis", async () => {
  await using server = await RedisServer.start();
  await using setup = open(server);
  const redis = client(server);
  await setup.table.start();
  await redis.lpush("eve@example.com", "a", "list");
  await redis.set("mallory@example.com", "\u0000\r\n$5\r\nhello\r\n".repeat(1_000));
  await redis.set("alice@example.com", Uint8Array.of(0xff, 0xfe, 0x80).buffer as never);
  await redis.set(`causeway:claims:bob@example.com`, "a string");
  await redis.sadd("hosts", "<html>", "x".repeat(5_000));
  await redis.set("dc7.example.com#{nodes}", "a string");
  await redis.sadd("hosts", "dc7.example.com");
  for (const name of ["eve", "mallory"]) {
    assert.equal(await setup.table.locate(bareJid(name)), undefined, name);
  }
  assert.equal(await setup.table.locate(domainJid("hosts")), undefined); // a key of the table's own
  assert.equal(setup.metrics.value("causeway_table_garbage_total"), 2);
  assert.deepEqual(await setup.table.hosts(), [HERE]);
  await setup.table.sessionOpened(BOB);
  await setup.table.sessionOpened(fullJid("eve", "desk"));
  assert.equal(await redis.get("bob@example.com"), HERE);
  assert.equal(await redis.get("eve@example.com"), HERE);
  assert.equal(setup.table.status, "up");
  await redis.quit();
});

Deno.test("SessionTable: two datacenters on one replicated Redis see each other's users, hosts and endpoints", async () => {
  await using server = await RedisServer.start();
  await using one = open(server);
  await using two = open(server, {}, THERE);
  await one.table.start();
  await two.table.start();
  await two.table.publishEndpoints([{ host: "127.0.0.1", port: 4711 }]);
  await two.table.domainAdded("echo.example.com", { hidden: false });
  await two.table.sessionOpened(BOB);
  assert.equal(await one.table.locate(BOB), THERE);
  assert.equal(await one.table.locate(domainJid("echo.example.com")), THERE);
  assert.deepEqual((await one.table.hosts()).toSorted(), [HERE, THERE]);
  assert.deepEqual(await one.table.endpoints(THERE), [{ host: "127.0.0.1", port: 4711 }]);
  assert.deepEqual(await one.table.publicDomains(), [{ domain: "echo.example.com", host: THERE }]);
  assert.notEqual(one.table.datacenterId, two.table.datacenterId);
});

Deno.test("inspectTable() names the nodes that write to a Redis themselves", async () => {
  await using server = await RedisServer.start();
  await using one = open(server);
  await using two = open(server, {}, THERE);
  for (const { table } of [one, two]) {
    await table.start();
    await table.publishEndpoints([{ host: "127.0.0.1", port: 4711 }]);
  }
  await one.table.publishClusterAddress({ host: "127.0.0.1", port: 4712 });
  const writers = async () => {
    const options = { globalHost: "example.com", localHost: HERE, nodeName: NODE };
    const redis = { server: server.socket };
    const { hosts } = await inspectTable(
      { ...options, incarnation: randomIncarnation(), redis },
      new SystemClock(),
    );
    return hosts.map(({ host, nodes, writers }) => [host, nodes.length, writers]);
  };
  assert.deepEqual(await writers(), [[HERE, 1, [NODE]], [THERE, 1, []]]);
  await two.table.publishClusterAddress({ host: "127.0.0.1", port: 4713 });
  assert.deepEqual(await writers(), [[HERE, 1, [NODE]], [THERE, 1, [`node1@${THERE}`]]]);
});

Deno.test("SessionTable fails cleanly on a server that does not speak Redis", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(64)).catch(() => null); // an ended connection is fine
      await connection.write(new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"))
        .catch(() => {}); // an ended connection is fine
      connection.close();
    }
  })();
  const metrics = new TestMetrics();
  const table = new SessionTable({
    globalHost: "example.com",
    localHost: HERE,
    nodeName: NODE,
    incarnation: 1,
    replication: "external",
    redis: { port: listener.addr.port, reconnectMaxMs: 50, commandTimeoutMs: 500 },
  }, { metrics });
  await table.start();
  assert.equal(table.status, "degraded");
  assert.equal(await table.locate(BOB), undefined);
  await table.close();
  listener.close();
  await serving;
});
