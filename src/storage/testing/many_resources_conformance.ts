import assert from "node:assert/strict";
import type { ArchiveStoreFixture } from "./archive_store_conformance.ts";
import { conformanceArchived } from "./archive_store_conformance.ts";
import type { LastStoreFixture } from "./last_store_conformance.ts";
import type { OfflineStoreFixture } from "./offline_store_conformance.ts";
import { conformanceMessage } from "./offline_store_conformance.ts";
import type { RosterStoreFixture } from "./roster_store_conformance.ts";
import { conformanceItem } from "./roster_store_conformance.ts";

/** One backend, empty, opened for one test. */
export type ManyResourcesFixture =
  & RosterStoreFixture
  & LastStoreFixture
  & OfflineStoreFixture
  & Omit<ArchiveStoreFixture, keyof AsyncDisposable>;

const RESOURCES = 1_000;
/** Resources whose sessions use the database at the same time. */
const AT_ONCE = 100;
const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const NOW = 1_700_000_000_000;

/** Does `work` for each resource, many at once. Returns the results in their order. */
async function forEach<T>(work: (index: number) => Promise<T>): Promise<readonly T[]> {
  const results: T[] = [];
  for (let from = 0; from < RESOURCES; from += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, (_, i) => work(from + i));
    results.push(...await Promise.all(some));
  }
  return results;
}

/** Registers the tests of a person with very many resources, for a backend that holds all kinds. */
export function manyResourcesConformance(
  name: string,
  open: () => Promise<ManyResourcesFixture>,
): void {
  Deno.test(`${name}: 1000 resources of a person log in and leave`, async () => {
    await using fixture = await open();
    const store = fixture.rosters();
    await store.fill(ALICE, [conformanceItem(BOB, { subscription: "both" })]);
    const { version } = await store.find(ALICE, BOB);
    const rosters = await forEach(() => fixture.rosters().read(ALICE));
    assert.deepEqual(new Set(rosters.map((roster) => roster.version)), new Set([version]));
    assert.ok(rosters.every(({ items }) => items.length === 1 && items[0]!.jid === BOB));

    const mailbox = fixture.offlineMessages("example.com");
    const bounds = { maxMessages: 10, maxBytes: 10_000 };
    await mailbox.keep("alice", [conformanceMessage("1"), conformanceMessage("2")], bounds);
    const claims = await forEach((i) => {
      const id = new Uint8Array(16).fill(1);
      id.set([i >> 8, i & 0xff]);
      return mailbox.claim("alice", { id, nowMs: NOW, forMs: 3_600_000 });
    });
    assert.deepEqual(claims.filter((count) => count > 0), [2], "one resource gets both messages");

    const logouts = fixture.lastLogouts("example.com");
    await forEach((i) => {
      const status = `resource${i * 7 % RESOURCES}`;
      return logouts.note([{ localpart: "alice", atMs: NOW + i * 7 % RESOURCES, status }]);
    });
    assert.deepEqual(await logouts.read("alice"), { atMs: NOW + 999, status: "resource999" });
  });

  Deno.test(`${name}: messages of 1000 resources of a person are found by each, and by the person`, async () => {
    await using fixture = await open();
    const store = fixture.archives();
    const peerOf = (i: number) => ({ bare: BOB, resourcepart: `resource${i}` });
    for (let from = 0; from < RESOURCES; from += AT_ONCE) {
      const some = Array.from(
        { length: AT_ONCE },
        (_, i) => conformanceArchived(from + i, { peer: peerOf(from + i) }),
      );
      assert.deepEqual(await store.append(some, NOW), some.map(() => "stored"));
    }
    for (const i of [0, 1, 10, 999]) {
      const page = await store.read(ALICE, { peer: peerOf(i) }, { limit: 10, from: "start" });
      assert.deepEqual(page?.messages.map(({ sequence }) => sequence), [i]);
    }
    const all = { peer: { bare: BOB, resourcepart: "" } };
    assert.equal(await store.count(ALICE, all, 2 * RESOURCES), RESOURCES);
  });
}
