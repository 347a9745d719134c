import assert from "node:assert/strict";
import { AnswerCheck } from "../../admin/testing/answer_check.ts";
import { sampleApp, sampleDeps } from "../../admin/testing/sample_app.ts";
import { sampleSource } from "../../admin/testing/sample_source.ts";
import { parseConfig } from "../../config/mod.ts";
import type { DatabaseState } from "../../storage/mod.ts";
import { certificatesOf, configurationOf, databasesOf } from "./parts_view.ts";

const TEXT = `
hosts = ["example.com", "dc1.example.com"]
[listen.admin]
token = "hidden-token"
tokens = [{ name = "ops", role = "act", token = "hidden-ops" }]
[[listen.component]]
domains = [{ name = "echo.example.com", secret = "hidden-component" }]
[auth]
enumeration_secret = "hidden-enumeration"
backend = "rdbms"
[outgoing_pools.rdbms.default]
scope = "global"
[outgoing_pools.rdbms.default.connection]
driver = "pgsql"
host = "127.0.0.1"
database = "causeway"
username = "causeway"
password = "hidden-database"
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
[modules.mod_global_distrib.connections]
endpoints = [{ host = "127.0.0.1", port = 5555 }]
tls_opts = false
[modules.mod_global_distrib.redis]
password = "hidden-redis"
`;

Deno.test("configurationOf() shows every option, and no secret, whatever holds it", () => {
  const config = parseConfig(TEXT, {
    file: "/etc/causeway/causeway.toml",
    env: () => undefined,
    readFile: () => "",
    hostname: () => "node1",
  });
  const { file, values, notes } = configurationOf(config);
  const text = JSON.stringify(values);
  assert.equal(file, "/etc/causeway/causeway.toml");
  assert.ok(Array.isArray(notes));
  assert.ok(!text.includes("hidden-"), text);
  assert.ok(text.includes('"globalHost":"example.com"'));
  const { storage, listen } = values as {
    storage: { pools: { default: { address: { password: string; username: string } } } };
    listen: { admin: { tokens: readonly object[] } };
  };
  assert.deepEqual(storage.pools.default.address.password, "[secret]");
  assert.deepEqual(storage.pools.default.address.username, "causeway");
  assert.deepEqual(listen.admin.tokens, [{ name: "ops", role: "act", token: "[secret]" }]);
});

Deno.test("certificatesOf() counts whole days, lists each file once, and the first to end first", () => {
  const DAY_MS = 86_400_000;
  const inUse = [
    { files: { certfile: "b.pem" }, names: ["b.example.com"], expiresAtMs: 30 * DAY_MS },
    { files: { certfile: "a.pem", cafile: "ca.pem" }, names: [], expiresAtMs: 13.5 * DAY_MS },
    { files: { certfile: "b.pem" }, names: ["b.example.com"], expiresAtMs: 30 * DAY_MS },
    { files: { certfile: "c.pem" }, names: [], expiresAtMs: -0.5 * DAY_MS },
    // The same file for links, which name authorities, and for clients.
    { files: { certfile: "a.pem" }, names: [], expiresAtMs: 13.5 * DAY_MS },
  ];
  assert.deepEqual(
    certificatesOf(inUse, 0).map(({ certfile, cafile, daysLeft, isExpiringSoon }) => [
      certfile,
      cafile,
      daysLeft,
      isExpiringSoon,
    ]),
    [
      ["c.pem", undefined, -1, true],
      ["a.pem", "ca.pem", 13, true],
      ["b.pem", undefined, 30, false],
    ],
  );
});

Deno.test("databasesOf() puts Redis first, and says why a database is down", () => {
  const figures = { connections: 0, idle: 0, waiting: 4, maxConnections: 10, maxWaiting: 1000 };
  const databases = databasesOf(
    [{
      pool: "rdbms.default",
      kind: "pgsql",
      place: "the database rdbms.default",
      ...figures,
      lastFailure: new Error("connection refused"),
    }],
    { status: "degraded", reason: "no answer", redis: "127.0.0.1:6379" },
  );
  assert.deepEqual(databases, [
    { pool: "redis", kind: "redis", place: "127.0.0.1:6379", state: "down", reason: "no answer" },
    {
      pool: "rdbms.default",
      kind: "pgsql",
      place: "the database rdbms.default",
      ...figures,
      state: "down",
      reason: "connection refused",
    },
  ]);
});

/** All kinds, complete by its type. */
const KINDS: Readonly<Record<DatabaseState["kind"], true>> = {
  sqlite: true,
  pgsql: true,
  mysql: true,
  mssql: true,
  ldap: true,
  elasticsearch: true,
  cassandra: true,
  riak: true,
};

Deno.test("GET /api/v1/databases shows each kind of database as the document describes it", async () => {
  const states = (Object.keys(KINDS) as DatabaseState["kind"][]).map((kind): DatabaseState => ({
    pool: `${kind}.default`,
    kind,
    place: `the database ${kind}.default`,
    schemaVersion: 7,
    ...{ connections: 1, idle: 1, waiting: 0, maxConnections: 10, maxWaiting: 1000 },
    lastFailure: undefined,
  }));
  const source = sampleSource({
    databases: () =>
      Promise.resolve(
        databasesOf(states, { status: "up", reason: undefined, redis: "127.0.0.1:6379" }),
      ),
  });
  const { app } = sampleApp(sampleDeps({ source }));
  const check = new AnswerCheck(await (await app.request("/openapi.json")).json());
  const response = await app.request("/api/v1/databases");
  const body = await response.json();
  check.check("GET", "/api/v1/databases", { status: response.status, body });
  assert.deepEqual(
    body.items.map(({ kind }: { kind: string }) => kind),
    ["redis", ...Object.keys(KINDS)],
  );
});
