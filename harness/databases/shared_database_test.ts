import assert from "node:assert/strict";
// @ts-types="@types/pg"
import pg from "pg";
import { join } from "node:path";
import { Run } from "../process/mod.ts";
import { DatabaseServer } from "./database_server.ts";
import { preparedDataPath } from "./prepared_data.ts";
import { MARIADB, MSSQL_DOUBLE, MYSQL, POSTGRESQL } from "./server_kinds.ts";
import type { SharedDatabase } from "./shared_database.ts";
import { startSharedDatabase } from "./shared_database.ts";

/** The connection that a node's configuration names. */
interface Connection {
  readonly driver: string;
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  readonly password: string;
}

function connectionOf(database: SharedDatabase): Connection {
  const { outgoing_pools: pools } = database.sections("store.sqlite") as unknown as {
    readonly outgoing_pools: {
      readonly rdbms: { readonly default: { readonly connection: Connection } };
    };
  };
  return pools.rdbms.default.connection;
}

async function accepts(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}

for (const kind of ["postgresql", "mariadb"] as const) {
  Deno.test(`startSharedDatabase() starts ${kind}, which keeps its port when it is killed`, async () => {
    await using run = await Run.start();
    let port: number;
    {
      await using database = await startSharedDatabase(kind, { run, nodes: 3 });
      assert.deepEqual(database.sections("store.sqlite")["auth"], { backend: "rdbms" });
      const connection = connectionOf(database);
      assert.equal(connection.driver, kind === "mariadb" ? "mysql" : "pgsql");
      port = connection.port;
      assert.match(database.description, new RegExp(`^(PostgreSQL|MariaDB) :${port}$`));
      assert.equal(await accepts(port), true);
      await database.kill();
      assert.equal(await accepts(port), false);
      await database.restart();
      assert.equal(await accepts(port), true);
    }
    assert.equal(await accepts(port), false);
  });
}

Deno.test("startSharedDatabase() runs statements of the first user before it answers", async () => {
  await using run = await Run.start();
  const checkpoint = async (statements: readonly string[]) => {
    await using database = await startSharedDatabase("postgresql", { run, nodes: 1, statements });
    const { username: user, ...place } = connectionOf(database);
    const client = new pg.Client({ ...place, user });
    await client.connect();
    try {
      await client.query("CHECKPOINT");
    } finally {
      await client.end();
    }
  };
  await checkpoint(["GRANT pg_checkpoint TO causeway"]);
  await assert.rejects(checkpoint([]), /checkpoint/i);
});

Deno.test("startSharedDatabase() takes PostgreSQL by itself where it is installed", async () => {
  await using run = await Run.start();
  await using database = await startSharedDatabase("auto", { run, nodes: 1 });
  assert.equal(database.kind, "postgresql");
});

Deno.test("startSharedDatabase() gives all nodes one file for the built-in store", async () => {
  await using run = await Run.start();
  await using database = await startSharedDatabase("internal", { run, nodes: 2 });
  assert.deepEqual(database.sections("one.sqlite"), database.sections("other.sqlite"));
  assert.deepEqual(database.sections("one.sqlite"), {
    storage: { internal: { path: run.path("shared.sqlite") } },
  });
  await assert.rejects(database.kill(), TypeError);
});

for (const kind of [POSTGRESQL, MARIADB]) {
  Deno.test(`DatabaseServer of ${kind.name} leaves no file behind, and its log in a run that is kept`, async () => {
    const run = await Run.start();
    try {
      const server = await DatabaseServer.start(kind, { run });
      assert.ok(Deno.statSync(server.directory).isDirectory);
      await run.keep();
      await server[Symbol.asyncDispose]();
      assert.throws(() => Deno.statSync(server.directory), Deno.errors.NotFound);
      const log = await Deno.readTextFile(run.path(`${kind.name.toLowerCase()}.log`));
      assert.ok(log.includes(kind.readyText), log);
    } finally {
      await run[Symbol.asyncDispose]();
      await Deno.remove(run.directory, { recursive: true });
    }
  });
  Deno.test(`DatabaseServer of ${kind.name} says why it does not start`, async () => {
    const starting = DatabaseServer.start(kind, { args: ["--no-such-option=1"] });
    await assert.rejects(starting, /does not start:[^]*no-such-option|does not start:[^]*no.such/);
  });
}

for (const kind of [POSTGRESQL, MARIADB, ...(MYSQL.isThere() ? [MYSQL] : [])]) {
  Deno.test(`DatabaseServer of ${kind.name} copies the data of the first one, as they were before its start`, async () => {
    await using first = await DatabaseServer.start(kind);
    await Deno.writeTextFile(join(first.directory, "data", "later"), "");
    await using second = await DatabaseServer.start(kind);
    const kept = preparedDataPath(kind)!;
    const names = (directory: string) =>
      new Set([...Deno.readDirSync(directory)].map((each) => each.name));
    const [before, after] = [names(kept), names(join(second.directory, "data"))];
    assert.ok(before.isSubsetOf(names(join(first.directory, "data"))));
    assert.ok(before.size > 4);
    assert.ok(!after.has("later"));
    // A running server has files that say so.
    for (const name of ["postmaster.pid", "ibtmp1", "later"]) assert.ok(!before.has(name), name);
    const uidOf = (path: string) => Deno.statSync(path).uid;
    assert.equal(uidOf(join(second.directory, "data")), uidOf(second.directory));
  });
}

Deno.test("preparedDataPath() differs by what is made, and is missing for what each server makes itself", () => {
  const { prepare } = POSTGRESQL;
  const other = {
    ...POSTGRESQL,
    prepare: (directory: string) => [...prepare(directory), ["true"]] as const,
  };
  assert.equal(preparedDataPath(POSTGRESQL), preparedDataPath({ ...POSTGRESQL }));
  assert.notEqual(preparedDataPath(POSTGRESQL), preparedDataPath(other));
  assert.equal(preparedDataPath(MSSQL_DOUBLE), undefined);
});
