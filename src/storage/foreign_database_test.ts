import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ForeignDatabase } from "./foreign_database.ts";
import { SERVER_KINDS, TestServer } from "./sql/testing/servers.ts";

const LIMITS = { connectTimeoutMs: 300, statementTimeoutMs: 10_000 };

/** Returns the outcome of connecting to a port with a driver. */
async function outcomeOf(driver: "pgsql" | "mysql", port: number, isEncrypted = false) {
  const address = {
    host: isEncrypted && driver === "mysql" ? "localhost" : "127.0.0.1",
    port,
    database: "there",
    username: "mongooseim",
    password: { reveal: () => "secret" },
    tls: isEncrypted ? {} : undefined,
  };
  try {
    await using _ = await ForeignDatabase.open(driver, address, LIMITS);
    return "connected";
  } catch (thrown) {
    assert.ok(thrown instanceof Error && "code" in thrown);
    assert.doesNotMatch(thrown.message, /secret/);
    return `${thrown.code}: ${/: (.*)$/.exec(thrown.message)![1]}`;
  }
}

/** Listens, and answers each connection and each chunk with a text. */
function answering(greeting: string, answer: string) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const say = (connection: Deno.Conn, text: string) =>
    text === "" ? undefined : connection.write(new TextEncoder().encode(text));
  const talk = async (connection: Deno.Conn) => {
    try {
      await say(connection, greeting);
      for await (const chunk of connection.readable) {
        // Lines alone have an answer.
        if (chunk.includes(10)) await say(connection, answer);
      }
    } catch {
      // The client has gone.
    }
  };
  const all: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const connection of listener) all.push(talk(connection));
  })();
  return {
    port: listener.addr.port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      await Promise.all(all);
    },
  };
}

Deno.test("ForeignDatabase.open() names a server of another kind that answers", async () => {
  await using redis = answering("", "-ERR unknown command\r\n");
  await using ssh = answering("SSH-2.0-OpenSSH_9.2p1\r\n", "");
  await using silent = answering("", "");
  const web = createServer((_, response) => response.end());
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  const { port: http } = web.address() as AddressInfo;
  for (const driver of ["pgsql", "mysql"] as const) {
    const wrong = (server: string) => `storage/wrong-server: ${server} server answers there`;
    assert.equal(await outcomeOf(driver, redis.port), wrong("a Redis"));
    assert.equal(await outcomeOf(driver, ssh.port), wrong("an SSH"));
    assert.equal(await outcomeOf(driver, http), wrong("an HTTP"));
    assert.match(await outcomeOf(driver, silent.port), /^storage\/unreachable: it cannot be reach/);
  }
  web.closeAllConnections();
  await new Promise((resolve) => web.close(resolve));
});

for (const kind of SERVER_KINDS.filter(({ driver }) => driver !== "mssql")) {
  Deno.test(`ForeignDatabase.open() names ${kind.name} where another engine is expected`, async () => {
    await using server = await TestServer.start(kind);
    const { port } = await server.database();
    const other = kind.driver === "pgsql" ? "mysql" : "pgsql";
    const name = kind.driver === "pgsql" ? "a PostgreSQL" : "a MySQL or MariaDB";
    const expected = `storage/wrong-server: ${name} server answers there`;
    assert.equal(await outcomeOf(other, port), expected);
    assert.equal(await outcomeOf(other, port, true), expected);
    assert.match(await outcomeOf(kind.driver as "pgsql", port), /^storage\/denied: /);
  });
}
