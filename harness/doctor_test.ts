import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { Redis } from "ioredis";
import { stringify } from "smol-toml";
import { RedisServer } from "../src/distribution/table/redis/testing/redis_server.ts";
import { CHECKS } from "../src/doctor/mod.ts";
import { TestCertificates } from "../src/net/testing/certificates.ts";
import { InternalStore } from "../src/storage/mod.ts";
import { doctor, naming, Servers } from "./testing/doctor_report.ts";
import type { ClusterOptions } from "./cluster/mod.ts";
import { withCluster } from "./cluster/mod.ts";
import { NodeProcess, Run } from "./process/mod.ts";
import { LAST_RELEASE, releaseCommand, unpackRelease } from "./process/releases.ts";
import { causewayCommand, skewedCommand } from "./process/serve_command.ts";
import { untilAllLinked } from "./scenarios/_linked.ts";
import { Stage } from "./scenarios/_stage.ts";

const DISTRIBUTION = {
  global_host: "example.com",
  local_host: "dc1.example.com",
};

Deno.test("causeway doctor names each of the planted faults, and what to do", async () => {
  await using run = await Run.start();
  await using redis = await RedisServer.start("--appendonly", "yes");
  await using certificates = await TestCertificates.create();
  const mesh = await certificates.authority("mesh");
  const strange = await certificates.authority("strange");
  await using servers = new Servers();
  await plantMesh(redis, {
    "dc2.example.com": await servers.secure(
      await mesh.issue({ names: ["dc2.example.com"], days: -1 }),
    ),
    "dc3.example.com": await servers.secure(
      await strange.issue({ names: ["dc3.example.com"] }),
      mesh,
    ),
    "dc4.example.com": await servers.secure(await mesh.issue({ names: ["dc9.example.com"] })),
    "dc5.example.com": await servers.nobody(),
    "dc6.example.com": await servers.plain(),
    "dc7.example.com": await servers.secure(
      await mesh.issue({ names: ["dc7.example.com"] }),
      strange,
    ),
    "dc8.example.com": "dead",
    "dc9.example.com": "no endpoint",
    "dc10.example.com": await servers.secure(
      await mesh.issue({ names: ["dc10.example.com"], days: 90 }),
    ),
  });

  // A real node of another datacenter, without its Redis, and with a clock that is wrong.
  await using node = new NodeProcess({
    name: "dc2-node1",
    run,
    command: (configFile) => skewedCommand(90_000, ["serve", "--config", configFile]),
    configuration: {
      hosts: ["example.com", "dc2.example.com"],
      node_name: "node1@dc2.example.com",
      listen: { admin: { port: 0 } },
      storage: { internal: { path: run.path("dc2.sqlite") } },
      modules: {
        mod_global_distrib: {
          ...DISTRIBUTION,
          local_host: "dc2.example.com",
          message_ttl: 7,
          redis: { server: run.path("none.sock") },
          connections: { endpoints: [], tls_opts: false },
        },
      },
    },
  });
  await node.start();

  await prepareByNewerProgram(run.path("dc1.sqlite"));
  const links = await mesh.issue({ names: ["dc1.example.com"], days: 2 });
  const clients = await strange.issue({ names: ["www.example.com"] });
  await Deno.chmod(clients.keyfile, 0o644);
  const file = run.path("dc1.toml");
  await Deno.writeTextFile(
    file,
    stringify({
      hosts: ["example.com", "dc1.example.com"],
      node_name: "node1@dc1.example.com",
      listen: {
        c2s: [{
          tls: { mode: "starttls", certfile: clients.certfile, keyfile: clients.keyfile },
        }],
        websocket: [{ tls: { certfile: clients.certfile, keyfile: links.keyfile } }],
      },
      limits: { max_connections: 1_000_000 },
      storage: { internal: { path: run.path("dc1.sqlite") } },
      auth: { backend: "rdbms" },
      outgoing_pools: {
        rdbms: {
          default: {
            connection: {
              driver: "pgsql",
              host: "127.0.0.1",
              port: await servers.freePort(),
              database: "causeway",
              username: "causeway",
              password: "secret",
            },
          },
        },
      },
      modules: {
        mod_global_distrib: {
          ...DISTRIBUTION,
          redis: { server: redis.socket },
          connections: { tls_opts: { ...links } },
        },
      },
    }),
  );

  const admin = node.ready.admin!;
  const { code, out, findings } = await doctor([
    ...["--config", file, "--no-own-node", "--other", node.configFile],
    ...["--admin", `http://127.0.0.1:${admin.port}`, "--timeout", "20"],
  ]);
  const named = naming(findings);

  // 1–6: our own certificates.
  named("certificate/time", /\.pem$/, /^it ends on .* in (1 day|less than a day)$/);
  named("certificate/chain", /\.pem$/, /its chain ends at CN ?= ?strange/);
  named("certificate/name", /\.pem$/, /^it names www\.example\.com, and not example\.com/);
  named("certificate/key-file", /\.key$/, /mode is 0644/);
  named("certificate/unusable", /^listen\.websocket\[0\]\.tls$/, /does not belong to certificate/);
  // 7–11: Redis.
  named(
    "redis/evicts",
    /redis\.sock$/,
    /maxmemory-policy is volatile-lru: at .* throws entries away/,
  );
  named("redis/memory", /redis\.sock$/, /it uses .* of maxmemory/);
  named("redis/persistence", /redis\.sock$/, /appendfsync is always/);
  named("redis/idle-timeout", /redis\.sock$/, /timeout is 30/);
  named("redis/layout", /redis\.sock$/, /its layout is 7, and this version knows 1 at most/);
  // 12–19: other datacenters, as they look from here.
  named("endpoint/certificate-time", /^dc2\.example\.com /, /it ended on/);
  named("endpoint/untrusted", /^dc3\.example\.com /, /issued by CN ?= ?strange, is not trusted/);
  named("endpoint/name", /^dc4\.example\.com /, /names dc9\.example\.com, and not dc4/);
  named("endpoint/unreachable", /^dc5\.example\.com /, /ECONNREFUSED/);
  named("endpoint/tls", /^dc6\.example\.com /, /no TLS handshake/);
  named("endpoint/refuses-us", /^dc7\.example\.com /, /hung up after the TLS handshake/);
  named("mesh/dead-nodes", /^dc8\.example\.com$/, /no node of it has a live lease/);
  named("mesh/no-endpoint", /^dc9\.example\.com$/, /announce no endpoint/);
  // 20–22: a node of another datacenter, and its configuration.
  named("clock/node", /^node1@dc2\.example\.com$/, /its clock is \d+(\.\d)? s ahead/);
  named("config/differs", /\(http:\/\/127\.0\.0\.1:\d+\)$/, /message_ttl is 7, and here it is 4/);
  named("node/part-down", /^node1@dc2\.example\.com$/, /^redis is degraded/);
  named("config/differs", /^node1@dc2\.example\.com /, /message_ttl is 7, and here it is 4/);
  named(
    "config/differs",
    /^node1@dc2\.example\.com /,
    /connections\.tls_opts is off, and here it is on/,
  );
  // 23–25: databases, and this machine.
  named(
    "database/schema",
    /^internal$/,
    /the versions of its schema differ: 999 \(here\), \d+ \(node1@dc2\.example\.com\)/,
  );
  named("database/problem", /^rdbms\.default /, /ECONNREFUSED/);
  named("limits/open-files", /^this shell$/, /open files are allowed/);

  named("endpoint/local-address", /^dc10\.example\.com /, /only its own machine can reach/);

  assert.equal(code, 1);
  for (const { check, advice } of findings) assert.notEqual(advice, "", check);
  assert.deepEqual(
    findings.filter(({ about }) => about.startsWith("dc10.example.com")).map(({ check }) => check),
    ["endpoint/local-address"],
    "a sound endpoint is no finding, but for its address",
  );
  assert.equal(out.includes("secret"), false);
});

Deno.test("causeway doctor names another version, which tells nothing of its links, and changes that a datacenter without Redis has not applied", async () => {
  await unpackRelease(LAST_RELEASE);
  const options: ClusterOptions = {
    datacenters: 2,
    command: (configFile) => {
      const args = ["serve", "--config", configFile];
      return configFile.endsWith("dc2-node1.toml")
        ? releaseCommand(LAST_RELEASE, args)
        : causewayCommand(args);
    },
  };
  await withCluster(options, async (cluster) => {
    await untilAllLinked(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    const admins = [dc1, dc2].flatMap((each) => ["--admin", new URL(each.adminUrl("/")).origin]);
    const args = ["--config", dc1.node.configFile, "--no-own-node", ...admins];
    const found = async (check: string) => {
      const { findings } = await doctor(["--timeout", "60", ...args]);
      return findings.filter((each) => each.check === check)
        .map(({ about, found }) => `${about}: ${found}`);
    };
    const { version } = await (await fetch(dc1.adminUrl("/health"))).json();
    assert.deepEqual(await found("node/version"), [
      `the nodes: they run different versions: ${version} at node1@${dc1.localHost}; ` +
      `${LAST_RELEASE.version} at node1@${dc2.localHost}`,
    ]);

    const { items } = await (await fetch(dc1.adminUrl("/api/v1/datacenter-links"))).json();
    assert.deepEqual(items[1], {
      ...{ datacenter: dc2.localHost, isOwn: false, nodes: 1, answers: 0, links: [], troubles: [] },
    });

    await using stage = new Stage(cluster);
    await dc2.redis.stop();
    await stage.enterAvailable("alice", "dc1");
    const behind = new RegExp(
      `^node1@${dc1.localHost}: [1-9]\\d* of its changes have not been applied at ${dc2.localHost} yet$`,
    );
    await cluster.until(
      async () => (await found("replication/lag")).some((each) => behind.test(each)),
      {
        what: "the doctor sees that dc2 is behind",
      },
    );
    await dc2.redis.start();
    await cluster.until(async () => (await found("replication/lag")).length === 0, {
      what: "the doctor sees that dc2 has caught up",
    });
  });
});

/** Makes a built-in store whose schema a newer program has extended, for this one to use as well. */
async function prepareByNewerProgram(path: string): Promise<void> {
  await (await InternalStore.open({ path })).close();
  const database = new DatabaseSync(path);
  database.exec(
    "INSERT INTO causeway_schema (version, checksum, done) VALUES (999, 'newer', 1); " +
      "UPDATE causeway_schema_floor SET lowest = 1",
  );
  database.close();
}

/** Writes what nodes of other datacenters announce; then sets what should not be set. */
async function plantMesh(
  server: RedisServer,
  hosts: Readonly<Record<string, number | "dead" | "no endpoint">>,
): Promise<void> {
  const redis = new Redis({ path: server.socket });
  try {
    for (const [host, kind] of Object.entries(hosts)) {
      const node = `node1@${host}`;
      await redis.sadd("hosts", host);
      await redis.sadd(`${host}#{nodes}`, node);
      if (kind !== "dead") await redis.set(`causeway:node:${host}#${node}`, "[1,1]");
      if (typeof kind === "number") {
        await redis.sadd(`${host}#${node}#{endpoints}`, `127.0.0.1#${kind}`);
      }
    }
    await redis.set("causeway:layout", "7");
    await redis.config("SET", "appendfsync", "always");
    await redis.config("SET", "timeout", "30");
    await redis.config("SET", "maxmemory-policy", "volatile-lru");
    // No entry here expires, so that nothing can be thrown away; reading goes on.
    await redis.config("SET", "maxmemory", "1mb");
  } finally {
    redis.disconnect();
  }
}

Deno.test("docs/operations.md lists every check of the doctor with its question", async () => {
  const page = await Deno.readTextFile(new URL("../docs/operations.md", import.meta.url));
  for (const { id, asks } of CHECKS) {
    const row = page.split("\n").find((line) => line.startsWith(`| \`${id}\` `));
    assert.equal(row?.split("|")[2]?.trim(), asks, id);
  }
});

Deno.test("every check of the doctor is in a test that plants its fault with real parts", async () => {
  const sources = await Promise.all(
    ["doctor_test.ts", "doctor_redis_test.ts"].map((file) =>
      Deno.readTextFile(new URL(file, import.meta.url))
    ),
  );
  const asserted = new Set(
    Array.from(
      sources.join("").matchAll(/\b(?:named|found)\(\s*"([a-z-]+\/[a-z-]+)"/g),
      ([, id]) => id,
    ),
  );
  assert.deepEqual(CHECKS.map(({ id }) => id).filter((id) => !asserted.has(id)), []);
});
