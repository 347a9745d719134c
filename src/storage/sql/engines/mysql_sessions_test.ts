import assert from "node:assert/strict";
import { conformanceArchived } from "../../testing/archive_store_conformance.ts";
import { conformanceCredentials, keysOf } from "../../testing/user_store_conformance.ts";
import { preparedDatabase, withConnection } from "../testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "../testing/servers.ts";
import { connectToServer, sqlServerDatabase } from "../sql_server.ts";
import { SqlStores } from "../sql_stores.ts";

const NOW_MS = 1_700_000_000_000;

/** More different statements than one connection keeps prepared. */
const MANY = 250;

for (const kind of SERVER_KINDS.filter(({ driver }) => driver === "mysql")) {
  const server = serverDuringTests(kind);

  const variable = async (sql: string): Promise<number> => {
    const [row] = await server().asRoot(sql);
    return Number(row!["Value"]);
  };

  Deno.test(`${kind.name}: what a server gives to new sessions changes nothing of ours`, async () => {
    const defaults = [
      ["autocommit", "0", "1"],
      ["completion_type", "'CHAIN'", "'NO_CHAIN'"],
      ["sql_safe_updates", "1", "0"],
      ["sql_select_limit", "1", "18446744073709551615"],
      ["max_join_size", "1", "18446744073709551615"],
      ["sql_big_selects", "0", "1"],
      ["sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "''"],
    ] as const;
    const set = async (place: 1 | 2) => {
      const all = defaults.map((each) => `GLOBAL ${each[0]} = ${each[place]}`);
      await server().asRoot(`SET ${all.join(", ")}`);
    };
    await set(1);
    try {
      const options = await preparedDatabase(server());
      {
        await using stores = new SqlStores(sqlServerDatabase(options));
        const messages = [1, 2, 3].map((each) => conformanceArchived(each));
        await stores.archives().append(messages, NOW_MS);
        await stores.users("example.com").add("älice", conformanceCredentials(1));
      }
      await using again = new SqlStores(sqlServerDatabase(options));
      const users = again.users("example.com");
      assert.deepEqual(await keysOf(users, "älice"), conformanceCredentials(1));
      const { archive } = conformanceArchived(1);
      const page = await again.archives().read(archive, {}, { limit: 9, from: "start" });
      assert.equal(page?.messages.length, 3);
    } finally {
      await set(2);
    }
  });

  Deno.test(`${kind.name}: a connection that is found lost by a statement is used no more`, async () => {
    const options = await preparedDatabase(server());
    const connection = await connectToServer(options);
    try {
      const [row] = (await connection.execute("SELECT CONNECTION_ID() AS id")).rows;
      // The end of the session arrives while nobody reads. The next statement is too long to be sent
      // before the server refuses it.
      const { host, username } = server().rootAddress;
      const login = ["--no-defaults", `--socket=${host}`, `--user=${username}`];
      const killing = new Deno.Command("mysql", {
        args: [...login, "-e", kind.endSession(Number(row!["id"]))],
      }).outputSync();
      assert.ok(killing.success, new TextDecoder().decode(killing.stderr));
      await assert.rejects(connection.execute(`SELECT '${"x".repeat(12_000_000)}'`));
      assert.equal(connection.isOpen, false);
    } finally {
      connection.destroy();
    }
  });

  Deno.test(`${kind.name}: a connection keeps a bounded number of statements prepared`, async () => {
    const count = () => variable("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
    const before = await count();
    await withConnection(await preparedDatabase(server()), async (connection) => {
      for (let length = 1; length <= MANY; length++) {
        const list = Array.from({ length }, () => "?").join(", ");
        const values = Array.from({ length }, (_, i) => i);
        const { rows } = await connection.execute(`SELECT ${length} IN (${list}) AS found`, values);
        assert.equal(Number(rows[0]!["found"]), 0);
      }
      const kept = await count() - before;
      assert.ok(kept > MANY / 4 && kept < MANY, `${kept}`);
    });
  });

  Deno.test(`${kind.name}: a server that prepares no more statements still executes them`, async () => {
    const most = await variable("SHOW GLOBAL VARIABLES LIKE 'max_prepared_stmt_count'");
    await server().asRoot("SET GLOBAL max_prepared_stmt_count = 0");
    try {
      const connection = await connectToServer(await preparedDatabase(server()));
      try {
        const bytes = new Uint8Array([0, 39, 92, 128, 255]);
        const text = `'"\\\0ß😀?`;
        const { rows } = await connection.execute(
          "SELECT ? AS text, HEX(?) AS bytes, ? + 1 AS number, ? IS NULL AS isNull",
          [text, bytes, 41, null],
        );
        const [row] = rows;
        assert.equal(row!["text"], text);
        assert.equal(row!["bytes"], "00275C80FF");
        assert.equal(Number(row!["number"]), 42);
        assert.equal(Number(row!["isNull"]), 1);
      } finally {
        await connection.close();
      }
    } finally {
      await server().asRoot(`SET GLOBAL max_prepared_stmt_count = ${most}`);
    }
  });
}
