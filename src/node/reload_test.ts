import assert from "node:assert/strict";
import { CausewayError, ManualClock } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { parseConfig } from "../config/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../observe/mod.ts";
import { Certificates } from "./certificates.ts";
import { Reload } from "./reload.ts";

const SOUND = `hosts = ["example.com", "dc1.example.com"]
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
connections.tls_opts = false
redis.replication = "external"
[limits]
`;

function parse(limits: string): Config {
  return parseConfig(SOUND + limits, {
    file: "c.toml",
    env: () => undefined,
    readFile: (path) => path,
    hostname: () => "box",
  });
}

/** A reload whose databases can be reached when the test lets them. */
function fixture() {
  const clock = new ManualClock();
  const log = new MemoryLogger();
  const metrics = new MetricsRegistry(clock);
  const certificates = new Certificates({ metrics, log, clock });
  const steps: string[] = [];
  const waiting: ((failure?: Error) => void)[] = [];
  let text = "";
  let isRunning = true;
  const reload = new Reload(parse(""), {
    isRunning: () => isRunning,
    read: () => {
      steps.push("read");
      return parse(text);
    },
    certificates,
    stores: {
      prepare: async () => {
        const failure = await new Promise<Error | undefined>((resolve) => waiting.push(resolve));
        if (failure !== undefined) throw failure;
        return {
          pools: ["rdbms.default"],
          use: () => steps.push("use"),
          discard: () => {
            steps.push("discard");
            return Promise.resolve();
          },
        };
      },
    },
    change: (config) => steps.push(`depth ${config.streams.maxDepth}`),
    renewLinks: () => Promise.resolve(),
    metrics,
    log,
    clock,
  });
  const metric = async (name: string) =>
    new RegExp(`^causeway_config_${name} (.*)$`, "m").exec(await metrics.prometheus())?.[1];
  return {
    reload,
    steps,
    log,
    clock,
    metric,
    stop: () => void (isRunning = false),
    write: (limits: string) => void (text = limits),
    /** Lets the databases of the oldest reload answer. */
    answer: async (failure?: Error) => {
      while (waiting.length === 0) await Promise.resolve();
      waiting.shift()!(failure);
    },
    [Symbol.dispose]: () => {
      certificates.close();
      metrics.close();
    },
  };
}

Deno.test("Reload.run() changes nothing before everything can be used, and reports what it has changed", async () => {
  using test = fixture();
  test.write("max_depth = 99\nkept_requests = 7");
  test.clock.advance(5000);
  const running = test.reload.run();
  assert.deepEqual(test.steps, ["read"]);
  await test.answer();
  assert.deepEqual(await running, {
    changes: [
      { path: "limits.max_depth", effect: "new" },
      { path: "limits.kept_requests", effect: "restart" },
    ],
    certificates: [],
    pools: ["rdbms.default"],
  });
  assert.deepEqual(test.steps, ["read", "use", "depth 99"]);
  assert.deepEqual(test.log.named("config.reloaded")[0]?.fields, {
    changed: ["limits.max_depth"],
    restart: ["limits.kept_requests"],
    certificates: [],
    pools: ["rdbms.default"],
  });
  assert.equal(await test.metric("last_reload_successful"), "1");
  assert.equal(
    await test.metric("last_reload_success_timestamp_seconds"),
    String(test.clock.wallMs() / 1000),
  );
  assert.equal(await test.metric("restart_needed"), "1");
});

Deno.test("Reload.run() refuses a file with a mistake, and a database that cannot be reached", async () => {
  using test = fixture();
  const before = test.reload.config;
  test.write("max_depht = 99");
  await assert.rejects(test.reload.run(), {
    code: "config/invalid",
    message: /did you mean max_depth/,
  });
  test.write("max_depth = 99");
  const failing = test.reload.run();
  await test.answer(new CausewayError("storage/unreachable", "Cannot connect to rdbms.default"));
  await assert.rejects(failing, { code: "storage/unreachable" });
  assert.equal(test.reload.config, before);
  assert.deepEqual(test.steps, ["read", "read"]);
  assert.equal(test.log.named("config.reload-refused").length, 2);
  assert.equal(await test.metric("last_reload_successful"), "0");

  const bug = test.reload.run();
  await test.answer(new TypeError("not an error of ours"));
  await assert.rejects(bug, { code: "node/reload-failed" });
  const mended = test.reload.run();
  await test.answer();
  await mended;
  assert.equal(await test.metric("last_reload_successful"), "1");
});

Deno.test("Reload.run() runs one reload after the other, and one serves all who ask meanwhile", async () => {
  using test = fixture();
  test.write("max_depth = 90");
  const first = test.reload.run();
  const second = test.reload.run();
  test.write("max_depth = 91");
  const third = test.reload.run();
  assert.equal(second, third);
  assert.deepEqual(test.steps, ["read"]);
  await test.answer(new CausewayError("storage/unreachable", "the first one fails"));
  await assert.rejects(first);
  await test.answer();
  assert.deepEqual((await second).changes.map(({ path }) => path), ["limits.max_depth"]);
  assert.deepEqual(test.steps, ["read", "read", "use", "depth 91"]);
  const last = test.reload.run();
  await test.answer();
  assert.deepEqual((await last).changes, []);
});

Deno.test("Reload.run() uses nothing once the node stops, and closes what it has prepared", async () => {
  using test = fixture();
  test.write("max_depth = 99");
  const running = test.reload.run();
  test.stop();
  await test.answer();
  await assert.rejects(running, { code: "node/stopping" });
  assert.deepEqual(test.steps, ["read", "discard"]);
});
