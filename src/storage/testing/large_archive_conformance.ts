import assert from "node:assert/strict";
import type { ArchiveId, ArchiveStore, StoredMessage } from "../archive_store.ts";
import type { ArchiveStoreFixture } from "./archive_store_conformance.ts";
import { conformanceArchived } from "./archive_store_conformance.ts";

const ALICE = "alice@example.com";
const NOW = 1_700_000_000_000;

/** Registers the test of a large archive; `open` gives an empty backend. */
export function largeArchiveConformance(
  name: string,
  open: () => Promise<ArchiveStoreFixture>,
): void {
  Deno.test(`${name}: archives: an archive of 100 000 messages is read page by page, by peer and by time`, async () => {
    await using fixture = await open();
    await checkLargeArchive(fixture.archives());
  });
}

/** Fills an archive of an empty store with 100 000 messages, and reads them in every way. */
export async function checkLargeArchive(store: ArchiveStore): Promise<void> {
  const total = 100_000;
  const peers = ["bob@example.com", "carol@example.org", "rare@example.org"];
  const peerOf = (i: number) => peers[i % 10_000 === 77 ? 2 : i % 2]!;
  const batch = 1_000;
  for (let from = 0; from < total; from += batch) {
    // Without words: an index on them would take as long as everything else.
    const messages = Array.from({ length: batch }, (_, j) => ({
      ...conformanceArchived(from + j, {
        peer: { bare: peerOf(from + j), resourcepart: "" },
        sentAtMs: NOW + from + j,
      }),
      text: "",
    }));
    const outcomes = await store.append(messages, NOW + from + batch);
    assert.ok(outcomes.every((each) => each === "stored"));
  }
  for (const from of ["start", "end"] as const) {
    let [seen, last] = [0, undefined as ArchiveId | undefined];
    for (;;) {
      const place = from === "start" ? { after: last } : { before: last };
      const page = (await store.read(ALICE, {}, { limit: 1_000, from, ...place }))!;
      const texts = page.messages.map(textOf);
      const first = from === "start" ? seen : total - seen - texts.length;
      assert.deepEqual(texts, Array.from({ length: texts.length }, (_, i) => first + i));
      seen += texts.length;
      last = from === "start" ? page.messages.at(-1) : page.messages[0];
      if (page.isComplete) break;
    }
    assert.equal(seen, total);
  }
  const rare = { bare: "rare@example.org", resourcepart: "" };
  const page = (await store.read(ALICE, { peer: rare }, { limit: 50, from: "end" }))!;
  assert.deepEqual(
    page.messages.map(textOf),
    Array.from({ length: 10 }, (_, i) => 77 + i * 10_000),
  );
  const window = { startMs: NOW + 50_000, endMs: NOW + 60_000 };
  assert.equal(await store.count(ALICE, window, 100_000), 10_001);
  assert.equal(await store.count(ALICE, { ...window, peer: rare }, 10), 1);
  assert.equal(await store.count(ALICE, {}, 10_001), 10_001);
  const late = (await store.read(ALICE, window, { limit: 3, from: "end" }))!;
  assert.deepEqual(late.messages.map(textOf), [59_998, 59_999, 60_000]);
}

function textOf({ stanza }: StoredMessage): number {
  return Number(new TextDecoder().decode(stanza));
}
