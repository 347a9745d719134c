import assert from "node:assert/strict";
import { conformanceRequest } from "../../testing/subscription_request_store_conformance.ts";
import { conformanceCredentials } from "../../testing/user_store_conformance.ts";
import { planSchema, statementsOf } from "../schema.ts";
import type { SqlConnection, SqlRow } from "../sql_connection.ts";
import { SqlDatabase } from "../sql_database.ts";
import { SqlStores } from "../sql_stores.ts";
import { MSSQL } from "./mssql.ts";

/** A connection that notes the statements and answers with rows of the test's. */
class RecordingConnection implements SqlConnection {
  readonly isOpen = true;
  readonly statements: string[] = [];
  readonly values: unknown[][] = [];
  answers: (readonly SqlRow[])[] = [];

  execute(sql: string, values: readonly unknown[] = []) {
    this.statements.push(sql);
    this.values.push([...values]);
    return Promise.resolve({ rows: this.answers.shift() ?? [], affectedRows: 1 });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  destroy(): void {}
}

function open() {
  const connection = new RecordingConnection();
  const stores = new SqlStores(
    new SqlDatabase({
      dialect: MSSQL.dialect,
      place: "SQL Server",
      connect: () => Promise.resolve(connection),
      bounds: { workers: 1, statementTimeoutMs: Infinity },
    }),
  );
  return { connection, stores, [Symbol.asyncDispose]: () => stores.close() };
}

Deno.test("the accounts' statements for SQL Server", async () => {
  await using fixture = open();
  const users = fixture.stores.users("example.com");
  const { connection } = fixture;
  await users.add("alice", conformanceCredentials(1));
  await users.remove("alice");
  await users.exists("alice");
  connection.answers = [[{
    sha1_iterations: 1,
    sha1_salt_bytes: 16,
    sha256_iterations: null,
    sha256_salt_bytes: null,
    shares_salt: 0,
    accounts: 2,
  }]];
  assert.deepEqual(await users.credentialShapes(), [{
    shape: { sha1: { iterations: 1, saltBytes: 16 }, sha256: undefined, sharesSalt: false },
    accounts: 2,
  }]);
  connection.answers = [[{ localpart: new TextEncoder().encode("ä") }]];
  assert.deepEqual(await users.list({ limit: 5 }), ["ä"]);
  const secrets = ["sha1", "sha256"].flatMap((hash) =>
    ["salt", "iterations", "stored_key", "server_key"].map((part) => `"${hash}_${part}"`)
  ).join(", ");
  const shape = '"sha1_iterations", "sha256_iterations", "sha1_salt_bytes", "sha256_salt_bytes", ' +
    '"shares_salt"';
  assert.deepEqual(connection.statements, [
    `insert into "users" ("account_key", "domainpart", "localpart", ${secrets}, "creation") ` +
    `values (${Array.from({ length: 12 }, (_, i) => `@${i + 1}`).join(", ")})`,
    'delete from "users" where "account_key" = @1',
    'select "account_key" from "users" where "account_key" = @1',
    `select ${shape}, count(*) as "accounts" from (select top(10000) "sha1_iterations", ` +
    '"sha256_iterations", datalength("sha1_salt") as "sha1_salt_bytes", ' +
    'datalength("sha256_salt") as "sha256_salt_bytes", case when "sha1_salt" = "sha256_salt" ' +
    'then 1 else 0 end as "shares_salt" from "users" where "domainpart" = @1) as "sample" ' +
    `group by ${shape}`,
    'select top(5) "localpart" from "users" where "domainpart" = @1 and "localpart" > @2 ' +
    'order by "localpart"',
  ]);
  assert.deepEqual(connection.values[4], [
    new TextEncoder().encode("example.com"),
    new Uint8Array(),
  ]);
});

Deno.test("SqlUserStore.credentials() reads one row from SQL Server", async () => {
  await using fixture = open();
  fixture.connection.answers = [[]];
  await assert.rejects(fixture.stores.users("example.com").credentials("alice"), {
    code: "storage/corrupt",
  });
  assert.match(
    fixture.connection.statements[0]!,
    /^select top\(1\) "account_key", .* from "users" where "account_key" >= @1 order by "account_key"$/,
  );
});

Deno.test("the requests' statements for SQL Server", async () => {
  await using fixture = open();
  const { connection } = fixture;
  connection.answers = [[], [], [], [], [{ requests: 1, oldest: "7" }], [{ requests: "1" }]];
  const request = conformanceRequest("alice@example.com", "bob@example.com");
  await fixture.stores.subscriptionRequests({ maxPerSender: 3 }).change([
    { kind: "keep", request },
  ]);
  assert.deepEqual(connection.statements, [
    "BEGIN TRANSACTION",
    'delete from "subscription_requests" where "pair_key" = @1',
    'insert into "subscription_requests" ("pair_key", "contact_key", "sender_key", "requester", ' +
    '"contact", "sender", "stanza", "origin", "process", "sequence") ' +
    "values (@1, @2, @3, @4, @5, @6, @7, @8, @9, @10)",
    'select top(4) "id" from "subscription_requests" where "sender_key" = @1 order by "id" desc',
    'select count(*) as "requests", min("id") as "oldest" from "subscription_requests" ' +
    'where "contact_key" = @1 group by "sender_key"',
    'select count(*) as "requests" from "subscription_requests"',
    "COMMIT TRANSACTION",
  ]);
});

Deno.test("the private storage's statements for SQL Server", async () => {
  await using fixture = open();
  const { connection } = fixture;
  const store = fixture.stores.privateStorage("example.com");
  const name = { namespace: "storage:bookmarks", name: "storage" };
  const bounds = { maxElements: 1, maxBytes: 10 };
  assert.equal(await store.change("alice", [{ ...name, xml: "x" }], bounds), "done");
  connection.answers = [[{ content: new TextEncoder().encode("ä") }]];
  assert.equal(await store.read("alice", name), "ä");
  const expecting = { ...name, xml: undefined, expected: "x" };
  assert.equal(await store.change("alice", [expecting], bounds), "changed");
  assert.deepEqual(connection.statements, [
    "BEGIN TRANSACTION",
    'select "element_key", "content_bytes" from "private_storage" where "account_key" = @1',
    'delete from "private_storage" where "account_key" = @1 and "element_key" = @2',
    'insert into "private_storage" ("account_key", "element_key", "content", "content_bytes") ' +
    "values (@1, @2, @3, @4)",
    "COMMIT TRANSACTION",
    'select "content" from "private_storage" where "account_key" = @1 and "element_key" = @2',
    "BEGIN TRANSACTION",
    'update "private_storage" set "content_bytes" = "content_bytes" where "account_key" = @1 ' +
    'and "element_key" = @2',
    'select "content" from "private_storage" where "account_key" = @1 and "element_key" = @2',
    "COMMIT TRANSACTION",
  ]);
});

Deno.test("the schema for SQL Server is planned in statements of its own", () => {
  const state = {
    applied: [],
    tables: new Set<string>(),
    earlierDone: undefined,
    lowest: undefined,
  };
  const plan = planSchema(MSSQL.dialect, state, "SQL Server");
  assert.match(plan[0]!, /^IF OBJECT_ID\(N'causeway_schema', N'U'\) IS NULL CREATE TABLE/);
  let statements = 1;
  for (const file of MSSQL.dialect.schema.slice(1)) statements += 1 + statementsOf(file).length + 1;
  assert.equal(plan.length, statements);
  for (const statement of plan) assert.ok(!statement.includes(";"), statement);
});

Deno.test("MSSQL.failureOf() names errors by their number", () => {
  const named = (number: number) =>
    MSSQL.dialect.failureOf(Object.assign(new Error("x"), { number }));
  for (const number of [511, 2628, 8152]) assert.equal(named(number), "value-too-large");
  assert.equal(named(2627), "constraint");
  assert.equal(named(1205), "conflict");
  assert.equal(named(3906), "read-only");
  assert.equal(named(1105), "full");
  assert.equal(named(18456), "denied");
  assert.equal(named(40197), "unreachable");
  assert.equal(named(976), "unreachable");
  assert.equal(named(701), "overloaded");
  assert.equal(named(50000), undefined);
  const refused = Object.assign(new Error("x"), { code: "ECONNREFUSED" });
  assert.equal(MSSQL.dialect.failureOf(refused), "unreachable");
});
