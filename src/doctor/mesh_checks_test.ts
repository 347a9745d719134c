import assert from "node:assert/strict";
import { parse, SOUND } from "../config/testing/config.ts";
import { examine } from "./examine.ts";
import type { DoctorFacts } from "./facts.ts";
import type { AnsweredNode } from "./node_facts.ts";
import { lagsOf } from "./node_facts.ts";
import { settingsOf } from "./shared_settings.ts";

const CONFIG = parse(SOUND);

function facts(nodes: readonly AnsweredNode[]): DoctorFacts {
  return {
    config: CONFIG,
    nowMs: 0,
    certificates: [],
    table: {
      address: "127.0.0.1:8102",
      problem: undefined,
      layout: 1,
      hosts: [],
      servers: [],
    },
    endpoints: [],
    databases: [],
    nodes,
    own: settingsOf(CONFIG, "c.toml"),
    others: [],
    openFiles: Infinity,
  };
}

function node(name: string, more: Partial<AnsweredNode> = {}): AnsweredNode {
  return {
    kind: "answered",
    place: `http://${name}`,
    node: name,
    version: "1.0.0",
    datacenter: undefined,
    parts: [{ name: "redis", state: "up", reason: undefined }],
    time: { theirMs: 500, ourMs: 0 },
    lags: [],
    schemas: [{ pool: "rdbms.default", kind: "pgsql", version: 12 }],
    settings: undefined,
    ...more,
  };
}

function found(nodes: readonly AnsweredNode[]): readonly string[] {
  return examine(facts(nodes)).filter(({ check }) =>
    /^(node|clock|replication|database)\//.test(check)
  )
    .map((each) => `${each.severity} ${each.check} ${each.about}: ${each.found}`);
}

Deno.test("examine() finds nothing about nodes that agree", () => {
  assert.deepEqual(found([node("n1"), node("n2")]), []);
});

Deno.test("examine() names nodes of other versions, with other clocks, and behind in replication", () => {
  const lags = lagsOf(
    'causeway_replication_lag_changes{direction="in",host="dc1",node="n1"} 7\n' +
      'causeway_replication_lag_changes{direction="out",host="dc3",node=""} 0\n',
  );
  const other = node("n2", { version: "0.9.0", time: { theirMs: -90_000, ourMs: 0 }, lags });
  assert.deepEqual(found([node("n1"), other]), [
    "error clock/node n2: its clock is 90.0 s behind this machine's",
    "warning node/version the nodes: they run different versions: 1.0.0 at n1; 0.9.0 at n2",
    "warning replication/lag n2: 7 changes of n1 have not been applied here yet",
  ]);
});

Deno.test("examine() compares the schemas of databases of one name and one engine", () => {
  const schemas = (version: number, kind = "pgsql") => ({
    schemas: [
      { pool: "rdbms.default", kind, version },
      { pool: "internal", kind: "sqlite", version: 9 },
    ],
  });
  assert.deepEqual(found([node("n1"), node("n2", schemas(3, "mysql")), node("n3")]), []);
  assert.deepEqual(found([node("n1"), node("n2", schemas(11)), node("n3", schemas(12))]), [
    "warning database/schema rdbms.default: the versions of its schema differ: 12 (n1, n3), 11 (n2)",
  ]);
});

Deno.test("examine() names once what it finds twice", () => {
  const down = { parts: [{ name: "redis", state: "down", reason: "refused" }] } as const;
  const once = found([node("n1", down)]);
  assert.equal(once.length, 1);
  assert.deepEqual(found([node("n1", down), node("n1", down)]), once);
});

Deno.test("examine() finds two datacenters that share a Redis, unless something else replicates it", () => {
  const shared = (replication: string, writers: readonly string[]) => {
    const config = parse(SOUND.replace('"external"', `"${replication}"`));
    const { table, ...rest } = facts([]);
    const host = (host: string, writers: readonly string[]) => ({
      host,
      datacenterId: "a",
      nodes: [],
      writers,
    });
    const hosts = [host("dc1.example.com", ["n1"]), host("dc2.example.com", writers)];
    return examine({ ...rest, config, table: { ...table, hosts } })
      .filter(({ check }) => check === "redis/shared")
      .map(({ severity, about, found }) => `${severity} ${about}: ${found}`);
  };
  assert.deepEqual(shared("builtin", ["n2", "n3"]), [
    "error Redis 127.0.0.1:8102: nodes of dc2.example.com write to it, too: n2, n3",
  ]);
  assert.deepEqual(shared("builtin", []), []);
  assert.deepEqual(shared("external", ["n2"]), []);
});

Deno.test("examine() tells two datacenters with one local host from two nodes of one datacenter", () => {
  const at = (name: string, id: string, localHost = "dc1.example.com") =>
    node(name, { datacenter: { localHost, id } });
  const twins = (nodes: readonly AnsweredNode[], idInRedis = "") => {
    const { table, ...rest } = facts(nodes);
    const hosts = [{ host: "dc1.example.com", datacenterId: idInRedis, nodes: [], writers: [] }];
    return examine({ ...rest, table: { ...table, hosts } })
      .filter(({ check }) => check === "config/same-name").map(({ about, found }) =>
        `${about}: ${found}`
      );
  };
  assert.deepEqual(
    twins([at("n1", "a"), at("n2", "a"), at("n3", "b", "dc2.example.com")], "a"),
    [],
  );
  assert.deepEqual(twins([node("old"), at("n1", "a")]), []);
  assert.deepEqual(twins([at("n1", "a"), at("n2", "b")]), [
    "n2 (http://n2): its datacenter is another one than that of n1 (http://n1), and both have the " +
    "local host dc1.example.com",
  ]);
  assert.deepEqual(twins([at("n2", "b")], "a"), [
    "n2 (http://n2): its datacenter is another one than that of Redis 127.0.0.1:8102, and both " +
    "have the local host dc1.example.com",
  ]);
});
