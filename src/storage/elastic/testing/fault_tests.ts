import assert from "node:assert/strict";
import { join } from "node:path";
import { SNAPSHOTS } from "../../../../harness/databases/mod.ts";
import type { CancelTimer } from "../../../base/mod.ts";
import { CausewayError, SystemClock } from "../../../base/mod.ts";
import type { ArchiveStore, StoredMessage } from "../../archive_store.ts";
import { conformanceArchived } from "../../testing/archive_store_conformance.ts";
import type { PoolBounds } from "../../sql/connection_pool.ts";
import { finish, giveUp, reserve, stateOf } from "../archive_head.ts";
import { ArchiveHeads } from "../archive_heads.ts";
import { ELASTIC } from "../elastic_backend.ts";
import { messageDocumentId, placeOf } from "../elastic_documents.ts";
import { IndexClient } from "../elastic_index.ts";
import { PEOPLE_INDEX } from "../elastic_schema.ts";
import { ElasticServers } from "../elastic_servers.ts";
import { ElasticStores } from "../elastic_stores.ts";
import type { TestSearchServer } from "./search_servers.ts";

/** Time that runs fast, for those who wait for others. */
class QuickClock extends SystemClock {
  override monotonicMs(): number {
    return super.monotonicMs() * 50;
  }

  override after(delayMs: number, callback: () => void): CancelTimer {
    return super.after(delayMs / 50, callback);
  }
}

/** Bounds in that time. */
const UNHURRIED: PoolBounds = {
  connectTimeoutMs: 1_000_000,
  statementTimeoutMs: 1_000_000,
  waitTimeoutMs: 1_000_000,
};

const ALICE = "alice@example.com";
const NOW = 1_700_000_000_000;
async function readAll(store: ArchiveStore, limit: number): Promise<readonly StoredMessage[]> {
  const all: StoredMessage[] = [];
  for (;;) {
    const after = all.at(-1);
    const page = await store.read(ALICE, {}, { limit, from: "start", after });
    assert.ok(page);
    all.push(...page.messages);
    if (page.isComplete) return all;
  }
}

function sequences(messages: readonly StoredMessage[]): readonly number[] {
  return messages.map(({ sequence }) => sequence);
}

/**
 * Registers the tests of what a server does when it fails, or holds much.
 *
 * @param many entries of an archive that is read page by page; a multiple of 1000
 */
export function faultTests(name: string, server: () => TestSearchServer, many: number): void {
  Deno.test(`${name}: an archive that nobody may change refuses by name, and goes on later`, async () => {
    await server().empty();
    await using stores = server().stores();
    const store = stores.archives();
    await store.append([conformanceArchived(1)], NOW);
    const block = (kind: string, isOn: boolean | null) =>
      server().ask("PUT", "/messages/_settings", { [`index.blocks.${kind}`]: isOn });
    for (
      const [kind, code] of [
        ["read_only_allow_delete", "storage/full"], // as a server does at the flood stage of its disk
        ["write", "storage/read-only"],
      ] as const
    ) {
      await block(kind, true);
      await assert.rejects(store.append([conformanceArchived(2)], NOW), { code });
      const preferences = { byDefault: "never", always: [], never: [] } as const;
      await assert.rejects(store.setPreferences(ALICE, preferences), { code });
      assert.deepEqual(sequences(await readAll(store, 10)), [1]);
      await block(kind, null);
    }
    assert.deepEqual(await store.append([conformanceArchived(2)], NOW), ["stored"]);
    assert.deepEqual(sequences(await readAll(store, 10)), [1, 2]);
  });

  Deno.test(`${name}: a server that does not answer costs a timeout, and nothing is stored twice`, async () => {
    await server().empty();
    await using patient = server().stores();
    await patient.archives().append([conformanceArchived(1)], NOW);
    await using stores = server().stores({ statementTimeoutMs: 3_000, connectTimeoutMs: 20_000 });
    const store = stores.archives();
    await stores.probe();
    const resume = server().suspend();
    try {
      await assert.rejects(store.append([conformanceArchived(2)], NOW), {
        code: "storage/timeout",
      });
    } finally {
      resume();
    }
    for (const messages of [[2, 3], [3, 2, 4]]) {
      const batch = messages.map((each) => conformanceArchived(each));
      assert.deepEqual(await patient.archives().append(batch, NOW), batch.map(() => "stored"));
    }
    assert.deepEqual(sequences(await readAll(patient.archives(), 2)), [1, 2, 3, 4]);
  });

  Deno.test(`${name}: what a dead writer left is never seen, and does not stay in the way`, async () => {
    await server().empty();
    const pool = { name: "elastic.default", options: server().pool(UNHURRIED) };
    const clock = new QuickClock();
    await using stores = new ElasticStores(pool, clock);
    const store = stores.archives();
    await store.append([conformanceArchived(1)], NOW);

    // It has reserved two positions and written one message when it dies.
    const dead = new ElasticServers(pool, clock);
    try {
      const index = new IndexClient(dead, PEOPLE_INDEX);
      const heads = new ArchiveHeads({ index, place: dead.place, clock });
      const place = placeOf(ALICE, await index.buckets());
      const { bucket, archive, owner, host, routing } = place;
      const found = { bucket, archive, owner, host, peer: [], process: 1, sequence: 2, sent_at: 3 };
      const leave = async (token: string, id: string) => {
        const head = await heads.change(
          bucket,
          (head) => reserve(head, { token, count: 2, tries: 0 }),
        );
        const document = { ...found, position: head.last - 1, stanza: "garbage" };
        await index.change("write to", [{ kind: "create", id, routing, document }]);
      };
      const message = conformanceArchived(2);
      await leave("dead", messageDocumentId(place, message));
      assert.deepEqual(sequences(await readAll(store, 10)), [1]);
      assert.equal(
        await store.read(ALICE, {}, { limit: 1, from: "start", after: message }),
        undefined,
      );

      await store.append([conformanceArchived(3)], NOW);
      assert.deepEqual(sequences(await readAll(store, 10)), [1, 3]);
      assert.deepEqual(await store.append([message, conformanceArchived(4)], NOW), [
        "stored",
        "stored",
      ]);
      assert.deepEqual(sequences(await readAll(store, 1)), [1, 3, 2, 4]);
      const [, , stored] = await readAll(store, 10);
      assert.equal(new TextDecoder().decode(stored!.stanza), "2");
      // If it was not dead, it is told.
      const late = await heads.change(bucket, (head) => finish(head, "dead"));
      assert.equal(stateOf(late, 2).kind, "void");

      // Old garbage is removed in the end, and its ranges are forgotten, however many these are.
      const tokens = Array.from({ length: 2 * 255 }, (_, i) => `${i}`);
      const full = await heads.change(
        bucket,
        (head) =>
          tokens.reduce((head, token) => reserve(head, { token, count: 1, tries: 0 }), head),
      );
      const given = full.open.filter((_, i) => i % 2 === 0);
      await index.change(
        "write to",
        given.map(({ token, from: position }) => {
          const document = { ...found, position, stanza: "garbage" };
          return { kind: "create", id: `message:${archive}:1:${token}`, routing, document };
        }),
      );
      await heads.change(bucket, (head) => ({
        ...giveUp(head, new Set(given.map(({ token }) => token)), 0)!,
        open: [], // the others are done
      }));
      assert.deepEqual(sequences(await readAll(store, 10)), [1, 3, 2, 4]);
      await store.append([conformanceArchived(5)], NOW);
      const now = (await heads.read([bucket])).get(bucket)!;
      assert.equal(now.voids.length, 1);
      const query = { bool: { filter: [{ term: { archive } }] } };
      await index.refresh("read");
      const { hits } = await index.search("read", { size: 100, query, _source: false }, {
        routing,
      });
      assert.equal(hits.length, 5);
      assert.deepEqual(sequences(await readAll(store, 10)), [1, 3, 2, 4, 5]);
    } finally {
      await dead.close();
    }
  });

  Deno.test(`${name}: ${many} entries are read page by page`, async () => {
    await server().empty();
    await using stores = server().stores();
    const store = stores.archives();
    const stored = Array.from({ length: many }, (_, i) => i);
    for (let i = 0; i < many; i += 1_000) {
      await store.append(stored.slice(i, i + 1_000).map((each) => conformanceArchived(each)), NOW);
    }
    assert.deepEqual(sequences(await readAll(store, 1_000)), stored);
    assert.equal(await store.count(ALICE, {}, 2 * many), many);
    const small = { limit: 50, from: "end" } as const;
    const page = await store.read(ALICE, {}, { ...small, before: conformanceArchived(many / 2) });
    assert.deepEqual(sequences(page!.messages), stored.slice(many / 2 - 50, many / 2));
    const late = await store.read(ALICE, { afterId: conformanceArchived(many - 5) }, small);
    assert.deepEqual(sequences(late!.messages), stored.slice(-4));
  });

  Deno.test(`${name}: archives come back from a snapshot, and go on`, async () => {
    if (server().kind.isOwn) return; // the doubles have none
    await server().empty();
    const own = Array.from({ length: 20 }, (_, i) => i);
    const add = (store: ArchiveStore, ...which: readonly number[]) =>
      store.append(which.map((each) => conformanceArchived(each)), NOW);
    {
      await using stores = server().stores();
      await add(stores.archives(), ...own);
      await server().ask("PUT", "/_snapshot/backup", {
        type: "fs",
        settings: { location: join(server().directory, SNAPSHOTS) },
      });
      await server().ask("PUT", "/_snapshot/backup/today?wait_for_completion=true", {
        indices: "messages,muc_messages",
        include_global_state: false,
      });
      await add(stores.archives(), 100);
    }
    await server().ask("DELETE", "/messages,muc_messages");
    await server().ask("POST", "/_snapshot/backup/today/_restore?wait_for_completion=true");
    const { problems } = await ELASTIC.backend({
      name: "elastic.default",
      options: server().pool(),
    })
      .check();
    assert.deepEqual(problems, []);
    await using stores = server().stores();
    const store = stores.archives();
    assert.deepEqual(sequences(await readAll(store, 7)), own);
    await add(store, 5, 200);
    assert.deepEqual(sequences(await readAll(store, 7)), [...own, 200]);
  });

  Deno.test({
    name: `${name}: nothing that was reported is lost when the server is killed`,
    // The server of all tests ends in this one, and begins again.
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      await server().empty();
      const stored: number[] = [];
      const unsure: number[] = [];
      {
        await using stores = server().stores();
        const store = stores.archives();
        let killing: Promise<void> | undefined;
        for (let i = 0; unsure.length === 0; i += 10) {
          const own = Array.from({ length: 10 }, (_, each) => i + each);
          if (i === 50) killing = server().kill();
          try {
            await store.append(own.map((each) => conformanceArchived(each)), NOW);
            stored.push(...own);
          } catch (thrown) {
            assert.ok(thrown instanceof CausewayError);
            assert.match(thrown.code, /^storage\/(unreachable|timeout)$/);
            unsure.push(...own);
          }
        }
        await killing;
      }
      assert.ok(stored.length >= 50);
      await server().launch();
      await using stores = server().stores();
      const store = stores.archives();
      const again = unsure.map((each) => conformanceArchived(each));
      assert.deepEqual(await store.append(again, NOW), again.map(() => "stored"));
      assert.deepEqual(sequences(await readAll(store, 7)), [...stored, ...unsure]);
    },
  });
}
