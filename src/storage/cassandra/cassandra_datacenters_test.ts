import assert from "node:assert/strict";
import { CassandraServer } from "../../../harness/databases/mod.ts";
import { until } from "../../../harness/until.ts";
import type { ArchiveStore } from "../archive_store.ts";
import type { CassandraPoolOptions } from "../server_pools.ts";
import { conformanceArchived } from "../testing/archive_store_conformance.ts";
import { PATIENT } from "../testing/patient_bounds.ts";
import { CassandraBackend } from "./cassandra_backend.ts";
import { connectCassandra } from "./cassandra_cluster.ts";
import { readDatacenters } from "./cassandra_schema.ts";
import { archivesAt, cassandraPool } from "./testing/server.ts";

const ALICE = "alice@example.com";
const NOW = 1_700_000_000_000;
const ALL = { limit: 1_000, from: "start" } as const;

/** A cluster of one server in each of two datacenters, at two addresses of loopback. */
let servers: { readonly near: CassandraServer; readonly far: CassandraServer } | undefined;
/** Servers that have started, the last one first. */
const started: CassandraServer[] = [];

Deno.test.beforeAll(async () => {
  const near = await CassandraServer.start({
    address: "127.0.0.1",
    datacenter: "dc1",
    isOpen: true,
  });
  started.unshift(near);
  const far = await CassandraServer.start({
    address: "127.0.0.2",
    datacenter: "dc2",
    isOpen: true,
    joins: { address: "127.0.0.1", port: near.port },
  });
  started.unshift(far);
  for (const datacenter of ["dc1", "dc2"] as const) {
    const client = await connectCassandra(poolAt(datacenter, near.port), "cluster");
    await until(async () => (await readDatacenters(client)).size === 2, {
      what: `${datacenter} knows both datacenters`,
      withinMs: 60_000,
      everyMs: 50,
    }).finally(() => client.shutdown());
  }
  servers = { near, far };
});
Deno.test.afterAll(async () => {
  for (const server of started) await server[Symbol.asyncDispose]();
});

/** Returns the pool of a node of a datacenter. */
function poolAt(
  datacenter: "dc1" | "dc2",
  port = servers!.near.port,
  options: Partial<CassandraPoolOptions> = {},
): CassandraPoolOptions {
  return cassandraPool(port, {
    servers: [{ host: datacenter === "dc1" ? "127.0.0.1" : "127.0.0.2", port }],
    localDatacenter: datacenter,
    username: undefined,
    ...options,
  });
}

function backendAt(...args: Parameters<typeof poolAt>): CassandraBackend {
  return new CassandraBackend({ name: "cassandra.default", options: poolAt(...args) });
}

async function sequences(store: ArchiveStore): Promise<readonly number[]> {
  return (await store.read(ALICE, {}, ALL))!.messages.map(({ sequence }) => sequence);
}

Deno.test("Cassandra in two datacenters: the keyspace is made in both, and careless options are found", async () => {
  const near = backendAt("dc1");
  const plan = await near.plan();
  assert.match(plan[0]!, /'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}$/);
  assert.deepEqual(await near.prepare(), plan);
  assert.deepEqual(await backendAt("dc2").plan(), []);
  for (const datacenter of ["dc1", "dc2"] as const) {
    const { problems, facts } = await backendAt(datacenter).check();
    assert.deepEqual(problems, []);
    const all = "the keyspace has replicas by NetworkTopologyStrategy: 1 in dc1, 1 in dc2";
    assert.deepEqual(facts, [all]);
  }
  const { near: { port } } = servers!;
  const local = await backendAt("dc1", port, { serialConsistency: "local_serial" }).check();
  assert.match(local.problems.join("\n"), /has replicas in 2 datacenters, and serial_consistency/);

  const client = await connectCassandra(poolAt("dc1"), "cluster");
  try {
    await client.execute(
      "CREATE KEYSPACE lone WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3}",
    );
  } finally {
    await client.shutdown();
  }
  const { problems, facts } = await backendAt("dc2", port, { keyspace: "lone" }).check();
  assert.match(problems.join("\n"), /The keyspace lone has no replicas in the datacenter dc2/);
  assert.match(problems.join("\n"), /has 3 replicas in dc1, which has 1 servers/);
  assert.ok(facts!.includes("the keyspace has no replicas in dc2"));
});

Deno.test("Cassandra in two datacenters: the keyspace has one identity, wherever one asks", async () => {
  await using near = archivesAt(poolAt("dc1"));
  await using far = archivesAt(poolAt("dc2"));
  const [one, other] = await Promise.all([near, far].map(({ cluster }) => cluster.identity()));
  assert.match(one!, /^[-0-9a-f]{36} [-0-9a-f]{36} causeway$/);
  assert.equal(one, other);
});

Deno.test("Cassandra in two datacenters: writers of both store each message once, in one order", async () => {
  await using near = archivesAt(poolAt("dc1"));
  await using far = archivesAt(poolAt("dc2"));
  const stores = [near.archives(), far.archives()];
  await Promise.all(stores.map(async (store, i) => {
    for (let round = 0; round < 8; round++) {
      const own = [0, 1, 2].map((j) => conformanceArchived(1_000 * i + 3 * round + j));
      const both = conformanceArchived(5_000 + round);
      assert.deepEqual(
        await store.append([...own, both], NOW),
        ["stored", "stored", "stored", "stored"],
      );
    }
  }));
  const orders = await Promise.all(stores.map(sequences));
  assert.deepEqual(orders[0], orders[1]);
  assert.equal(new Set(orders[0]).size, 2 * 24 + 8);
  assert.equal(orders[0]!.length, 2 * 24 + 8);
  // What one datacenter has stored, the other one reads at once, behind the last that it knows.
  for (let i = 0; i < 10; i++) {
    const [writer, reader] = i % 2 === 0 ? stores : stores.toReversed();
    const last = (await reader!.ends(ALICE))!.last;
    await writer!.append([conformanceArchived(9_000 + i)], NOW);
    const page = await reader!.read(ALICE, {}, { ...ALL, after: last });
    assert.deepEqual(page!.messages.map(({ sequence }) => sequence), [9_000 + i]);
  }
});

Deno.test({
  name:
    "Cassandra in two datacenters: without the other one nothing is reported stored, and pages are read",
  // A server of the file ends within the test.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using near = archivesAt(poolAt("dc1"));
    const store = near.archives();
    await store.append([conformanceArchived(20_000)], NOW);
    const before = await sequences(store);
    const { near: { port } } = servers!;
    // The servers of tests are patient.
    const bounds = { ...PATIENT, statementTimeoutMs: 5_000 };
    await using hurried = archivesAt(poolAt("dc1", port, { bounds }));
    await hurried.cluster.probe();
    await servers!.far.kill();
    await assert.rejects(hurried.archives().append([conformanceArchived(20_001)], NOW), {
      code: /^storage\/(timeout|unreachable|overloaded|no-quorum)$/,
    });
    // A request may have been carried out although its answer did not come.
    const now = (await sequences(store)).filter((sequence) => sequence !== 20_001);
    assert.deepEqual(now, before);
    // One datacenter alone goes on where it alone writes.
    await using alone = archivesAt(poolAt("dc1", port, { serialConsistency: "local_serial" }));
    const message = conformanceArchived(20_002, { archive: "bob@example.com" });
    assert.deepEqual(await alone.archives().append([message], NOW), ["stored"]);
  },
});
