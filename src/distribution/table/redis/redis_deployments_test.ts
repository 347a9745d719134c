import assert from "node:assert/strict";
import calculateSlot from "cluster-key-slot";
import { Redis } from "ioredis";
import { randomIncarnation } from "../../../base/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { RedisCluster, RedisProcess, SentinelGroup } from "./testing/redis_processes.ts";
import { until } from "./testing/redis_server.ts";
import { bareJid, fullJid, TestMetrics } from "../testing/table.ts";
import type { RedisOptions } from "../options.ts";
import { resolveTable } from "../options.ts";
import { RedisClusterCommands } from "./redis_cluster.ts";
import type { RedisCommand } from "./redis_commands.ts";
import { SessionTable } from "../session_table.ts";

const HERE = "dc1.example.com";
const BOB = fullJid("bob", "phone");
const ALICE = fullJid("alice", "desk");
/** A failover takes the time that Redis is told to take, and that of a busy machine. */
const FAILOVER_MS = 180_000;

const NAMES = {
  globalHost: "example.com",
  localHost: HERE,
  nodeName: `node1@${HERE}`,
  incarnation: 1,
};

interface Setup extends AsyncDisposable {
  readonly table: SessionTable;
  readonly logger: MemoryLogger;
}

function open(redis: RedisOptions): Setup {
  const logger = new MemoryLogger();
  const table = new SessionTable({
    ...NAMES,
    incarnation: randomIncarnation(),
    replication: "external",
    redis: { reconnectMaxMs: 50, ...redis },
  }, { metrics: new TestMetrics(), logger });
  return { table, logger, [Symbol.asyncDispose]: () => table.close() };
}

// ---- TLS and ACL ---------------------------------------------------------------------------

/** Rights of a node in docs/redis.md. */
const GRANTED =
  "~* resetchannels -@all +get +set +del +expire +ttl +hgetall +hset +hdel +sadd +srem +scard +smembers +sunion";

/** Certificates for `redis.internal` and 127.0.0.1, in a directory of their own. */
class Certificates implements AsyncDisposable {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async make(): Promise<Certificates> {
    const certificates = new Certificates(
      await Deno.makeTempDir({ prefix: "causeway-redis-tls-" }),
    );
    await certificates.#authority("ca");
    await certificates.#authority("other");
    await certificates.issue("redis");
    return certificates;
  }

  path(name: string): string {
    return `${this.directory}/${name}`;
  }

  /** A certificate of `authority`, as `name.pem` and `name.key`. */
  async issue(name: string, authority = "ca"): Promise<void> {
    await Deno.writeTextFile(
      this.path("extensions"),
      "subjectAltName=DNS:redis.internal,IP:127.0.0.1",
    );
    await openssl([
      ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...[
        "-keyout",
        this.path(`${name}.key`),
        "-out",
        this.path("request"),
        "-subj",
        `/CN=${name}`,
      ],
    ]);
    await openssl([
      ...["x509", "-req", "-in", this.path("request"), "-days", "2", "-CAcreateserial"],
      ...["-CA", this.path(`${authority}.pem`), "-CAkey", this.path(`${authority}.key`)],
      ...["-extfile", this.path("extensions"), "-out", this.path(`${name}.pem`)],
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.directory, { recursive: true });
  }

  async #authority(name: string): Promise<void> {
    await openssl([
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", this.path(`${name}.key`), "-out", this.path(`${name}.pem`)],
      ...["-days", "2", "-subj", `/CN=${name}`],
    ]);
  }
}

async function openssl(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("openssl", { args: [...args] }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
}

Deno.test("SessionTable works over TLS with a client certificate and an ACL user who may do what the page says", async (test) => {
  await using certificates = await Certificates.make();
  await certificates.issue("node");
  await certificates.issue("stranger", "other");
  await using server = await RedisProcess.start({
    portOption: "tls-port",
    args: [
      ...["--tls-cert-file", certificates.path("redis.pem")],
      ...["--tls-key-file", certificates.path("redis.key")],
      ...["--tls-ca-cert-file", certificates.path("ca.pem"), "--tls-auth-clients", "yes"],
      ...["--save", "", "--appendonly", "no"],
    ],
    file: [
      `user causeway on >sesame ${GRANTED}`,
      "user reader on >sesame ~* -@all +get +hgetall +smembers +sunion",
      "user default off",
    ],
  });
  const tls = {
    cafile: certificates.path("ca.pem"),
    certfile: certificates.path("node.pem"),
    keyfile: certificates.path("node.key"),
  };
  const redis = {
    server: "127.0.0.1",
    port: server.port,
    username: "causeway",
    password: "sesame",
    tls,
  };

  await test.step("every command of the table is allowed", async () => {
    await using setup = open({ ...redis, poolSize: 2 });
    const { table } = setup;
    await table.start();
    assert.equal(table.status, "up");
    await table.publishEndpoints([{ host: "127.0.0.1", port: 5555 }]);
    await table.domainAdded("echo.example.com", { hidden: false });
    await table.sessionOpened(BOB);
    table.forget(BOB);
    assert.equal(await table.locate(BOB), HERE);
    assert.deepEqual(await table.endpoints(HERE), [{ host: "127.0.0.1", port: 5555 }]);
    await table.sessionClosed(BOB);
    await table.domainRemoved("echo.example.com");
    assert.equal(table.status, "up");
    assert.deepEqual(setup.logger.entries.map(({ event }) => event), ["redis.up"]);
  });

  await test.step("a name that the certificate carries is taken, another one is not", async () => {
    await using right = open({ ...redis, tls: { ...tls, servername: "redis.internal" } });
    await right.table.start();
    assert.equal(right.table.status, "up");
    await using wrong = open({ ...redis, tls: { ...tls, servername: "redis.elsewhere" } });
    await wrong.table.start();
    assert.match(wrong.table.snapshot().reason!, /redis\.elsewhere/);
  });

  await test.step("a server of another authority is refused", async () => {
    await using setup = open({ ...redis, tls: { ...tls, cafile: certificates.path("other.pem") } });
    await setup.table.start();
    assert.match(setup.table.snapshot().reason!, /certificate/);
  });

  await test.step("without cafile, public authorities are asked for", async () => {
    await using setup = open({ ...redis, tls: {} });
    await setup.table.start();
    assert.match(setup.table.snapshot().reason!, /certificate/);
  });

  await test.step("files are read again for the next connection", async () => {
    const [certfile, keyfile] = [
      certificates.path("renewed.pem"),
      certificates.path("renewed.key"),
    ];
    await Deno.copyFile(certificates.path("stranger.pem"), certfile);
    await Deno.copyFile(certificates.path("stranger.key"), keyfile);
    await using setup = open({ ...redis, tls: { ...tls, certfile, keyfile } });
    await setup.table.start();
    assert.equal(setup.table.status, "degraded");
    await Deno.copyFile(certificates.path("node.pem"), certfile);
    await Deno.copyFile(certificates.path("node.key"), keyfile);
    await until(() => setup.table.status === "up", "the renewed certificate is used");
  });

  await test.step("a file that is no certificate ends the start", () => {
    assert.throws(() => open({ ...redis, tls: { cafile: certificates.path("extensions") } }), {
      code: "table/redis-tls",
    });
  });

  await test.step("a wrong password ends the start, a user without rights is told of", async () => {
    await using wrong = open({ ...redis, password: "wrong" });
    await assert.rejects(wrong.table.start(), { code: "table/redis-auth" });
    await using reader = open({ ...redis, username: "reader" });
    await reader.table.start();
    assert.match(reader.table.snapshot().reason!, /^NOPERM .*'set'/);
  });
});

// ---- Sentinel ------------------------------------------------------------------------------

Deno.test("SessionTable follows the master that Sentinels name, when it dies and when it is replaced alive", async () => {
  await using group = await SentinelGroup.start();
  await using setup = open({
    sentinels: group.sentinels.map(({ address }) => address),
    sentinelName: "dc1",
    poolSize: 2,
  });
  const { table } = setup;
  await table.start();
  assert.equal(table.status, "up");
  await table.sessionOpened(BOB);
  assert.equal(await group.master.call("GET", "bob@example.com"), HERE);

  await group.master.kill();
  await until(() => table.status === "degraded", "the table is degraded");
  assert.equal(await table.locate(bareJid("bob")), HERE);
  await table.sessionOpened(ALICE);
  await until(() => table.status === "up", "the table has found the new master", FAILOVER_MS);
  for (const name of ["alice", "bob"]) {
    await until(
      async () => await group.replica.call("GET", `${name}@example.com`) === HERE,
      `${name} is written`,
    );
  }

  await group.untilNamed(group.replica);
  await group.master.launch("--replicaof", `127.0.0.1 ${group.replica.port}`);
  await until(
    async () => {
      const info = String(await group.master.call("INFO", "replication"));
      return /role:slave/.test(info) && /master_link_status:up/.test(info);
    },
    "the old master has become a replica",
    FAILOVER_MS,
  );
  // A Sentinel refuses a failover while one is under way, and may give one up that it has begun.
  let askedMs = -Infinity;
  await until(
    async () => {
      const info = String(await group.replica.call("INFO", "replication"));
      if (/role:slave/.test(info)) return true;
      if (performance.now() - askedMs > FAILOVER_MS / 4) {
        await group.failOver().then(() => askedMs = performance.now(), () => {});
      }
      return false;
    },
    "the new master has become a replica",
    FAILOVER_MS,
  );
  await table.sessionClosed(ALICE);
  await until(
    async () => await group.master.call("GET", "alice@example.com") === null,
    "the logout is written to the master",
    FAILOVER_MS,
  );
  await until(() => table.status === "up", "the table is up", FAILOVER_MS);
});

Deno.test("SessionTable says that no Sentinel knows the master, and finds it when one does", async () => {
  await using group = await SentinelGroup.start();
  const [sentinel] = group.sentinels;
  const rights = ["-@all", "+sentinel|get-master-addr-by-name"];
  await sentinel!.call("ACL", "SETUSER", "asker", "on", ">sesame", ...rights);
  await using setup = open({
    sentinels: [sentinel!.address],
    sentinelName: "dc2",
    sentinelUsername: "asker",
    sentinelPassword: "sesame",
  });
  await setup.table.start();
  assert.match(setup.table.snapshot().reason!, /no Sentinel tells where the master is/);
  await sentinel!.call("SENTINEL", "MONITOR", "dc2", "127.0.0.1", group.master.port, 1);
  await until(() => setup.table.status === "up", "the master is found", FAILOVER_MS);
});

Deno.test("SessionTable.start() refuses a password that Sentinels do not take", async () => {
  await using group = await SentinelGroup.start("sesame");
  const sentinels = group.sentinels.map(({ address }) => address);
  const common = { sentinels, sentinelName: "dc1" };
  await using wrong = open({ ...common, sentinelPassword: "wrong" });
  await assert.rejects(wrong.table.start(), { code: "table/redis-auth" });
  await using right = open({ ...common, sentinelPassword: "sesame" });
  await right.table.start();
  assert.equal(right.table.status, "up");
});

// ---- Cluster -------------------------------------------------------------------------------

Deno.test("SessionTable spreads over a cluster, and is complete again after a master has died", async () => {
  await using cluster = await RedisCluster.start({ replicas: 1 });
  await using setup = open({ cluster: [cluster.nodes[0]!.address, cluster.nodes[4]!.address] });
  const { table } = setup;
  await table.start();
  assert.equal(table.status, "up");
  await table.publishEndpoints([{ host: "127.0.0.1", port: 5555 }]);
  const people = Array.from({ length: 30 }, (_, i) => fullJid(`user${i}`, "phone"));
  for (const who of people) await table.sessionOpened(who);
  assert.deepEqual(await table.endpoints(HERE), [{ host: "127.0.0.1", port: 5555 }]);

  await cluster.nodes[0]!.kill();
  await until(() => table.status === "degraded", "the table is degraded");
  for (const who of people) assert.equal(await table.locate(who), HERE);
  await table.sessionOpened(BOB);
  await until(() => table.status === "up", "a replica has taken over", FAILOVER_MS);
  const reader = new RedisClusterCommands(
    resolveTable({ ...NAMES, redis: { cluster: [cluster.nodes[1]!.address] } }).redis,
  );
  const ready = Promise.withResolvers<void>();
  reader.connect({ connected: () => ready.resolve(), disconnected: () => {} });
  await ready.promise;
  try {
    const keys = [...people, BOB].flatMap((who) => [who.text, who.bare.text]);
    const reads = keys.map((key): RedisCommand => ["GET", key]);
    await until(
      async () => (await reader.run(reads)).every((reply) => reply === HERE),
      "every session is in the table",
    );
  } finally {
    await reader.close();
  }
});

Deno.test("RedisClusterCommands keeps the order of the commands on a key whose slot moves", async () => {
  await using cluster = await RedisCluster.start();
  const key = "bob@example.com";
  const slot = calculateSlot(key);
  const from = await cluster.ownerOf(slot);
  const to = (from + 1) % 3;
  const [source, target] = [cluster.nodes[from]!, cluster.nodes[to]!];
  const [sourceId, targetId] = [await cluster.id(from), await cluster.id(to)];
  for (const node of cluster.nodes) {
    const rights = [...GRANTED.split(" "), "+cluster|slots", "+asking"];
    await node.call("ACL", "SETUSER", "causeway", "on", ">sesame", ...rights);
  }
  const user = { username: "causeway", password: "sesame" };
  const commands = new RedisClusterCommands(
    resolveTable({ ...NAMES, redis: { cluster: [source.address], ...user } }).redis,
  );
  const events: string[] = [];
  const up = Promise.withResolvers<void>();
  commands.connect({
    connected: () => {
      events.push("up");
      up.resolve();
    },
    disconnected: (reason) => void events.push(reason),
  });
  await up.promise;
  let isMoving = true;
  let count = 0;
  /** Several calls at once, each of which reads what it has written. */
  const write = async () => {
    const calls = Array.from({ length: 8 }, async () => {
      const value = String(++count);
      const other = `carol${count}@example.com`;
      const [, , , seen] = await commands.run([
        ["SET", key, value],
        ["SET", other, value],
        ["SADD", `${key}{other}`, value],
        ["GET", key],
      ]);
      assert.equal(seen, value);
    });
    await Promise.all(calls);
  };
  const move = async () => {
    await target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", sourceId);
    await source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", targetId);
    const before = count;
    await until(() => count > before + 50, "commands go on while the slot is on its way");
    await source.call("MIGRATE", "127.0.0.1", target.port, key, 0, 5_000);
    const halfway = count;
    await until(() => count > halfway + 50, "commands go on where their key is not any more");
    for (const node of [target, source]) {
      await node.call("CLUSTER", "SETSLOT", slot, "NODE", targetId);
    }
    const after = count;
    await until(() => count > after + 200, "commands go on at the new master");
    isMoving = false;
  };
  try {
    await Promise.all([
      move(),
      (async () => {
        while (isMoving) await write();
      })(),
    ]);
    assert.equal(await target.call("GET", key), String(count));
    assert.deepEqual(events, ["up"], "the table was never away");
  } finally {
    await commands.close();
  }
});

Deno.test("RedisClusterCommands is not up while slots have no master, and says so", async () => {
  await using server = await RedisProcess.start({
    args: ["--cluster-enabled", "yes", "--save", "", "--appendonly", "no"],
  });
  await using setup = open({ cluster: [server.address] });
  await setup.table.start();
  assert.match(setup.table.snapshot().reason!, /16384 of the cluster's 16384 slots have no master/);
  await server.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
  await until(() => setup.table.status === "up", "the cluster is whole", FAILOVER_MS);
});

Deno.test("SessionTable says that a Redis is no cluster", async () => {
  await using server = await RedisProcess.start({ args: ["--save", "", "--appendonly", "no"] });
  await using setup = open({ cluster: [server.address] });
  await setup.table.start();
  assert.match(setup.table.snapshot().reason!, /cluster support disabled/);
  const redis = new Redis(server.address);
  assert.deepEqual(await redis.keys("*"), []);
  redis.disconnect();
});
