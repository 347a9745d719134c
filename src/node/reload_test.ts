import assert from "node:assert/strict";
import { join } from "node:path";
import { CertificateAuthority, writeCertificate } from "../../harness/certificates.ts";
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

function parse(limits: string, sound = SOUND): Config {
  return parseConfig(sound + limits, {
    file: "c.toml",
    env: () => undefined,
    readFile: (path) => path,
    hostname: () => "box",
  });
}

/** A reload whose databases can be reached when the test lets them. */
function fixture({
  change,
  renewed,
  renewLinks = () => Promise.resolve(),
  sound,
  clock = new ManualClock(),
}: {
  readonly change?: (config: Config) => void;
  /** Key paths of certificates that each reload finds changed. @default those of real files: none */
  readonly renewed?: readonly string[];
  readonly renewLinks?: () => Promise<void>;
  /** @default SOUND */
  readonly sound?: string;
  readonly clock?: ManualClock;
} = {}) {
  const log = new MemoryLogger();
  const metrics = new MetricsRegistry(clock);
  const certificates = new Certificates({ metrics, log, clock });
  const steps: string[] = [];
  const waiting: ((failure?: Error) => void)[] = [];
  let asked = () => {};
  let text = "";
  let isRunning = true;
  const reload = new Reload(parse("", sound), {
    isRunning: () => isRunning,
    read: () => {
      steps.push("read");
      return parse(text, sound);
    },
    certificates: renewed === undefined ? certificates : {
      prepare: () => Promise.resolve({ count: renewed.length, use: () => renewed }),
    },
    stores: {
      prepare: async () => {
        const failure = await new Promise<Error | undefined>((resolve) => {
          waiting.push(resolve);
          asked();
        });
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
    change: (config) => {
      steps.push(`depth ${config.streams.maxDepth}`);
      change?.(config);
    },
    renewLinks,
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
      // One that has failed by then never asks: the test fails, as nothing is left to wait for.
      if (waiting.length === 0) await new Promise<void>((resolve) => asked = resolve);
      waiting.shift()!(failure);
    },
    [Symbol.dispose]: () => {
      certificates.close();
      metrics.close();
    },
  };
}

Deno.test("Reload.run() refuses a certificate for links that does not name the local host, as a start does", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const authority = await CertificateAuthority.create();
    const issue = async (host: string) =>
      await writeCertificate(await authority.issue({ names: [host] }), { directory, name: "dc1" });
    const { certfile, keyfile } = await issue("dc1.example.com");
    const cafile = join(directory, "ca.pem");
    await Deno.writeTextFile(cafile, authority.certificatePem);
    const files = JSON.stringify({ certfile, keyfile, cafile }).replaceAll('":', '"=');
    using test = fixture({
      sound: SOUND.replace("tls_opts = false", `tls_opts = ${files}`),
      clock: new ManualClock(Date.now()), // certificates are issued now
    });
    const sound = test.reload.run();
    await test.answer();
    await sound;
    await issue("dc11.example.com");
    await assert.rejects(test.reload.run(), {
      code: "node/certificate-unusable",
      message: "Cannot reload: modules.mod_global_distrib.connections.tls_opts: expected a " +
        "certificate that names dc1.example.com, found dc11.example.com",
    });
    assert.equal(test.steps.filter((step) => step === "use").length, 1);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

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

Deno.test("Reload.run() tells a reload that took effect in part from one that was refused", async () => {
  let isBroken = true;
  using test = fixture({
    change: () => {
      if (isBroken) throw new TypeError("a bug");
    },
  });
  test.write("max_depth = 99");
  const partly = test.reload.run();
  await test.answer();
  await assert.rejects(partly, { code: "node/reload-incomplete", message: /only in part: a bug/ });
  assert.equal(test.log.named("config.reload-incomplete").length, 1);
  assert.equal(test.log.named("config.reload-refused").length, 0);
  assert.equal(await test.metric("last_reload_successful"), "0");
  assert.equal(test.reload.config.streams.maxDepth, 99);

  isBroken = false;
  const again = test.reload.run();
  await test.answer();
  await again;
  assert.deepEqual(test.steps, ["read", "use", "depth 99", "read", "use", "depth 99"]);
  assert.equal(await test.metric("last_reload_successful"), "1");
});

Deno.test("Reload.run() waits for no links, and renews them once more for a later certificate", async () => {
  const renewals: PromiseWithResolvers<void>[] = [];
  using test = fixture({
    renewed: ["modules.mod_global_distrib.connections.tls_opts"],
    renewLinks: () => {
      const renewal = Promise.withResolvers<void>();
      renewals.push(renewal);
      return renewal.promise;
    },
  });
  for (const _ of [1, 2, 3]) {
    const running = test.reload.run();
    await test.answer();
    assert.equal((await running).certificates.length, 1);
  }
  assert.equal(renewals.length, 1, "two of them wait for the first");
  renewals[0]!.reject(new TypeError("a bug"));
  while (renewals.length < 2) await Promise.resolve();
  assert.equal(test.log.named("links.not-renewed")[0]?.fields["error"], "a bug");
  renewals[1]!.resolve();
  for (let turn = 0; turn < 9; turn++) await Promise.resolve();
  assert.equal(renewals.length, 2);

  const last = test.reload.run();
  await test.answer();
  await last;
  assert.equal(renewals.length, 3);
  renewals[2]!.resolve();
});
