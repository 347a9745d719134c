import assert from "node:assert/strict";
import { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { EmbeddedRedis } from "./embedded_redis.ts";
import { LocalRedis } from "./local_redis.ts";
import { RedisClient } from "./redis_client.ts";
import type { RedisServer } from "./redis_server.ts";
import { RespError, type RespValue } from "./resp.ts";

/** A command and what it has to answer: a value, `error CODE`, or a list whose order is free. */
type Step = readonly [command: string, expected: RespValue | Set<string> | RegExp];

const CONVERSATIONS: Record<string, readonly Step[]> = {
  "strings": [
    ["GET a", null],
    ["SET a 1", "OK"],
    ["GET a", "1"],
    ["SET a 2 NX", null],
    ["SET b 2 NX EX 100", "OK"],
    ["TTL b", /^(99|100)$/],
    ["PTTL b", /^(99\d\d\d|100000)$/],
    ["SET a 3 XX GET", "1"],
    ["SET c 3 XX", null],
    ["GET c", null],
    ["SET b 4", "OK"],
    ["TTL b", -1],
    ["TTL c", -2],
    ["SET b 5 PX 100000", "OK"],
    ["SET b 6 KEEPTTL", "OK"],
    ["TTL b", 100],
    ["SET b 7 EXAT 4102444800", "OK"],
    ["TTL b", /^\d{7,}$/],
    ["SETNX a 9", 0],
    ["SETNX d 9", 1],
    ["SETEX d 50 10", "OK"],
    ["TTL d", 50],
    ["PSETEX d 50000 11", "OK"],
    ["TTL d", 50],
    ["GETSET d 12", "11"],
    ["TTL d", -1],
    ["GETDEL d", "12"],
    ["GETDEL d", null],
    ["MGET a d b", ["3", null, "7"]],
    ["INCR a", 4],
    ["INCRBY a 6", 10],
    ["DECR a", 9],
    ["SET e x", "OK"],
    ["INCR e", /^error ERR$/],
    ["TYPE a", "string"],
    ["EXISTS a b zz", 2],
    ["DEL a b zz", 2],
    ["UNLINK e e", 1],
    ["EXISTS a b", 0],
  ],
  "expiry": [
    ["SET a 1", "OK"],
    ["EXPIRE a 100", 1],
    ["EXPIRE a 200 NX", 0],
    ["EXPIRE a 200 GT", 1],
    ["EXPIRE a 100 GT", 0],
    ["EXPIRE a 100 LT", 1],
    ["TTL a", 100],
    ["PERSIST a", 1],
    ["PERSIST a", 0],
    ["EXPIRE a 100 XX", 0],
    ["EXPIRE a 100 GT", 0],
    ["EXPIRE a 100 LT", 1],
    ["PEXPIRE a 50000", 1],
    ["TTL a", 50],
    ["EXPIREAT a 4102444800", 1],
    ["PEXPIREAT a 4102444800000", 1],
    ["TTL a", /^\d{7,}$/],
    ["EXPIRE zz 100", 0],
    ["EXPIRE a 0", 1],
    ["GET a", null],
    ["SADD s x", 1],
    ["EXPIRE s 100", 1],
    ["SADD s y", 1],
    ["TTL s", 100],
  ],
  "sets": [
    ["SADD s#{t} a b c", 3],
    ["SADD s#{t} c d", 1],
    ["SADD u#{t} d e", 2],
    ["SCARD s#{t}", 4],
    ["SISMEMBER s#{t} a", 1],
    ["SISMEMBER s#{t} z", 0],
    ["SMEMBERS s#{t}", new Set(["a", "b", "c", "d"])],
    ["SUNION s#{t} u#{t} w#{t}", new Set(["a", "b", "c", "d", "e"])],
    ["SUNION w#{t}", []],
    ["SREM s#{t} a z", 1],
    ["SREM s#{t} b c d", 3],
    ["EXISTS s#{t}", 0],
    ["SMEMBERS s#{t}", []],
    ["TYPE u#{t}", "set"],
    ["GET u#{t}", /^error WRONGTYPE$/],
    ["SUNION", /^error ERR$/],
  ],
  "hashes": [
    ["HSET h a 1 b 2", 2],
    ["HSET h b 3 c 4", 1],
    ["HGET h b", "3"],
    ["HGET h z", null],
    ["HMGET h a z", ["1", null]],
    ["HGETALL h", ["a", "1", "b", "3", "c", "4"]],
    ["HGETALL zz", []],
    ["HSETNX h a 9", 0],
    ["HSETNX h d 9", 1],
    ["HEXISTS h d", 1],
    ["HLEN h", 4],
    ["HKEYS h", new Set(["a", "b", "c", "d"])],
    ["HVALS h", new Set(["1", "3", "4", "9"])],
    ["HMSET h e 5", "OK"],
    ["HSET h odd", /^error ERR$/],
    ["HDEL h a b z", 2],
    ["HDEL h c d e", 3],
    ["EXISTS h", 0],
    ["SADD h x", 1],
    ["HGET h x", /^error WRONGTYPE$/],
    ["HSET h x 1", /^error WRONGTYPE$/],
  ],
  "keys and the connection": [
    ["PING", "PONG"],
    ["PING hello", "hello"],
    ["ECHO hello", "hello"],
    ["SELECT 0", "OK"],
    ["SELECT x", /^error ERR$/],
    ["CLIENT SETNAME me", "OK"],
    ["CLIENT NONSENSE", /^error ERR$/],
    ["SET node:1 a", "OK"],
    ["SET node:2 b", "OK"],
    ["SET other c EX 10", "OK"],
    ["KEYS node:*", new Set(["node:1", "node:2"])],
    ["KEYS node:[1]", ["node:1"]],
    ["KEYS node:[^1]", ["node:2"]],
    ["KEYS ot?er", ["other"]],
    ["DBSIZE", 3],
    ["NOSUCH thing", /^error ERR$/],
    ["GET", /^error ERR$/],
    ["GET a b", /^error ERR$/],
    ["SET a", /^error ERR$/],
    ["SET a 1 EX", /^error ERR$/],
    ["SET a 1 EX 0", /^error ERR$/],
    ["SET a 1 EX ten", /^error ERR$/],
    ["SET a 1 NX XX", /^error ERR$/],
    ["SET a 1 EX 10 PX 10", /^error ERR$/],
    ["SETEX a 0 v", /^error ERR$/],
    ["EXPIRE other soon", /^error ERR$/],
    ["EXPIRE other 10 MAYBE", /^error ERR$/],
    ["AUTH secret", /^error (ERR|WRONGPASS)$/],
    ["INFO", /loading:0/],
    ["FLUSHALL", "OK"],
    ["DBSIZE", 0],
    ["FLUSHDB", "OK"],
  ],
};

function check(command: string, actual: RespValue, expected: Step[1]): void {
  if (expected instanceof RegExp) return assert.match(String(actual), expected, command);
  if (expected instanceof Set) {
    // A set's members come in any order.
    assert.deepEqual(new Set(actual as readonly string[]), expected, command);
    return assert.equal((actual as readonly string[]).length, expected.size, command);
  }
  assert.deepEqual(actual, expected, command);
}

async function answer(client: RedisClient, command: string): Promise<RespValue> {
  try {
    return await client.call(...command.split(" "));
  } catch (thrown) {
    if (thrown instanceof RespError) return `error ${thrown.code}`;
    throw thrown;
  }
}

const SERVERS: Record<string, (run: Run, password?: string) => RedisServer> = {
  "redis-server": (run, password = "") => new LocalRedis({ run, name: "redis", password }),
  "EmbeddedRedis": (_run, password = "") => new EmbeddedRedis({ password }),
};

for (const [name, make] of Object.entries(SERVERS)) {
  Deno.test(`${name} answers like every Redis`, async (test) => {
    await using run = await Run.start();
    await using server = make(run);
    await server.start();
    for (const [topic, steps] of Object.entries(CONVERSATIONS)) {
      await test.step(topic, async () => {
        await using client = new RedisClient(server.address);
        await client.call("FLUSHALL");
        for (const [command, expected] of steps) {
          check(command, await answer(client, command), expected);
        }
      });
    }
  });

  Deno.test(`${name} keeps bytes as they are, and the order of pipelined commands`, async () => {
    await using run = await Run.start();
    await using server = make(run);
    await server.start();
    await using client = new RedisClient(server.address);
    const odd = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).join("");
    await client.callBinary(["SET", odd, odd]);
    assert.equal(await client.callBinary(["GET", odd]), odd);
    await client.call("SET", "jid", "zoë@example.com/räum 1");
    assert.equal(await client.call("GET", "jid"), "zoë@example.com/räum 1");
    const counts = await Promise.all(Array.from({ length: 500 }, () => client.call("INCR", "n")));
    assert.deepEqual(counts, Array.from({ length: 500 }, (_, i) => i + 1));
  });

  Deno.test(`${name} drops expired keys`, async () => {
    await using run = await Run.start();
    await using server = make(run);
    await server.start();
    await using client = new RedisClient(server.address);
    await client.call("SET", "k", "v", "PX", 30);
    await until(async () => await client.call("GET", "k") === null, { what: "k has expired" });
    assert.equal(await client.call("SET", "k", "v", "NX"), "OK");
    assert.deepEqual(await client.call("KEYS", "*"), ["k"]);
  });

  Deno.test(`${name} accepts only clients with its password`, async () => {
    await using run = await Run.start();
    await using server = make(run, "s3cret");
    await server.start();
    await using client = new RedisClient(server.address);
    assert.equal(await client.call("PING"), "PONG");
    assert.match(String(await answer(client, "HELLO 2")), /redis/);
    await using stranger = new RedisClient({ ...server.address, password: "" });
    assert.equal(await answer(stranger, "GET k"), "error NOAUTH");
    assert.equal(await answer(stranger, "HELLO 2"), "error NOAUTH");
    assert.equal(await answer(stranger, "AUTH wrong"), "error WRONGPASS");
    assert.equal(await answer(stranger, "AUTH nobody s3cret"), "error WRONGPASS");
    assert.equal(await answer(stranger, "AUTH default s3cret"), "OK");
    assert.equal(await answer(stranger, "GET k"), null);
    await using wrong = new RedisClient({ ...server.address, password: "wrong" });
    await assert.rejects(wrong.call("PING"), /Lost the connection/);
  });

  Deno.test(`${name} stops, forgets, and comes back at the same port`, async () => {
    await using run = await Run.start();
    await using server = make(run);
    await server.start();
    const { port } = server.address;
    await using client = new RedisClient(server.address);
    await client.call("SET", "k", "v");
    await server.stop();
    assert.equal(server.isRunning, false);
    await assert.rejects(client.call("GET", "k"), /Lost the connection/);
    await server.start();
    assert.equal(server.address.port, port);
    assert.equal(await client.call("GET", "k"), null);
  });

  Deno.test(`${name} answers nothing while paused`, async () => {
    await using run = await Run.start();
    await using server = make(run);
    await server.start();
    await using client = new RedisClient(server.address);
    await client.call("PING");
    await server.pause();
    let hasAnswered = false;
    const late = client.call("ECHO", "late").then((value) => {
      hasAnswered = true;
      return value;
    });
    // Another Redis answering in the meantime shows that there was time to.
    await using other = new EmbeddedRedis();
    await other.start();
    await using witness = new RedisClient(other.address);
    for (let i = 0; i < 20; i++) await witness.call("PING");
    assert.equal(hasAnswered, false);
    await server.resume();
    assert.equal(await late, "late");
  });
}
