import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchiveStore, RoomOutbox, UnarchivedMessages } from "../../storage/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { element, parseJid } from "../../xmpp/mod.ts";
import { RoomArchives } from "./room_archives.ts";

const SERVICE = "conference.example.com";

/** Calls that the test ends. */
class Held<T> {
  readonly called: string[] = [];
  readonly #ends: ((value: T) => void)[] = [];

  call(room: string): Promise<T> {
    this.called.push(room);
    return new Promise((resolve) => this.#ends.push(resolve));
  }

  /** Ends the first calls that have not ended. */
  async end(count: number, value: T): Promise<void> {
    for (const end of this.#ends.splice(0, count)) end(value);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function open(
  replaced: {
    readonly unarchived?: RoomOutbox["unarchived"];
    readonly markArchived?: RoomOutbox["markArchived"];
    readonly append?: ArchiveStore["append"];
  } = {},
) {
  const reads = new Held<UnarchivedMessages | undefined>();
  const removals = new Held<void>();
  const clock = new ManualClock();
  const archives = new RoomArchives({
    options: {
      defaultLimit: 50,
      maxLimit: 50,
      hasChatMarkers: false,
      maxAgeMs: Infinity,
      isSearched: false,
    },
    outboxes: new Map([[SERVICE, {
      unarchived: replaced.unarchived ?? ((room) => reads.call(room)),
      markArchived: replaced.markArchived ?? (() => Promise.resolve(true)),
      overdue: () => Promise.resolve({ rooms: [], next: undefined }),
    }]]),
    sweepWithinMs: 120_000,
    store: {
      append: replaced.append,
      removeAll: (room: string) => removals.call(room),
    } as unknown as ArchiveStore,
    send: () => true,
    metrics: new MetricsRegistry(clock),
    logger: SILENT_LOGGER,
    clock,
  });
  const read = (room: string) =>
    archives.answer({
      room: parseJid(room).bare,
      creation: 1,
      asker: parseJid("alice@example.com/a") as FullJid,
      type: "set",
      payload: element("query", { xmlns: "urn:xmpp:mam:2" }),
      seesJids: false,
    });
  return { archives, reads, removals, clock, read };
}

const ROOMS = Array.from({ length: 20 }, (_, i) => `room${i}@${SERVICE}`);

Deno.test("RoomArchives writes to 8 archives at once, also for readers, who come first", async () => {
  const { archives, reads, read } = open();
  for (const room of ROOMS.slice(0, 10)) archives.posted(room);
  const answers = [...ROOMS.slice(10), ROOMS[0]!, ROOMS[10]!].map(read);
  strictEqual(reads.called.length, 8);
  await reads.end(4, undefined);
  deepStrictEqual(reads.called.slice(8), ROOMS.slice(10, 14));
  for (let i = 0; i < 5; i++) await reads.end(4, undefined);
  deepStrictEqual(reads.called.toSorted(), [...ROOMS, ROOMS[0]!].toSorted());
  for (const answer of await Promise.all(answers)) {
    deepStrictEqual(answer, { error: "item-not-found" });
  }
  await archives.close();
});

Deno.test("RoomArchives forgets what readers wait for when they no longer do", async () => {
  const { archives, reads, clock, read } = open();
  const answers = Promise.allSettled(ROOMS.map(read));
  clock.advance(5_000);
  deepStrictEqual(new Set((await answers).map(({ status }) => status)), new Set(["rejected"]));
  await reads.end(8, undefined);
  strictEqual(reads.called.length, 8);
  await archives.close();
});

Deno.test("RoomArchives removes 8 archives at once", async () => {
  const { archives, removals } = open();
  for (const room of ROOMS) archives.removed(room);
  deepStrictEqual(removals.called, ROOMS.slice(0, 8));
  await removals.end(3, undefined);
  strictEqual(removals.called.length, 11);
  await removals.end(11, undefined);
  await removals.end(11, undefined);
  deepStrictEqual(removals.called, ROOMS);
  await archives.close();
});

Deno.test("RoomArchives lets rooms whose messages the store refuses make place for others", async () => {
  const marked: string[] = [];
  let number = 0;
  const { archives, clock } = open({
    unarchived: (room) => {
      const stanza = `<message xmlns='jabber:client' type='groupchat' from='${room}/alice'>` +
        `<body>${room}</body></message>`;
      const message = {
        id: room,
        number: room === ROOMS[8] ? ++number : 1,
        sentAtMs: 1,
        sender: undefined,
        stanza,
      };
      const messages = marked.includes(room) && room !== ROOMS[8] ? [] : [message];
      return Promise.resolve({ creation: 1, messages });
    },
    markArchived: (room) => {
      if (!marked.includes(room)) marked.push(room);
      return Promise.resolve(true);
    },
    append: (messages) =>
      messages.every(({ archive }) => archive.startsWith(ROOMS[8]!))
        ? Promise.resolve(messages.map(() => "stored"))
        : Promise.reject(new CausewayError("storage/failed", "Cannot store it")),
  });
  for (const room of ROOMS.slice(0, 8)) archives.posted(room);
  // The messages of the others are given up once the store has taken one of this room.
  for (let i = 0; i < 40; i++) {
    archives.posted(ROOMS[8]!);
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(500);
  }
  deepStrictEqual(marked[0], ROOMS[8]);
  deepStrictEqual(marked.toSorted(), ROOMS.slice(0, 9).toSorted());
  await archives.close();
});
