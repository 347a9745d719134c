import assert from "node:assert/strict";
import { parse } from "smol-toml";
import { until } from "../until.ts";
import { NodeProcess, READY_WITHIN_MS } from "./node_process.ts";
import { Run } from "./run.ts";

const READY = `console.log('ready {"node":"n1@dc1","c2s":["127.0.0.1:4001"]}');`;

/** A node whose program is `code`; it gets the configuration's path as its only argument. */
function fakeNode(run: Run, code: string, readyWithinMs = READY_WITHIN_MS) {
  return new NodeProcess<Record<string, unknown>>({
    name: "dc1-node1",
    run,
    configuration: { hosts: ["example.com"], modules: { m: { port: 5 } } },
    readyWithinMs,
    command: (configFile) => ({
      program: Deno.execPath(),
      args: ["eval", "--no-config", code, configFile],
    }),
  });
}

Deno.test("NodeProcess.start() writes the configuration and returns the ready line", async () => {
  await using run = await Run.start();
  await using node = fakeNode(
    run,
    `console.log("config " + Deno.readTextFileSync(Deno.args[0]).replaceAll("\\n", ";"));` +
      `console.error("log line"); ${READY} setInterval(() => {}, 1000);`,
  );
  assert.equal(node.state, "stopped");
  const ready = await node.start();
  assert.equal(ready.node, "n1@dc1");
  assert.deepEqual(node.ready.c2s, [{ host: "127.0.0.1", port: 4001 }]);
  assert.equal(node.state, "running");
  const written = parse(await Deno.readTextFile(node.configFile));
  assert.deepEqual(structuredClone(written), node.configuration); // the clone has plain prototypes
  await until(() => node.logs.includes("log line"), { what: "stderr is in the log" });
  await assert.rejects(node.start(), /it is running/);
});

Deno.test("NodeProcess starts again after stop(), kill() and a pause", async () => {
  await using run = await Run.start();
  await using node = fakeNode(run, `${READY} setInterval(() => {}, 1000);`);
  await node.start();
  assert.equal((await node.stop()).signal, "SIGTERM");
  assert.throws(() => node.ready, /not running/);
  node.configuration["node_name"] = "other";
  await node.start();
  assert.match(await Deno.readTextFile(node.configFile), /node_name = "other"/);
  node.pause();
  assert.equal(node.state, "paused");
  node.resume();
  assert.equal(node.state, "running");
  assert.equal((await node.kill()).signal, "SIGKILL");
  assert.equal(node.state, "stopped");
  await node.restart();
  await node.restart();
  assert.equal(node.state, "running");
});

Deno.test("NodeProcess.start() fails with the end of the log when the process ends", async () => {
  await using run = await Run.start();
  await using node = fakeNode(run, `console.error("port 5222 is taken"); Deno.exit(2);`);
  await assert.rejects(node.start(), (error: Error) => {
    assert.match(error.message, /Cannot start dc1-node1\n--- dc1-node1 \(exit code 2\) ---\nport/);
    assert.match(String(error.cause), /exit code 2/);
    return true;
  });
  assert.equal(node.state, "stopped");
});

Deno.test("NodeProcess.start() gives up on a process that is never ready", async () => {
  await using run = await Run.start();
  await using node = fakeNode(run, `setInterval(() => {}, 1000);`, 1);
  await assert.rejects(node.start(), /Cannot start/);
  assert.equal(node.state, "stopped");
});

Deno.test("NodeProcess.start() takes a ready line on stderr for a log line", async () => {
  await using run = await Run.start();
  await using node = fakeNode(run, READY.replace("console.log", "console.error"));
  await assert.rejects(node.start(), /Cannot start/);
});

Deno.test("NodeProcess.start() refuses a malformed ready line", async () => {
  await using run = await Run.start();
  await using node = fakeNode(run, `console.log("ready {}"); setInterval(() => {}, 1000);`);
  await assert.rejects(node.start(), (error: Error) => /names no node/.test(String(error.cause)));
});
