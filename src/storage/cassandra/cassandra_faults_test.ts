import assert from "node:assert/strict";
import { TestCertificates } from "../../net/testing/certificates.ts";
import type { ArchivedMessage } from "../archive_store.ts";
import { conformanceArchived } from "../testing/archive_store_conformance.ts";
import { CassandraBackend } from "./cassandra_backend.ts";
import { connectCassandra } from "./cassandra_cluster.ts";
import { CASSANDRA_SCHEMA_VERSION } from "./cassandra_schema.ts";
import { archivesAt, asRoot, cassandraDuringTests, cassandraPool } from "./testing/server.ts";

const { open, server } = cassandraDuringTests();

const ALICE = "alice@example.com";
const NOW = 1_700_000_000_000;
const ALL = { limit: 1_000, from: "start" } as const;

/** The process that these tests start is ended with the file's server. */
const RESTARTS = { sanitizeOps: false, sanitizeResources: false };

function backendOf(options: Partial<ReturnType<typeof cassandraPool>> = {}) {
  return new CassandraBackend({
    name: "cassandra.default",
    options: cassandraPool(server().port, options),
  });
}

async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      const { code, retryable } = thrown as { code?: string; retryable?: boolean };
      assert.match(code ?? String(thrown), /^storage\//);
      assert.equal(retryable, true, String(thrown));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

Deno.test("backends: a keyspace is planned, prepared, checked, and prepared again without a change", async () => {
  const backend = backendOf({ keyspace: "fresh" });
  const missing = await backend.check();
  assert.match(
    missing.problems.join("\n"),
    /its tables are missing; run `causeway backends prepare`/,
  );
  assert.equal(missing.server?.product, "cassandra");
  const plan = await backend.plan();
  assert.match(
    plan[0]!,
    /^CREATE KEYSPACE IF NOT EXISTS fresh .*NetworkTopologyStrategy', 'dc1': 1}/,
  );
  // A preparation that was killed behind its fifth statement goes on.
  const client = await connectCassandra(cassandraPool(server().port), "cluster");
  try {
    for (const statement of plan.slice(0, 5)) await client.execute(statement);
  } finally {
    await client.shutdown();
  }
  const steps: string[] = [];
  const rest = await backend.prepare({
    progress: ({ done, total, statement }) => void steps.push(`${done} ${total} ${statement}`),
  });
  assert.deepEqual(rest.slice(1), plan.slice(5));
  assert.deepEqual(steps, rest.map((line, i) => `${i} ${rest.length} ${line}`));
  assert.deepEqual(await backend.prepare(), []);
  assert.deepEqual(await backend.plan(), []);
  const { problems, facts, schemaVersion } = await backend.check();
  assert.deepEqual(problems, []);
  assert.deepEqual(facts, ["the keyspace has replicas by NetworkTopologyStrategy: 1 in dc1"]);
  assert.equal(schemaVersion, CASSANDRA_SCHEMA_VERSION);
});

Deno.test("backends: newer schemas, tables of others, and careless replication are found", async () => {
  const { port } = server();
  const keyspace = (name: string, replication: string) =>
    `CREATE KEYSPACE ${name} WITH replication = {${replication}}`;
  const network = "'class': 'NetworkTopologyStrategy', 'dc1': ";
  await asRoot(
    port,
    keyspace("newer", `${network}1`),
    "CREATE TABLE newer.causeway_schema (version int PRIMARY KEY, checksum text, done int)",
    "INSERT INTO newer.causeway_schema (version, checksum, done) VALUES (99, 'x', 1)",
    keyspace("others", `${network}1`),
    "CREATE TABLE others.archives (id int PRIMARY KEY)",
    keyspace("simple", "'class': 'SimpleStrategy', 'replication_factor': 1"),
    keyspace("pair", `${network}2`),
  );
  await assert.rejects(backendOf({ keyspace: "newer" }).prepare(), {
    code: "storage/schema-too-new",
  });
  await assert.rejects(backendOf({ keyspace: "others" }).prepare(), {
    code: "storage/schema-foreign",
    message: /tables of other programs: archives/,
  });
  const problemsOf = async (name: string) => (await backendOf({ keyspace: name }).check()).problems;
  assert.match(
    (await problemsOf("simple")).join("\n"),
    /SimpleStrategy, which knows no datacenters/,
  );
  assert.match((await problemsOf("pair")).join("\n"), /two replicas in dc1/);
  // The datacenter of the first server is found out.
  assert.deepEqual((await backendOf({ localDatacenter: undefined }).check()).problems, []);
});

Deno.test("backends: rights that are missing are named, and a wrong password", async () => {
  const login = { username: "reader", password: { reveal: () => "p'w" } };
  await asRoot(
    server().port,
    "CREATE ROLE reader WITH PASSWORD = 'p''w' AND LOGIN = true",
    "GRANT SELECT ON KEYSPACE causeway TO reader",
  );
  const { problems } = await backendOf(login).check();
  assert.ok(
    problems.some((each) => each.startsWith("Cannot change the table archive_messages of")),
  );
  assert.ok(problems.every((each) => !each.startsWith("Cannot read")));
  await using reader = archivesAt(cassandraPool(server().port, login));
  await assert.rejects(reader.archives().append([conformanceArchived(1)], NOW), {
    code: "storage/denied",
  });
  const wrong = { ...login, password: { reveal: () => "x" } };
  await using stranger = archivesAt(cassandraPool(server().port, wrong));
  await assert.rejects(stranger.archives().read(ALICE, {}, ALL), { code: "storage/denied" });
  const report = await backendOf(wrong).check();
  assert.equal(report.server, undefined);
  assert.equal(report.problems.length, 1);
});

Deno.test("too few replicas: nothing is reported stored, and it works again when they are back", async () => {
  await using fixture = await open();
  const store = fixture.archives();
  await store.append([conformanceArchived(1)], NOW);
  const replicas = (count: number) =>
    asRoot(
      server().port,
      "ALTER KEYSPACE causeway WITH replication = " +
        `{'class': 'NetworkTopologyStrategy', 'dc1': ${count}}`,
    );
  await replicas(3);
  try {
    await assert.rejects(store.append([conformanceArchived(2)], NOW), {
      code: "storage/no-quorum",
      retryable: true,
    });
    await assert.rejects(store.read(ALICE, {}, ALL), { code: "storage/no-quorum" });
  } finally {
    await replicas(1);
  }
  await store.append([conformanceArchived(2)], NOW);
  const { messages } = (await store.read(ALICE, {}, ALL))!;
  assert.deepEqual(messages.map(({ sequence }) => sequence), [1, 2]);
});

Deno.test("a message that is too large fails by name, and keeps no other from being stored", async () => {
  await using fixture = await open();
  const store = fixture.archives();
  // By default a server takes 16 MB at once.
  const large = conformanceArchived(2, { text: "x".repeat(17_000_000) });
  for (const batch of [[large], [conformanceArchived(1), large]]) {
    await assert.rejects(store.append(batch, NOW), {
      code: "storage/value-too-large",
      retryable: false,
    });
  }
  await store.append([conformanceArchived(1), conformanceArchived(3)], NOW);
  const { messages } = (await store.read(ALICE, {}, ALL))!;
  assert.deepEqual(messages.map(({ sequence }) => sequence), [1, 3]);
});

Deno.test("a server that stands still costs a request its time limit, and no message is stored twice", async () => {
  const bounds = {
    workers: 4,
    maxWaiting: 3,
    statementTimeoutMs: 1_500,
    connectTimeoutMs: 30_000,
    waitTimeoutMs: 200,
  };
  await using fixture = await open({ bounds });
  const store = fixture.archives();
  await untilDone(() => store.append([conformanceArchived(0)], NOW));
  const resume = server().suspend();
  const sent = Array.from({ length: 12 }, (_, i) => conformanceArchived(1 + i));
  try {
    const outcomes = await Promise.allSettled(sent.map((each) => store.append([each], NOW)));
    const codes = outcomes.map((each) =>
      each.status === "rejected" ? (each.reason as { code?: string }).code : "stored"
    );
    // At most four are under way, three wait, and nobody else is taken.
    assert.ok(codes.filter((each) => each === "storage/pool-full").length >= 5, codes.join(" "));
    for (const code of codes) {
      assert.match(code ?? "", /^storage\/(pool-full|timeout|unreachable)$/);
    }
  } finally {
    resume();
  }
  for (const message of sent) await untilDone(() => store.append([message], NOW));
  const { messages } = (await untilDone(() => store.read(ALICE, {}, ALL)))!;
  const ids = messages.map(({ sequence }) => sequence);
  assert.deepEqual(
    ids.toSorted((one, other) => one - other),
    Array.from({ length: 13 }, (_, i) => i),
  );
});

Deno.test(
  "a server that is killed in the middle keeps what was reported, and nothing twice",
  RESTARTS,
  async () => {
    await using fixture = await open();
    await using other = archivesAt(cassandraPool(server().port));
    const nodes = [fixture.archives(), other.archives()];
    const reported = new Set<number>();
    let isOver = false;
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const write = async (node: number) => {
      for (let i = 0; !isOver; i++) {
        const messages: ArchivedMessage[] = [0, 1, 2].map((each) =>
          conformanceArchived(node * 100_000 + 3 * i + each)
        );
        await untilDone(() => nodes[node]!.append(messages, NOW));
        for (const { sequence } of messages) reported.add(sequence);
        if (reported.size > 30) begin();
      }
    };
    const writing = [write(0), write(1)];
    await begun;
    await server().kill();
    const before = reported.size;
    await server().launch();
    while (reported.size < before + 12) await new Promise((resolve) => setTimeout(resolve, 20));
    isOver = true;
    await Promise.all(writing);
    const seen: number[] = [];
    let last: { process: number; sequence: number } | undefined;
    for (;;) {
      const page = (await untilDone(() => nodes[0]!.read(ALICE, {}, { ...ALL, after: last })))!;
      seen.push(...page.messages.map(({ sequence }) => sequence));
      last = page.messages.at(-1) ?? last;
      if (page.isComplete) break;
    }
    assert.equal(new Set(seen).size, seen.length, "nothing is there twice");
    assert.deepEqual(new Set(seen), reported);
    const peer = { bare: "bob@example.com", resourcepart: "" };
    assert.equal(await nodes[0]!.count(ALICE, { peer }, 100_000), seen.length);
  },
);

Deno.test(
  "backup: the files of a stopped server, put back, have every archive as it was",
  RESTARTS,
  async () => {
    const peer = { bare: "bob@example.com", resourcepart: "" };
    const texts = async (filter = {}) => {
      await using fixture = archivesAt(cassandraPool(server().port));
      const page = await untilDone(() => fixture.archives().read(ALICE, filter, ALL));
      return page!.messages.map(({ sequence }) => sequence);
    };
    {
      await using fixture = await open();
      const messages = Array.from({ length: 300 }, (_, i) => conformanceArchived(i));
      await fixture.archives().append(messages, NOW);
      await fixture.archives().setPreferences(ALICE, {
        byDefault: "roster",
        always: ["bob@example.com"],
        never: [],
      });
    }
    await server().kill();
    await server().backUp();
    await server().launch();
    {
      await using fixture = archivesAt(cassandraPool(server().port));
      await untilDone(() => fixture.archives().removeAll(ALICE));
      await untilDone(() => fixture.archives().append([conformanceArchived(7_000)], NOW));
    }
    await server().kill();
    await server().restore();
    await server().launch();
    const expected = Array.from({ length: 300 }, (_, i) => i);
    assert.deepEqual(await texts(), expected);
    assert.deepEqual(await texts({ peer }), expected);
    await using fixture = archivesAt(cassandraPool(server().port));
    const preferences = await untilDone(() => fixture.archives().preferences(ALICE));
    assert.equal(preferences?.byDefault, "roster");
    // It goes on: what is there is not stored again, and what is new is behind it.
    await untilDone(() =>
      fixture.archives().append([conformanceArchived(299), conformanceArchived(300)], NOW)
    );
    assert.deepEqual(await texts(), [...expected, 300]);
  },
);

// The last one: the server speaks TLS alone from here on.
Deno.test(
  "TLS: the server that the authority names is accepted, and no other",
  RESTARTS,
  async () => {
    await using certificates = await TestCertificates.create();
    const authority = await certificates.authority();
    const stranger = await certificates.authority("another authority");
    await server().launchWithTls(await authority.issue({ names: ["localhost"] }));
    const attempt = async (host: string, tls?: { readonly cafile?: string }) => {
      const servers = [{ host, port: server().port }];
      await using fixture = archivesAt(cassandraPool(server().port, { servers, tls }));
      return await fixture.archives().ends("nobody@example.com");
    };
    const { cafile } = authority;
    assert.equal(await attempt("localhost", { cafile }), undefined);
    await assert.rejects(attempt("localhost", { cafile: stranger.cafile }), {
      code: "storage/untrusted",
    });
    await assert.rejects(attempt("127.0.0.1", { cafile }), { code: "storage/untrusted" });
    await assert.rejects(attempt("localhost", {}), { code: "storage/untrusted" });
    await assert.rejects(attempt("localhost"), { code: "storage/unreachable" }); // without TLS
  },
);
