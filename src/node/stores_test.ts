import assert from "node:assert/strict";
import { findingsIn, parse, SOUND } from "../config/testing/config.ts";
import { MemoryLogger } from "../observe/mod.ts";
import { withPath } from "../storage/sql/testing/sqlite.ts";
import { openStores } from "./stores.ts";

/** Accounts in a database that nobody serves: port 1 of loopback. */
const UNREACHABLE = `[outgoing_pools.rdbms.default.connection]
url = "postgresql://edge@127.0.0.1:1/causeway"
[auth]
backend = "rdbms"
`;

function configAt(path: string, more = "") {
  const text = `${SOUND}[storage.internal]\npath = ${JSON.stringify(path)}\n${more}`;
  assert.deepEqual(findingsIn(text), []);
  return parse(text);
}

Deno.test("openStores() gives a node with the built-in store alone a secret that stays", () =>
  withPath(async (path) => {
    const secrets: Uint8Array[] = [];
    for (let opened = 0; opened < 2; opened++) {
      const { stores, enumerationSecret } = await openStores(configAt(path), new MemoryLogger());
      await stores.close();
      secrets.push(enumerationSecret);
    }
    assert.equal(secrets[0]!.length, 32);
    assert.deepEqual(secrets[0], secrets[1]);
  }));

Deno.test("openStores() does without a database that cannot be reached when it has the secret", () =>
  withPath(async (path) => {
    const log = new MemoryLogger();
    const config = configAt(path, `${UNREACHABLE}enumeration_secret = "sixteen letters!"\n`);
    const { stores, enumerationSecret } = await openStores(config, log);
    assert.equal(new TextDecoder().decode(enumerationSecret), "sixteen letters!");
    assert.deepEqual(log.entries.map(({ level, event }) => [level, event]), [
      ["warn", "storage.unreachable"],
    ]);
    await assert.rejects(stores.users("example.com").exists("alice"), {
      code: "storage/unreachable",
    });
    await stores.close();
  }));

Deno.test("openStores() refuses to start without the database that has the secret", () =>
  withPath(async (path) => {
    await assert.rejects(openStores(configAt(path, UNREACHABLE), new MemoryLogger()), {
      code: "storage/unreachable",
      message: /^Cannot connect to the database rdbms\.default \(PostgreSQL causeway at /,
    });
  }));
