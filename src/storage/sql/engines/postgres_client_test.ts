import assert from "node:assert/strict";
import { Socket } from "node:net";
// @ts-types="@types/pg"
import pg from "pg";
import { emptyDatabase } from "../testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "../testing/servers.ts";
import { PostgresClient } from "./postgres_client.ts";

const postgres = SERVER_KINDS.find(({ engine }) => engine.dialect.name === "pgsql")!; // one of them
const server = serverDuringTests(postgres);

/** A socket that notes the type of each message that is written to it. */
class NotingSocket extends Socket {
  readonly #types: string[] = [];

  /** Returns the types of the messages since the last call. */
  taken(): string {
    return this.#types.splice(0).join("");
  }

  override _writev(
    chunks: { chunk: Uint8Array; encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void,
  ): void {
    for (const { chunk } of chunks) this.#types.push(String.fromCharCode(chunk[0]!));
    super._writev!(chunks, callback);
  }
}

/** Runs `work` with a client, and a function that returns the types of the messages it has sent since. */
async function withClient(
  work: (client: PostgresClient, sent: () => string) => Promise<void>,
): Promise<void> {
  const { address } = await emptyDatabase(server());
  const { host, port, database, username } = address;
  const socket = new NotingSocket();
  const client = new PostgresClient({
    host,
    port,
    database,
    user: username,
    password: address.password.reveal(),
    stream: () => socket,
  });
  await client.connect();
  try {
    await work(client, () => socket.taken());
  } finally {
    await client.end();
  }
}

const STATEMENT = {
  text: "SELECT i AS number, NULLIF('text ' || i, 'text 2') AS text " +
    "FROM generate_series(1, $1::INT) AS i",
  name: "series",
};

Deno.test("PostgresClient.run() asks for the columns of a prepared statement once", async () => {
  await withClient(async (client, sent) => {
    sent();
    const ask = async (count: number) => {
      const { rows, command, rowCount } = await client.run({ ...STATEMENT, values: [count] });
      assert.deepEqual([command, rowCount], ["SELECT", count]);
      return rows.map(({ number, text }) => [number, text]);
    };
    assert.deepEqual(await ask(2), [[1, "text 1"], [2, null]]);
    assert.equal(sent(), "PBDES", "Parse, Bind, Describe, Execute, Sync");
    assert.deepEqual(await ask(3), [[1, "text 1"], [2, null], [3, "text 3"]]);
    assert.equal(sent(), "BES");
    assert.deepEqual(await ask(0), []);
    const unnamed = await client.run({ text: "SELECT $1::TEXT AS other", values: ["x"] });
    assert.deepEqual(unnamed.rows, [{ other: "x" }]);
    assert.equal(sent(), "BESPBDES");
    assert.deepEqual(await ask(1), [[1, "text 1"]]);
  });
});

Deno.test("PostgresClient.run() asks again after an execution that told no columns", async () => {
  await withClient(async (client, sent) => {
    const part = (by: unknown) =>
      client.run({ text: "SELECT 10 / $1::INT AS part", name: "part", values: [by] });
    await assert.rejects(part("x"), { code: "22P02" }); // it is prepared, but was not bound
    sent();
    for (const messages of ["BDES", "BES"]) {
      assert.deepEqual((await part(5)).rows.map((row) => row["part"]), [2]);
      assert.equal(sent(), messages);
    }
    await assert.rejects(part(0), { code: "22012" });
    assert.deepEqual((await part(2)).rows.map((row) => row["part"]), [5]);
  });
});

Deno.test("PostgresClient.run() fails when a value cannot be read, and goes on", async () => {
  const { getTypeParser, setTypeParser, builtins: { BOOL } } = pg.types;
  const read = getTypeParser(BOOL);
  await withClient(async (client) => {
    setTypeParser(BOOL, () => {
      throw new RangeError("Cannot read it");
    });
    try {
      const text = "SELECT TRUE AS flag FROM generate_series(1, 3)";
      await assert.rejects(client.run({ text }), RangeError);
    } finally {
      setTypeParser(BOOL, read);
    }
    assert.deepEqual((await client.run({ text: "SELECT TRUE AS flag" })).rows, [{ flag: true }]);
  });
});
