import assert from "node:assert/strict";
import type { OfflineStore } from "../storage/mod.ts";
import { RiakFixture } from "../storage/riak/testing/riak.ts";
import { SqlStores } from "../storage/sql/sql_stores.ts";
import { sqlServerDatabase } from "../storage/sql/sql_server.ts";
import { preparedDatabase } from "../storage/sql/testing/databases.ts";
import { SERVER_KINDS, TestServer } from "../storage/sql/testing/servers.ts";
import { BareJid, parseJid } from "../xmpp/mod.ts";
import { AccountLock } from "./account_lock.ts";
import { Destination, HOST, NOW } from "./testing/destination.ts";

const ALICE = parseJid("alice@example.com");

/** Opens an empty backend, whose stores two imports use. */
interface Backend extends AsyncDisposable {
  offlineMessages(): OfflineStore;
}

async function builtIn(): Promise<Backend> {
  const destination = await Destination.open();
  return {
    offlineMessages: () => destination.store.offlineMessages(HOST),
    [Symbol.asyncDispose]: () => destination[Symbol.asyncDispose](),
  };
}

async function riak(): Promise<Backend> {
  const fixture = await RiakFixture.open();
  return {
    offlineMessages: () => fixture.either().offlineMessages(HOST),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

async function sql(kind: (typeof SERVER_KINDS)[number]): Promise<Backend> {
  const server = await TestServer.start(kind);
  const stores = new SqlStores(sqlServerDatabase(await preparedDatabase(server)));
  return {
    offlineMessages: () => stores.offlineMessages(HOST),
    async [Symbol.asyncDispose]() {
      await stores.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const BACKENDS: readonly (readonly [name: string, open: () => Promise<Backend>])[] = [
  ["the built-in store", builtIn],
  ["Riak (a double)", riak],
  ...SERVER_KINDS.map((kind) => [kind.name, () => sql(kind)] as const),
];

for (const [name, open] of BACKENDS) {
  Deno.test(`AccountLock.take() gives one of many imports at once the lock, in ${name}`, async () => {
    await using backend = await open();
    assert.ok(ALICE instanceof BareJid);
    const take = (importId: string, jid: BareJid = ALICE) =>
      AccountLock.take(backend.offlineMessages(), jid, { importId, nowMs: NOW });
    const ids = ["a", "b", "c", "d"];
    const locks = await Promise.all(ids.map((id) => take(id)));
    const held = locks.filter((lock) => lock !== undefined);
    assert.equal(held.length, 1);
    const holder = ids[locks.indexOf(held[0])]!;
    assert.ok(await take(holder), "it keeps the lock when it is continued");
    const other = ids.find((id) => id !== holder)!;
    assert.equal(await take(other), undefined);
    assert.deepEqual(await backend.offlineMessages().all("alice"), []);
    await held[0]!.release();
    const next = await take(other);
    assert.ok(next, "it was given up");
    assert.equal(await held[0]!.renew(), false);
    await held[0]!.release();
    assert.ok(await next.renew(), "nobody gives up another's lock");
  });
}
