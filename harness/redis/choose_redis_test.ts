import assert from "node:assert/strict";
import { Run } from "../process/mod.ts";
import { RedisClient } from "./redis_client.ts";
import { redisMakers, startRedises } from "./choose_redis.ts";

Deno.test("redisMakers() always ends with the embedded one under auto", async () => {
  const makers = await redisMakers("auto");
  assert.equal(makers.at(-1)!.kind, "embedded");
  assert.ok(makers.some((maker) => maker.kind === "local"), "redis-server is installed for tests");
});

Deno.test("startRedises() starts one separate server per name", async () => {
  await using run = await Run.start();
  for (const choice of ["local", "embedded"] as const) {
    const servers = await startRedises(choice, ["dc1", "dc2"], { run });
    try {
      const [one, two] = servers.map((server) => new RedisClient(server.address));
      await using first = one!;
      await using second = two!;
      await first.call("SET", "k", choice);
      assert.equal(await second.call("GET", "k"), null);
      assert.deepEqual(servers.map((server) => server.kind), [choice, choice]);
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
});
