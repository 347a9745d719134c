import assert from "node:assert/strict";
import { join } from "node:path";
import { backendsOf } from "./backends.ts";
import { InternalStore } from "./internal_store.ts";
import { emptyDatabase, preparedDatabase, withConnection } from "./sql/testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "./sql/testing/servers.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import type { SqlAddress } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";
import type { SqlPoolOptions } from "./database_pools.ts";
import type { StoresOptions } from "./stores.ts";
import { sqlServerOf } from "./database_pools.ts";
import { ALICE, contentOf, fill } from "./testing/filled_stores.ts";

// The commands and the statement are those of docs/databases.md.

/** Makes clients that have changed their rosters after the backup load them whole. */
const NEW_VERSIONS =
  "UPDATE rosters SET removed_version = version + 1000000, version = version + 1000000";

/** A program with its arguments, and the file that is its standard input or output. */
interface BackupCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly output?: string;
}

/** Commands that back a database up to a file, and restore the file into an empty database. */
interface BackupCommands {
  backUp(database: SqlAddress, file: string): BackupCommand;
  restore(database: SqlAddress, file: string): BackupCommand;
}

const COMMANDS: Readonly<Record<"pgsql" | "mysql", BackupCommands>> = {
  pgsql: {
    backUp: (address, file) => ({
      program: "pg_dump",
      args: ["--format=custom", `--file=${file}`, ...loginTo(address)],
      env: { PGPASSWORD: address.password.reveal() },
    }),
    restore: (address, file) => ({
      program: "pg_restore",
      args: [
        ...["--no-owner", "--exit-on-error", "--single-transaction"],
        ...[`--dbname=${address.database}`, ...loginTo(address).slice(0, -1), file],
      ],
      env: { PGPASSWORD: address.password.reveal() },
    }),
  },
  mysql: {
    backUp: (address, file) => ({
      program: "mysqldump",
      args: ["--single-transaction", "--no-tablespaces", "--hex-blob", ...ownerOf(address)],
      env: { MYSQL_PWD: address.password.reveal() },
      output: file,
    }),
    restore: (address, file) => ({
      program: "mysql",
      args: ownerOf(address),
      env: { MYSQL_PWD: address.password.reveal() },
      input: file,
    }),
  },
};

function loginTo({ host, port, username, database }: SqlAddress): readonly string[] {
  return [`--host=${host}`, `--port=${port}`, `--username=${username}`, database];
}

/** Returns arguments of the clients of MySQL and MariaDB for the owner of a database. */
function ownerOf({ host, port, username, database }: SqlAddress): readonly string[] {
  return [`--host=${host}`, `--port=${port}`, `--user=${username}`, database];
}

async function run({ program, args, env = {}, input, output }: BackupCommand): Promise<void> {
  const command = new Deno.Command(program, {
    args: [...args],
    env,
    stdin: input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const fed = input === undefined
    ? Promise.resolve()
    : Deno.open(input).then(({ readable }) => readable.pipeTo(command.stdin));
  const [result] = await Promise.all([command.output(), fed]);
  const errors = new TextDecoder().decode(result.stderr);
  assert.ok(result.success, `${program}: ${errors}`);
  assert.equal(errors, "", `${program} has nothing to say`);
  if (output !== undefined) await Deno.writeFile(output, result.stdout);
}

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "causeway-backup-" });
  try {
    await work(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

for (const kind of SERVER_KINDS) {
  const { driver } = kind;
  if (driver === "mssql") continue; // a double: docs/databases.md describes what its real server does
  const server = serverDuringTests(kind);

  Deno.test(`a backup of ${kind.name} is made while it is used, and restored whole`, () =>
    withDirectory(async (directory) => {
      const file = join(directory, "backup");
      const { address } = await preparedDatabase(server());
      const pool: SqlPoolOptions = { scope: "global", driver, address, bounds: {} };
      await using stores = new SqlStores(sqlServerDatabase(sqlServerOf("default", pool)));
      await fill(stores);
      const content = await contentOf(stores);
      await run(COMMANDS[driver].backUp(address, file));
      await stores.users("example.com").remove("user1"); // afterwards: the backup has the account

      const empty = await emptyDatabase(server());
      await run(COMMANDS[driver].restore(empty.address, file));
      const restored: SqlPoolOptions = { ...pool, address: empty.address };
      const options: StoresOptions = {
        internal: { path: join(directory, "store.sqlite") },
        pools: new Map([["default", restored]]),
        users: new Map(),
      };
      const [, backend] = backendsOf(options);
      assert.deepEqual((await backend!.check()).problems, []);
      assert.deepEqual(await backend!.plan(), [], "nothing to prepare");
      await using again = new SqlStores(sqlServerDatabase(sqlServerOf("default", restored)));
      assert.deepEqual(await contentOf(again), content);
      const rosters = again.rosters();
      const { version } = await rosters.read(ALICE);
      await withConnection(empty, (each) => each.execute(NEW_VERSIONS));
      const renewed = await rosters.read(ALICE);
      assert.ok(version > 0);
      assert.deepEqual(
        [renewed.version, renewed.removedVersion],
        [version + 1_000_000, version + 1_000_000],
      );
      await again.users("example.com").remove("user1");
      assert.equal(
        await again.users("example.com").exists("user1"),
        false,
        "and it can be changed",
      );
    }));
}

Deno.test("a backup of the built-in store is made while it is used, and restored whole", () =>
  withDirectory(async (directory) => {
    const [path, file] = [join(directory, "causeway.sqlite"), join(directory, "backup.sqlite")];
    await using stores = await InternalStore.open({ path });
    await fill(stores);
    const content = await contentOf(stores);
    await run({ program: "sqlite3", args: [path, `.backup '${file}'`] });
    await stores.users("example.com").remove("user1");
    await using again = await InternalStore.open({ path: file });
    assert.deepEqual(await contentOf(again), content);
  }));
