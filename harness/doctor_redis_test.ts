import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { stringify } from "smol-toml";
import { RedisServer } from "../src/distribution/table/redis/testing/redis_server.ts";
import { TestCertificates } from "../src/net/testing/certificates.ts";
import { doctor, naming, reportOf, Servers } from "./testing/doctor_report.ts";
import { LinkProxy } from "./faults/mod.ts";
import { PROJECT_DIRECTORY, Run, runProgram, skewedCommand } from "./process/mod.ts";

/** Writes a configuration of dc1 that is right but for `distribution`, and returns its file. */
async function configurationIn(
  run: Run,
  name: string,
  distribution: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Promise<string> {
  const file = run.path(`${name}.toml`);
  const local_host = "dc1.example.com";
  await Deno.writeTextFile(
    file,
    stringify({
      hosts: ["example.com", local_host],
      node_name: "node1@dc1.example.com",
      storage: { internal: { path: run.path(`${name}.sqlite`) } },
      modules: {
        mod_global_distrib: {
          global_host: "example.com",
          local_host,
          connections: { tls_opts: false },
          ...distribution,
        },
      },
      ...more,
    }),
  );
  return file;
}

Deno.test("causeway doctor names a Redis and a node that are away, a slow endpoint, and a name that two nodes have", async () => {
  await using run = await Run.start();
  await using servers = new Servers();
  await using certificates = await TestCertificates.create();
  const mesh = await certificates.authority("mesh");
  const own = await mesh.issue({ names: ["dc1.example.com"] });
  await using proxy = new LinkProxy("dc1→dc2");
  await proxy.start();
  // The verdict on our certificate is not waited for: it would take thrice as long.
  const port = await servers.secure(
    await mesh.issue({ names: ["dc2.example.com"] }),
    mesh,
    () => proxy.cut(),
  );
  proxy.setTarget({ host: "127.0.0.1", port });
  proxy.delay(2_000, "backward");
  const distribution = {
    redis: { server: run.path("none.sock") },
    connections: { tls_opts: { ...own } },
  };
  const file = await configurationIn(run, "dc1", distribution, {
    global_distrib_addr: { "dc2.example.com": [proxy.address] },
  });
  const twin = await configurationIn(
    run,
    "dc3",
    { ...distribution, local_host: "dc3.example.com" },
    {
      hosts: ["example.com", "dc3.example.com"],
    },
  );
  const admin = `http://127.0.0.1:${await servers.nobody()}`;

  const { code, findings } = await doctor([
    ...["--config", file, "--no-own-node", "--other", twin, "--admin", admin, "--timeout", "20"],
  ]);
  const named = naming(findings);
  named("redis/unreachable", /none\.sock$/, /ENOENT|no such file/i);
  named("node/unreachable", new RegExp(`^${admin}$`), /ECONNREFUSED|refused/i);
  named("endpoint/slow", /^dc2\.example\.com 127\.0\.0\.1:\d+$/, /^connecting took \d+\.\d s$/);
  named("config/same-name", /^node1@dc1\.example\.com .*dc3\.toml/, /same node_name at another/);
  named("config/note", /^storage/, /built-in store/);
  assert.equal(code, 1);
});

Deno.test("causeway doctor names a Redis that is far, alone, shared, a replica, of another time, and silent", async () => {
  await using run = await Run.start();
  await using server = await RedisServer.start();
  await using servers = new Servers();
  await using proxy = new LinkProxy("dc1→Redis");
  await proxy.start();
  proxy.setTarget({ host: "127.0.0.1", port: await servers.relay(server.socket) });
  const { host, port } = proxy.address;
  const file = await configurationIn(run, "dc1", { redis: { server: host, port } });
  const args = ["--config", file, "--no-own-node", "--timeout", "20"];
  const about = new RegExp(`^Redis ${host}:${port}$`);

  proxy.delay(30, "backward");
  const far = await doctor(args);
  {
    const named = naming(far.findings);
    named("redis/slow", about, /^an answer took \d{2,} ms$/);
    named(
      "mesh/alone",
      /^dc1\.example\.com$/,
      /no other datacenter, and the configuration names none/,
    );
  }
  assert.equal(far.code, 0, "these are warnings");

  proxy.heal();
  const redis = new Redis({ path: server.socket });
  try {
    // As a node of dc2 leaves them.
    await redis.sadd("hosts", "dc2.example.com");
    await redis.hset("causeway:cluster:dc2.example.com", "node1@dc2.example.com", "127.0.0.1#1");
    await redis.replicaof("127.0.0.1", 1);
    const { program, args: words } = skewedCommand(90_000, ["doctor", ...args, "--json"]);
    const ran = await runProgram(program, words, { cwd: PROJECT_DIRECTORY });
    assert.ok(ran !== undefined);
    const replica = reportOf(ran.code, ran.output);
    const named = naming(replica.findings);
    named("redis/shared", about, /^nodes of dc2\.example\.com write to it, too: node1@dc2/);
    named("redis/replica", about, /^it is a replica of 127\.0\.0\.1:1$/);
    named("clock/redis", about, /^its clock is (89|9\d)\.\d s behind this machine's$/);
    assert.equal(replica.code, 1);

    await redis.call("ACL", "SETUSER", "default", "-config", "-info");
  } finally {
    redis.disconnect();
  }
  {
    const { findings } = await doctor(args);
    const named = naming(findings);
    named("redis/silent", about, /does not answer INFO/);
  }
});
