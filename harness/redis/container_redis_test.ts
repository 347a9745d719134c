import assert from "node:assert/strict";
import { containerCommands, parsePublishedPort } from "./container_redis.ts";

Deno.test("containerCommands() publishes on loopback only, and removes its container", () => {
  const commands = containerCommands("causeway-1", { image: "redis:7", password: "" });
  assert.deepEqual(commands.run(undefined), [
    ...["run", "--detach", "--rm", "--name", "causeway-1", "--publish", "127.0.0.1::6379"],
    ...["redis:7", "redis-server", "--save", "", "--appendonly", "no"],
  ]);
  assert.ok(commands.run(40_123).includes("127.0.0.1:40123:6379"));
  assert.deepEqual(commands.port, ["port", "causeway-1", "6379/tcp"]);
  assert.deepEqual(commands.pause, ["pause", "causeway-1"]);
  assert.deepEqual(commands.unpause, ["unpause", "causeway-1"]);
  assert.deepEqual(commands.remove, ["rm", "--force", "causeway-1"]);
});

Deno.test("containerCommands() passes the password on", () => {
  const commands = containerCommands("c", { image: "redis:7", password: "s3cret" });
  assert.deepEqual(commands.run(undefined).slice(-2), ["--requirepass", "s3cret"]);
});

Deno.test("parsePublishedPort() reads what docker and podman print", () => {
  assert.equal(parsePublishedPort("127.0.0.1:49153\n"), 49_153);
  assert.equal(parsePublishedPort("[::]:49154\n0.0.0.0:49153\n"), 49_153);
  assert.throws(() => parsePublishedPort("Error: no such container"), TypeError);
});
