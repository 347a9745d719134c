import assert from "node:assert/strict";
import type {
  ArchivedMessage,
  ArchiveFilter,
  ArchiveId,
  ArchivePageRequest,
  ArchiveStore,
} from "../archive_store.ts";
import { roomArchiveKeyOf } from "../archive_store.ts";
import type { ArchiveStoreFixture } from "./archive_store_conformance.ts";
import { conformanceArchived } from "./archive_store_conformance.ts";

/** The archives of a backend. */
interface Archives {
  readonly people: ArchiveStore;
  readonly rooms: ArchiveStore;
}

type Check = (archives: Archives) => Promise<void>;

const SERVICE = "conference.example.com";
const [COVEN, HEATH] = [`coven@${SERVICE}`, `heath@${SERVICE}`];
const ELSEWHERE = "coven@rooms.example.org";
const NICKNAMES = ["1st Witch", "2nd Witch", "d\u00fcne/\u{1f600}"];
const DAY_MS = 86_400_000;
const NOW = 1_700_000_000_000;
/** Number of the first message: rooms begin at the time at which they were made. */
const FIRST = NOW + 1;
/** Messages that a node writes in one step. */
const STEP = 32;

/** Returns message `i` of a room, as nodes write it: the room numbers its messages. */
function messageOf(
  archive: string,
  i: number,
  fields: Partial<ArchivedMessage> = {},
): ArchivedMessage {
  const room = archive.slice(0, archive.indexOf(" "));
  const peer = { bare: room, resourcepart: NICKNAMES[i % 3]! };
  return conformanceArchived(FIRST + i, {
    archive,
    process: 1,
    peer,
    sentAtMs: NOW,
    text: i % 5 === 0 ? `${i} cauldron` : `${i}`,
    ...fields,
  });
}

function idOf(i: number): ArchiveId {
  return { process: 1, sequence: FIRST + i };
}

async function append(store: ArchiveStore, messages: readonly ArchivedMessage[]): Promise<void> {
  assert.deepEqual(await store.append(messages, NOW), messages.map(() => "stored"));
}

/** Returns the places of messages in their room's order. Undefined: the archive lacks one. */
async function placesIn(
  store: ArchiveStore,
  archive: string,
  filter: ArchiveFilter = {},
  page: Partial<ArchivePageRequest> = {},
): Promise<readonly number[] | undefined> {
  const found = await store.read(archive, filter, { limit: 1_000, from: "start", ...page });
  return found?.messages.map(({ sequence }) => sequence - FIRST);
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

const CHECKS: Readonly<Record<string, Check>> = {
  async "nodes that write at the same time keep the order of the room's numbers"({ rooms }) {
    const keys = [COVEN, HEATH].map((room) => roomArchiveKeyOf(room, { creation: NOW }));
    const total = 240;
    const follow = async (archive: string, isOver: () => boolean): Promise<void> => {
      const seen: number[] = [];
      for (let isLast = false;;) {
        const after = seen.length === 0 ? undefined : idOf(seen.at(-1)!);
        const page = await placesIn(rooms, archive, {}, { limit: 7, after });
        seen.push(...page!);
        if (page!.length > 0) continue;
        if (isLast) return assert.deepEqual(seen, upTo(total));
        isLast = isOver();
      }
    };
    // A room takes messages, and notes up to where its archive has them.
    const work = keys.map(async (archive) => {
      let [taken, archived] = [0, 0];
      const node = async () => {
        while (archived < total) {
          taken = Math.min(total, taken + 11);
          const from = archived;
          const some = upTo(taken).slice(from, from + STEP).map((i) => messageOf(archive, i));
          await append(rooms, some);
          archived = Math.max(archived, from + some.length);
        }
      };
      await Promise.all([node(), node(), node(), follow(archive, () => archived >= total)]);
    });
    await Promise.all(work);
    for (const archive of keys) {
      assert.deepEqual(await placesIn(rooms, archive), upTo(total), "each once, in one order");
    }
  },

  async "the archive of a room is read in pages, either way, by nickname and by word"({ rooms }) {
    const [coven, heath] = [COVEN, HEATH].map((room) =>
      roomArchiveKeyOf(room, { creation: NOW })
    ) as [string, string];
    await append(rooms, upTo(60).map((i) => messageOf(coven, i)));
    await append(rooms, [messageOf(heath, 70)]);
    const pages = (page: Partial<ArchivePageRequest>, filter: ArchiveFilter = {}) =>
      placesIn(rooms, coven, filter, page);
    assert.deepEqual(await pages({ limit: 3 }), [0, 1, 2]);
    assert.deepEqual(await pages({ limit: 3, after: idOf(2) }), [3, 4, 5]);
    assert.deepEqual(await pages({ limit: 3, from: "end" }), [57, 58, 59]);
    assert.deepEqual(await pages({ limit: 3, from: "end", before: idOf(57) }), [54, 55, 56]);
    assert.equal(await pages({ after: idOf(70) }), undefined, "that is another room's");
    const ids = [idOf(5), idOf(3)];
    assert.deepEqual(await pages({}, { ids }), [3, 5]);
    for (const [n, resourcepart] of NICKNAMES.entries()) {
      const own = upTo(60).filter((i) => i % 3 === n);
      const filter = { peer: { bare: COVEN, resourcepart } };
      assert.deepEqual(await pages({}, filter), own);
      assert.deepEqual(await pages({ limit: 4, from: "end" }, filter), own.slice(-4));
      assert.equal(await rooms.count(coven, filter, 1_000), own.length);
    }
    const all = { peer: { bare: COVEN, resourcepart: "" } };
    assert.equal(await rooms.count(coven, all, 1_000), 60);
    assert.deepEqual(await rooms.ends(coven), {
      first: { ...idOf(0), sentAtMs: NOW },
      last: { ...idOf(59), sentAtMs: NOW },
    });
    if (!rooms.searchesText) return;
    assert.deepEqual(await pages({}, { text: "CAULDRON" }), upTo(60).filter((i) => i % 5 === 0));
    assert.deepEqual(await pages({}, { text: "cauldron 35" }), [35]);
  },

  async "the archive of a room goes with it, and the next room of its name has another"(archives) {
    const { people, rooms } = archives;
    const [before, again] = [1, 2].map((creation) => roomArchiveKeyOf(COVEN, { creation }));
    const other = roomArchiveKeyOf(HEATH, { creation: 1 });
    for (const archive of [before!, other]) {
      await append(rooms, upTo(30).map((i) => messageOf(archive, i)));
    }
    await append(people, [conformanceArchived(1)]);
    await rooms.removeAll(COVEN, () => Promise.resolve(undefined));
    assert.deepEqual(await placesIn(rooms, before!), []);
    assert.equal(await rooms.ends(before!), undefined);
    // A node that is late writes to no archive of the next room.
    await append(rooms, [messageOf(before!, 30)]);
    assert.deepEqual(await placesIn(rooms, again!), []);
    await append(rooms, [messageOf(again!, 1)]);
    await rooms.removeAll(COVEN, () => Promise.resolve(again));
    assert.deepEqual(await placesIn(rooms, before!), []);
    assert.deepEqual(await placesIn(rooms, again!), [1]);
    assert.deepEqual(await placesIn(rooms, other), upTo(30));
    assert.equal(await people.count("alice@example.com", {}, 10), 1);
  },

  async "old messages go from the archives of the rooms of one domain alone"({ people, rooms }) {
    const [coven, heath, elsewhere] = [COVEN, HEATH, ELSEWHERE].map((room) =>
      roomArchiveKeyOf(room, { creation: NOW })
    ) as [string, string, string];
    const agesInDays = [9, 5, 7, 1];
    for (const archive of [coven, heath, elsewhere]) {
      const messages = agesInDays.map((age, i) =>
        messageOf(archive, i, { sentAtMs: NOW - age * DAY_MS })
      );
      await append(rooms, messages);
    }
    const old = { sentAtMs: NOW - 9 * DAY_MS };
    await append(people, [conformanceArchived(1, old)]);
    const remove = (store: ArchiveStore, host: string, days: number, limit = 100) =>
      store.removeBefore({ host, sentBeforeMs: NOW - days * DAY_MS }, limit);
    assert.equal(await remove(rooms, SERVICE, 6, 3), 3);
    assert.equal(await remove(rooms, SERVICE, 6, 3), 1);
    assert.equal(await remove(rooms, SERVICE, 6, 3), 0);
    for (const archive of [coven, heath]) {
      assert.deepEqual(await placesIn(rooms, archive), [1, 3]);
    }
    assert.deepEqual(await placesIn(rooms, elsewhere), [0, 1, 2, 3]);
    assert.equal(await people.count("alice@example.com", {}, 10), 1);
    // The domain of people is no domain of rooms, though one ends with the other.
    assert.equal(await remove(people, "example.com", 6), 1);
    assert.deepEqual(await placesIn(rooms, coven), [1, 3]);
    await append(rooms, [messageOf(coven, 4)]);
    assert.deepEqual(await placesIn(rooms, coven), [1, 3, 4], "the archive goes on");
  },
};

/**
 * Registers the tests that the archives of rooms pass unchanged wherever they are kept, beside those of
 * `archiveStoreConformance`; `open` gives an empty backend.
 */
export function roomArchiveConformance(
  name: string,
  open: () => Promise<ArchiveStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: archives of rooms: ${behaviour}`, async () => {
      await using fixture = await open();
      const people = fixture.archives();
      await check({ people, rooms: fixture.roomArchives?.() ?? people });
    });
  }
}
