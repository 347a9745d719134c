import assert from "node:assert/strict";
import { Run } from "../process/mod.ts";
import { LocalRedis } from "./local_redis.ts";
import { RedisClient } from "./redis_client.ts";

Deno.test("LocalRedis.start() tries another port when the first one is taken", async () => {
  await using run = await Run.start();
  await using first = new LocalRedis({ run, name: "first" });
  await first.start();
  await using second = new LocalRedis({ run, name: "second", port: first.address.port });
  await second.start();
  assert.notEqual(second.address.port, first.address.port);
  await using client = new RedisClient(second.address);
  assert.equal(await client.call("PING"), "PONG");
});

Deno.test("LocalRedis.start() fails with what the server said when an option is wrong", async () => {
  await using run = await Run.start();
  await using server = new LocalRedis({ run, name: "redis", args: ["--no-such-option", "1"] });
  await assert.rejects(server.start(), /no-such-option/);
});
