import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { RedisClient } from "../redis/mod.ts";
import { until } from "../until.ts";
import { Cluster, withCluster } from "./cluster.ts";
import { type ClusterOptions, resolveClusterOptions } from "./cluster_options.ts";

const FAKE_NODE = fileURLToPath(new URL("./testing/fake_node.ts", import.meta.url));
const PROJECT = fileURLToPath(new URL("../../deno.json", import.meta.url));

/** A cluster whose nodes are fakes and whose stores hold the list of accounts. */
const FAKE: ClusterOptions = {
  replication: "external",
  redis: "embedded",
  command: (configFile) => ({
    program: Deno.execPath(),
    args: ["run", "-A", "--config", PROJECT, FAKE_NODE, configFile],
  }),
  addUsers: async ({ configFile, listFile }) => {
    await Deno.copyFile(listFile, join(dirname(configFile), "shared.sqlite"));
  },
};

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Says `text` to an address and gives the answer; undefined when the connection ends first. */
async function say(port: number, text: string): Promise<string | undefined> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(text));
  const buffer = new Uint8Array(1024);
  const length = await connection.read(buffer).catch(() => null);
  return length === null ? undefined : new TextDecoder().decode(buffer.subarray(0, length));
}

Deno.test("Cluster.start() gives each datacenter its files, Redis, accounts and ways to the others", async () => {
  let directory = "";
  {
    await using cluster = await Cluster.start(FAKE);
    directory = cluster.run.directory;
    assert.deepEqual(cluster.datacenters.map((each) => each.name), ["dc1", "dc2", "dc3"]);
    for (const { name, localHost, node, redis, replicator } of cluster.datacenters) {
      const { modules, hosts, storage, global_distrib_addr, listen } = node.configuration;
      const distribution = modules.mod_global_distrib;
      assert.deepEqual(hosts, ["example.com", localHost]);
      assert.equal(node.ready.node, `node1@${localHost}`);
      assert.equal(distribution.redis.port, replicator.address.port);
      assert.notEqual(replicator.address.port, redis.address.port);
      assert.deepEqual(
        Object.keys(global_distrib_addr),
        ["dc1", "dc2", "dc3"].filter((each) => each !== name).map((each) => `${each}.example.com`),
      );
      const users = (await Deno.readTextFile(storage.internal.path)).trim().split("\n");
      assert.deepEqual(users.map((line) => JSON.parse(line).jid), [
        "alice@example.com",
        "bob@example.com",
        "carol@example.com",
      ]);
      const tls = listen.c2s[0]!["tls"] as { certfile: string };
      assert.match(await Deno.readTextFile(tls.certfile), /BEGIN CERTIFICATE/);
    }
    assert.match(await Deno.readTextFile(cluster.caFile), /BEGIN CERTIFICATE/);
    const [link] = cluster.links("dc1", "dc2");
    assert.equal(await say(link!.address.port, "hello"), "node1@dc2.example.com:hello");
    const dc3 = cluster.datacenter("dc3");
    assert.deepEqual(
      (["starttls", "direct", "none"] as const).map((each) => dc3.clientAddress(each)),
      [...dc3.node.ready.c2s],
    );
    assert.equal(dc3.adminUrl("/ready").pathname, "/ready");
    assert.throws(() => cluster.datacenter("dc4"), RangeError);
    assert.throws(() => cluster.links("dc1", "dc1"), RangeError);
  }
  assert.equal(await exists(directory), false, "nothing is left");
});

Deno.test("Cluster.part() stops links and replication both ways until heal()", async () => {
  await using cluster = await Cluster.start({ ...FAKE, datacenters: 2 });
  const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
  await using node = new RedisClient(dc1.replicator.address);
  cluster.part("dc1", "dc2");
  const [there] = cluster.links("dc1", "dc2");
  const answer = say(there!.address.port, "held");
  await node.call("SET", "bob@example.com", "dc1.example.com");
  assert.equal(cluster.replication("dc1", "dc2").held, 1);
  await until(() => there!.connections === 1, { what: "the link is accepted" });
  assert.equal(there!.counts.forwardBytes, 0);
  cluster.heal("dc1", "dc2");
  assert.equal(await answer, "node1@dc2.example.com:held");
  await cluster.until(() => dc2.redisClient.call("GET", "bob@example.com"), {
    what: "bob's place arrives at dc2",
  });
});

Deno.test("Cluster follows a node that is killed and started again at another port", async () => {
  await using cluster = await Cluster.start({ ...FAKE, datacenters: 2 });
  const dc2 = cluster.datacenter("dc2");
  const [link] = cluster.links("dc1", "dc2");
  await dc2.kill();
  assert.equal(await say(link!.address.port, "anyone?").catch(() => undefined), undefined);
  await dc2.start();
  assert.equal(await say(link!.address.port, "again"), "node1@dc2.example.com:again");
});

Deno.test("Cluster.isolate() parts one datacenter from all others and from nobody else", async () => {
  await using cluster = await Cluster.start(FAKE);
  cluster.isolate("dc2");
  assert.equal(cluster.replication("dc1", "dc2").isParted, true);
  assert.equal(cluster.replication("dc2", "dc3").isParted, true);
  assert.equal(cluster.replication("dc1", "dc3").isParted, false);
  const [open] = cluster.links("dc3", "dc1");
  assert.equal(await say(open!.address.port, "x"), "node1@dc1.example.com:x");
  cluster.rejoin("dc2");
  assert.equal(cluster.replication("dc2", "dc3").isParted, false);
});

Deno.test("Cluster.start() keeps the files and ends every process when a node does not start", async () => {
  const starting = Cluster.start({ ...FAKE, env: () => ({ FAKE_EXIT: "node1@dc2.example.com" }) });
  const error = await starting.then(() => assert.fail("it started"), (thrown: Error) => thrown);
  const directory = /its files are in (.+)$/.exec(error.message)?.[1];
  assert.ok(directory !== undefined && await exists(directory), error.message);
  try {
    assert.match(String((error.cause as Error).message), /dc2-node1[^]*fake: told to fail/);
    assert.match(await Deno.readTextFile(`${directory}/dc2-node1.log`), /told to fail/);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("withCluster() keeps the directory of a run that fails, and no other", async () => {
  let directory = "";
  const small = { ...FAKE, datacenters: 1 };
  await withCluster(small, (cluster) => {
    directory = cluster.run.directory;
    return Promise.resolve();
  });
  assert.equal(await exists(directory), false);
  await assert.rejects(
    withCluster(small, (cluster) => {
      directory = cluster.run.directory;
      throw new Error("the scenario failed");
    }),
    /the scenario failed/,
  );
  assert.ok(await exists(directory));
  await Deno.remove(directory, { recursive: true });
});

Deno.test("ClusterOptions.configure has the last word on a node's configuration", async () => {
  await using cluster = await Cluster.start({
    ...FAKE,
    datacenters: 1,
    links: "direct",
    replication: "builtin",
    configure: (configuration, place) => {
      configuration.modules.mod_global_distrib.connections["connections_per_endpoint"] = 10;
      configuration["log"] = { level: place.name === "dc1" ? "debug" : "info" };
    },
  });
  const dc1 = cluster.datacenter("dc1");
  const text = await Deno.readTextFile(dc1.node.configFile);
  assert.match(text, /connections_per_endpoint = 10/);
  assert.match(text, /level = "debug"/);
  assert.match(text, /replication = "builtin"/);
  assert.equal(dc1.hasReplicator, false);
  assert.equal(
    dc1.node.configuration.modules.mod_global_distrib.redis.port,
    dc1.redis.address.port,
  );
});

Deno.test("resolveClusterOptions() refuses what this version cannot do", () => {
  for (const nodes of [0, 10, 1.5, NaN]) {
    assert.throws(() => resolveClusterOptions({ nodes }), /from 1 to 9/);
  }
  assert.equal(resolveClusterOptions({ nodes: 9 }).nodes, 9);
  for (const datacenters of [0, 10, 1.5, NaN]) {
    assert.throws(() => resolveClusterOptions({ datacenters }), /from 1 to 9/);
  }
  assert.equal(resolveClusterOptions({ datacenters: 9 }).datacenters, 9);
  const redisPassword = "open sesame";
  const withPassword = { redisPassword, replication: "external" } as const;
  assert.throws(() => resolveClusterOptions(withPassword), /closes the connection at AUTH/);
  assert.equal(resolveClusterOptions({ redisPassword }).redisPassword, redisPassword);
});
