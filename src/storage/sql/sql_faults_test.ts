import assert from "node:assert/strict";
import { PATIENT } from "../testing/patient_bounds.ts";
import { conformanceArchived } from "../testing/archive_store_conformance.ts";
import { conformanceRequest } from "../testing/subscription_request_store_conformance.ts";
import { conformanceCredentials, keysOf } from "../testing/user_store_conformance.ts";
import { emptyDatabase, preparedDatabase, withConnection } from "./testing/databases.ts";
import { SERVER_KINDS, serverDuringTests, TestServer } from "./testing/servers.ts";
import type { PoolBounds } from "./connection_pool.ts";
import { checkSchema, planSchema, prepareSchema, readSchema } from "./schema.ts";
import { connectToServer, placeOf, sqlServerDatabase } from "./sql_server.ts";
import type { SqlServerOptions } from "./sql_server.ts";
import { SqlStores } from "./sql_stores.ts";

/** Times that are short for a test, and long for a database that answers. */
const IMPATIENT: PoolBounds = {
  workers: 2,
  maxWaiting: 4,
  waitTimeoutMs: 4_000,
  connectTimeoutMs: 4_000,
  statementTimeoutMs: 4_000,
};
/** Requests to a database that is gone. Each would wait for half a minute if it waited. */
const TRIES = 20;

for (const kind of SERVER_KINDS) {
  const server = serverDuringTests(kind);

  const prepared = async (bounds: PoolBounds = PATIENT): Promise<SqlServerOptions> => ({
    ...await preparedDatabase(server()),
    bounds,
  });
  const open = (options: SqlServerOptions) => new SqlStores(sqlServerDatabase(options));
  Deno.test(`${kind.name}: a database that is killed is reported at once, and used again when it is back`, async () => {
    await using own = await TestServer.start(kind);
    await using stores = open(await preparedDatabase(own));
    const users = stores.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    await own.kill();
    const startedMs = performance.now();
    for (let tries = 0; tries < TRIES; tries++) {
      await assert.rejects(users.credentials("alice"), {
        name: "CausewayError",
        code: "storage/unreachable",
        retryable: true,
      });
    }
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs < TRIES * 4_000, "nobody waits for a database that is gone");
    await own.launch();
    await until(() => users.exists("alice"));
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(1));
  });

  Deno.test(`${kind.name}: a database that stands still costs its requests a bounded time, and no more of them than the queue holds`, async () => {
    const options = await prepared(IMPATIENT);
    await using other = await TestServer.start(kind);
    await using elsewhere = open(await preparedDatabase(other));
    await using stores = open(options);
    const users = stores.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    const resume = server().suspend();
    try {
      const outcomes = await Promise.all(Array.from({ length: 12 }, async () => {
        try {
          await users.setPassword("alice", conformanceCredentials(2));
          return "done";
        } catch (thrown) {
          return String((thrown as { readonly code?: unknown }).code);
        }
      }));
      assert.ok(outcomes.filter((each) => each === "storage/pool-full").length >= 5, `${outcomes}`);
      for (const outcome of outcomes) {
        assert.match(outcome, /^storage\/(timeout|unreachable|pool-full)$/);
      }
      assert.equal(await elsewhere.users("example.com").exists("alice"), false);
    } finally {
      resume();
    }
    await until(() => users.exists("alice"));
    const credentials = await users.credentials("alice");
    const isWhole = [1, 2].some((seed) => {
      const { iterations } = conformanceCredentials(seed).sha256;
      return credentials?.sha256?.iterations === iterations &&
        credentials.sha1?.iterations === conformanceCredentials(seed).sha1.iterations;
    });
    assert.ok(isWhole, "a password that was changed without an answer is the old or the new one");
  });

  Deno.test(`${kind.name}: a row that another session keeps locked delays its own request alone`, async () => {
    const options = await prepared(IMPATIENT);
    await using stores = open(options);
    const users = stores.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    await users.add("bob", conformanceCredentials(1));
    const connection = await server().connect(options.address.database);
    try {
      await connection.execute(kind.engine.dialect.begin);
      await connection.execute(
        `UPDATE users SET sha1_iterations = 7 WHERE localpart = ${kind.text("alice")}`,
      );
      let isWaiting = true;
      const blocked = assert.rejects(users.setPassword("alice", conformanceCredentials(2)), {
        code: "storage/busy",
        retryable: true,
      }).finally(() => isWaiting = false);
      assert.equal(await users.exists("bob"), true);
      assert.ok(isWaiting, "bob's request has waited for alice's");
      await blocked;
    } finally {
      await connection.execute(kind.engine.dialect.rollback);
      await connection.close();
    }
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(1));
  });

  Deno.test(`${kind.name}: a failure in the middle of a transaction leaves nothing half-written`, async () => {
    const options = await prepared();
    await server().failInsertions(options.address.database, {
      table: "subscription_requests",
      only: { column: "contact", value: "full@example.com" },
    });
    await using stores = open(options);
    const requests = stores.subscriptionRequests();
    const keep = (contact: string) => ({
      kind: "keep" as const,
      request: conformanceRequest("alice@example.com", contact),
    });
    await assert.rejects(requests.change([keep("bob@example.com"), keep("full@example.com")]), {
      code: "storage/full",
      retryable: true,
      message: `Cannot change the subscription requests in ${placeOf(options)}: the disk is full`,
    });
    assert.equal(await requests.count(), 0);
    await requests.change([keep("bob@example.com")]);
    assert.equal(await requests.count(), 1);
  });

  Deno.test(`${kind.name}: a message that is too large fails by name, and leaves nothing of its batch`, async () => {
    const options = await prepared();
    await server().failInsertions(options.address.database, {
      table: "archive_messages",
      only: { column: "sequence", value: "2" },
      why: "too-large",
    });
    await using stores = open(options);
    const archives = stores.archives();
    const append = async (...sequences: readonly number[]) => {
      const messages = sequences.map((each) => conformanceArchived(each));
      return await archives.append(messages, messages[0]!.sentAtMs);
    };
    const { archive } = conformanceArchived(1);
    const ids = async () => {
      const page = await archives.read(archive, {}, { limit: 9, from: "start" });
      return page?.messages.map(({ sequence }) => sequence);
    };
    for (const batch of [[1, 2, 3], [2]]) {
      await assert.rejects(append(...batch), { code: "storage/value-too-large", retryable: false });
      assert.deepEqual(await ids(), []);
    }
    assert.deepEqual(await append(1, 3), ["stored", "stored"]);
    assert.deepEqual(await ids(), [1, 3]);
  });

  Deno.test(`${kind.name}: a session that is ended in the middle of a transaction leaves nothing half-written`, async () => {
    const options = await prepared({ statementTimeoutMs: 60_000 });
    const { database } = options.address;
    await using stores = open(options);
    const requests = stores.subscriptionRequests();
    const changes = Array.from({ length: 200 }, (_, i) => ({
      kind: "keep" as const,
      request: conformanceRequest(`user${i}@example.com`, "bob@example.com"),
    }));
    await requests.change([changes[100]!]);
    const [row] = await server().asRoot("SELECT id FROM subscription_requests", database);
    const holder = await server().connect(database);
    try {
      await holder.execute(kind.engine.dialect.begin);
      await holder.execute(kind.lockRow("subscription_requests", Number(row!["id"])));
      const changing = requests.change(changes).then(() => undefined, (thrown) => thrown);
      await until(async () => assert.ok(await isBlocked(database), "it has come to that row"));
      await server().endSessions(database);
      const thrown = await changing;
      assert.deepEqual([thrown?.code, thrown?.retryable], ["storage/unreachable", true]);
    } finally {
      await holder.execute(kind.engine.dialect.rollback);
      await holder.close();
    }
    assert.equal(await requests.count(), 1);
  });

  /** Returns whether a session waits for a row that another one has locked. */
  const isBlocked = async (database: string): Promise<boolean> => {
    // InnoDB renews this table only when nobody has read it for a tenth of a second.
    if (kind.driver === "mysql") await new Promise((resolve) => setTimeout(resolve, 300));
    const blocked = await server().asRoot(kind.blocked(database));
    return blocked.length > 0;
  };

  Deno.test(`${kind.name}: a read-only database is reported, and still reads`, async () => {
    const options = await prepared();
    const { database } = options.address;
    await using stores = open(options);
    const users = stores.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    const setReadOnly = async (isOn: boolean) => {
      await server().asRoot(kind.setReadOnly(database, isOn));
      await server().endSessions(database); // PostgreSQL's sessions keep what they began with
    };
    await setReadOnly(true);
    try {
      await assert.rejects(untilReached(() => users.remove("alice")), {
        code: "storage/read-only",
        message: `Cannot remove an account from ${placeOf(options)}: it is read-only`,
      });
      assert.equal(await users.exists("alice"), true);
    } finally {
      await setReadOnly(false);
    }
    assert.equal(await untilReached(() => users.remove("alice")), true);
  });

  Deno.test(`${kind.name}: wrong logins, databases and schemas have names`, async () => {
    const options = await emptyDatabase(server());
    const place = placeOf(options);
    const attempt = async (changed: Partial<SqlServerOptions["address"]>) => {
      await using stores = open({ ...options, address: { ...options.address, ...changed } });
      await stores.users("example.com").exists("alice");
    };
    await assert.rejects(
      attempt({ password: { reveal: () => "wrong" } }),
      (error: Error & { code: string }) => {
        assert.equal(error.code, "storage/denied");
        assert.ok(error.message.startsWith(`Cannot connect to ${place}: it denies access (`));
        assert.ok(!error.message.includes("wrong"), "no secret in a message");
        return true;
      },
    );
    await assert.rejects(attempt({ password: { reveal: () => "" } }), { code: "storage/denied" });
    await assert.rejects(attempt({ database: "absent" }), {
      // MySQL does not tell strangers.
      code: kind.driver === "mysql" ? "storage/denied" : "storage/no-database",
    });
    await assert.rejects(attempt({ port: 1 }), { code: "storage/unreachable" });
    await assert.rejects(attempt({}), {
      code: "storage/schema-missing",
      message: `Cannot use ${place}: its tables are missing; run \`causeway backends prepare\``,
    });
    await withConnection(options, (each) => each.execute("CREATE TABLE users (name INT)"));
    await assert.rejects(attempt({}), { code: "storage/schema-foreign" });
    await withConnection(options, (each) => each.execute("DROP TABLE users"));
    const { dialect } = kind.engine;
    await withConnection(options, (each) => prepareSchema(dialect, each, place));
    await attempt({});
    const execute = (sql: string) => withConnection(options, (each) => each.execute(sql));
    await execute("INSERT INTO causeway_schema VALUES (99, 'x', 1)");
    await attempt({}); // it only adds, as far as this program is told
    await execute("UPDATE causeway_schema_floor SET lowest = 99");
    await assert.rejects(attempt({}), { code: "storage/schema-too-new" });
  });

  Deno.test(`${kind.name}: processes that prepare a database at the same time take turns`, async () => {
    const options = await emptyDatabase(server());
    const { dialect } = kind.engine;
    const place = placeOf(options);
    const plans = await Promise.all(
      Array.from(
        { length: 4 },
        () => withConnection(options, (each) => prepareSchema(dialect, each, place)),
      ),
    );
    assert.equal(plans.filter(({ length }) => length > 0).length, 1);
    await withConnection(options, async (each) => {
      assert.deepEqual(planSchema(dialect, await readSchema(dialect, each), place), []);
      await checkSchema(dialect, each, place);
    });
  });

  Deno.test(`${kind.name}: a session that ends while it prepares a database is continued`, async () => {
    const options = await emptyDatabase(server());
    const { dialect } = kind.engine;
    const place = placeOf(options);
    const plan = await withConnection(
      options,
      async (each) => planSchema(dialect, await readSchema(dialect, each), place),
    );
    for (let count = 0; count < plan.length; count++) {
      const connection = await connectToServer(options);
      let left = count;
      const cut = {
        isOpen: true,
        execute: (sql: string) => {
          if (plan.includes(sql) && left-- === 0) throw new Error("cut");
          return connection.execute(sql);
        },
        close: () => connection.close(),
        destroy: () => connection.destroy(),
      };
      const outcome = await prepareSchema(dialect, cut, place).then(() => "done", String);
      connection.destroy();
      if (outcome === "done") break; // what was left was less than `count` statements
    }
    await untilReached(() =>
      withConnection(options, (each) => prepareSchema(dialect, each, place))
    );
    await withConnection(options, (each) => checkSchema(dialect, each, place));
  });
}

/** Repeats `ask` until it resolves, for a database that is starting. */
async function until(ask: () => Promise<unknown>): Promise<void> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    try {
      await ask();
      return;
    } catch (thrown) {
      if (performance.now() > endMs) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Repeats `ask` while its session has just been ended. */
async function untilReached<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1;; tries++) {
    try {
      return await ask();
    } catch (thrown) {
      const { code } = thrown as { readonly code?: unknown };
      if (code !== "storage/unreachable" || tries >= 100) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
