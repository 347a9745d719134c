import assert from "node:assert/strict";
import type { RoomAffiliation, RoomBlock, RoomOccupant, RoomStore } from "../room_store.ts";
import type { RoomListPage } from "../room_list_page.ts";
import type { RoomKind, RoomNames } from "../room_outbox.ts";
import { AWKWARD_TEXTS } from "./awkward_texts.ts";
import { roomNamesConformance } from "./room_names_conformance.ts";
import { roomOutboxConformance } from "./room_outbox_conformance.ts";

/** One backend, empty, opened for one test. */
export interface RoomStoreFixture extends AsyncDisposable {
  /** The rooms of a domain; each call may be answered by an object of its own. */
  rooms(domainpart: string): RoomStore;
  roomNames(kind: RoomKind): RoomNames;
}

const SERVICE = "muclight.example.com";
const COVEN = `coven@${SERVICE}`;
const HEATH = `heath@${SERVICE}`;
const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];

type Check = (fixture: RoomStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "read() returns what create() and change() have written, until destroy()"(fixture) {
    const store = fixture.rooms(SERVICE);
    assert.equal(await store.read(COVEN), undefined);
    const first = await create(store, COVEN, [owner(ALICE), member(BOB)]);
    assert.deepEqual(await store.read(COVEN), {
      version: first,
      creation: first,
      config: "{}",
      occupants: [owner(ALICE), member(BOB)],
    });
    const again = { config: "other", occupants: [owner(CAROL)] };
    assert.equal(await store.create(COVEN, again), undefined, "the room is there");
    const second = await store.change(COVEN, { expected: first, config: "new" });
    assert.equal(second, first + 1);
    assert.deepEqual(await store.read(COVEN), {
      version: second,
      creation: first,
      config: "new",
      occupants: [owner(ALICE), member(BOB)],
    });
    assert.equal(await store.destroy(COVEN, first), false);
    assert.equal(await store.destroy(COVEN, second!), true);
    assert.equal(await store.read(COVEN), undefined);
    assert.equal(await store.destroy(COVEN, second!), false);
    assert.deepEqual(await store.roomsOf(ALICE, { limit: 10 }), []);
  },

  async "change() lets occupants come, go and change, and keeps their order"(fixture) {
    const store = fixture.rooms(SERVICE);
    const version = await create(store, COVEN, [owner(CAROL)]);
    const second = await store.change(COVEN, { expected: version, set: [member(BOB)] });
    const third = await store.change(COVEN, {
      expected: second!,
      set: [member(ALICE), owner(BOB), member(CAROL)],
    });
    assert.deepEqual((await store.read(COVEN))?.occupants, [
      member(CAROL),
      owner(BOB),
      member(ALICE),
    ]);
    await store.change(COVEN, { expected: third!, removed: [CAROL, "nobody@example.com"] });
    assert.deepEqual((await store.read(COVEN))?.occupants, [owner(BOB), member(ALICE)]);
  },

  async "change() changes nothing when the version is another one"(fixture) {
    const store = fixture.rooms(SERVICE);
    assert.equal(await store.change(COVEN, { expected: 1, set: [member(BOB)] }), undefined);
    const version = await create(store, COVEN, [owner(ALICE)]);
    const change = { expected: version - 1, config: "x", set: [member(BOB)], removed: [ALICE] };
    assert.equal(await store.change(COVEN, change), undefined);
    assert.deepEqual(await store.read(COVEN), {
      version,
      creation: version,
      config: "{}",
      occupants: [owner(ALICE)],
    });
  },

  async "changes that several nodes make at the same moment lose nothing"(fixture) {
    const stores = [fixture.rooms(SERVICE), fixture.rooms(SERVICE)];
    const made = await Promise.all(
      stores.map((store) => store.create(COVEN, { config: "{}", occupants: [owner(ALICE)] })),
    );
    assert.equal(made.filter((each) => each !== undefined).length, 1, "one of them made it");
    const people = Array.from({ length: 8 }, (_, i) => `user${i}@example.com`);
    await Promise.all(people.map(async (jid, index) => {
      const store = stores[index % 2]!;
      for (;;) {
        const { version: expected } = (await store.read(COVEN))!;
        if (await store.change(COVEN, { expected, set: [member(jid)] }) !== undefined) return;
      }
    }));
    const found = (await stores[0]!.read(COVEN))!;
    assert.deepEqual(found.occupants.map(({ jid }) => jid).toSorted(), [ALICE, ...people]);
  },

  async "roomNames() pages through the rooms of all domains"(fixture) {
    await roomNamesConformance({
      names: fixture.roomNames("muc_light"),
      create: (room) => create(fixture.rooms(domainOf(room)), room, [owner(ALICE)]),
      async destroy(room) {
        const store = fixture.rooms(domainOf(room));
        await store.destroy(room, (await store.read(room))!.version);
      },
    });
  },

  async "a room keeps messages until its archive has them"(fixture) {
    const [one, other] = [fixture.rooms(SERVICE), fixture.rooms(SERVICE)];
    const version = await create(one, COVEN, [owner(ALICE)]);
    const stranger = { id: "x", sentAtMs: 1, stanza: "x", keep: 1, isArchived: true };
    assert.equal(await one.takeNumber(COVEN, BOB, stranger), undefined);
    await roomOutboxConformance({
      outbox: other,
      room: COVEN,
      post: async (message) => (await one.takeNumber(COVEN, ALICE, message))!.number,
    });
    const [last] = (await other.messages(COVEN, { limit: 2 })).slice(-1);
    assert.equal(last?.id, "anonymous");
    assert.deepEqual(await other.messages(COVEN, { limit: 9, after: last.number - 1 }), [last]);
    const between = { limit: 9, after: last.number - 3, before: last.number };
    assert.deepEqual(
      (await other.messages(COVEN, between)).map(({ number }) => number - last.number),
      [-2, -1],
    );
    await one.takeNumber(COVEN, ALICE);
    assert.deepEqual((await one.unarchived(COVEN, 10))?.messages, [], "it was not to be kept");
    await one.destroy(COVEN, version);
    assert.equal(await one.unarchived(COVEN, 10), undefined);
  },

  async "takeNumber() numbers messages without gaps from the version of the new room on"(fixture) {
    const stores = [fixture.rooms(SERVICE), fixture.rooms(SERVICE)];
    assert.equal(await stores[0]!.takeNumber(COVEN, ALICE), undefined);
    const first = await create(stores[0]!, COVEN, [owner(ALICE), member(BOB)]);
    const heath = await create(stores[0]!, HEATH, [owner(CAROL)]);
    assert.equal(await stores[0]!.takeNumber(COVEN, CAROL), undefined);
    assert.deepEqual(await stores[0]!.takeNumber(COVEN, ALICE), {
      number: first + 1,
      occupants: [owner(ALICE), member(BOB)],
    });
    const numbers = await Promise.all(Array.from({ length: 12 }, async (_, i) => {
      const taken = await stores[i % 2]!.takeNumber(COVEN, i % 3 === 0 ? ALICE : BOB);
      return taken!.number;
    }));
    assert.deepEqual(
      numbers.toSorted((one, other) => one - other),
      Array.from({ length: 12 }, (_, i) => first + i + 2),
    );
    assert.equal((await stores[1]!.takeNumber(HEATH, CAROL))?.number, heath + 1);
  },

  async "takeNumber() leaves no gap when its sender goes at that moment"(fixture) {
    const [one, other] = [fixture.rooms(SERVICE), fixture.rooms(SERVICE)];
    const first = await create(one, COVEN, [owner(ALICE)]);
    let [expected, taken] = [first, 0];
    for (let round = 0; round < 30; round++) {
      expected = (await one.change(COVEN, { expected, set: [member(BOB)] }))!;
      const [left, ...numbered] = await Promise.all([
        other.change(COVEN, { expected, removed: [BOB] }),
        ...Array.from({ length: 4 }, () => one.takeNumber(COVEN, BOB)),
      ]);
      expected = left!;
      taken += numbered.filter((each) => each !== undefined).length;
    }
    assert.equal((await one.takeNumber(COVEN, ALICE))?.number, first + taken + 1);
  },

  async "roomsOf() pages through the rooms of somebody at one domain"(fixture) {
    const store = fixture.rooms(SERVICE);
    const names = Array.from({ length: 7 }, (_, i) => `room${i}@${SERVICE}`);
    for (const name of names) await create(store, name, [owner(ALICE), member(BOB)]);
    const other = fixture.rooms("rooms.example.org");
    await create(other, "room0@rooms.example.org", [owner(ALICE)]);
    const found: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await store.roomsOf(ALICE, { limit: 3, ...after !== undefined && { after } });
      found.push(...page.map(({ room }) => room));
      assert.ok(page.length <= 3);
      if (page.length < 3) break;
      after = page.at(-1)!.room;
    }
    assert.deepEqual(found.toSorted(), names);
    const roomsOf = async (page: RoomListPage) =>
      (await store.roomsOf(ALICE, page)).map(({ room }) => room);
    assert.deepEqual(await roomsOf({ limit: 3, isLast: true }), found.slice(-3));
    assert.deepEqual(await roomsOf({ limit: 3, before: found[4]! }), found.slice(1, 4));
    assert.deepEqual(await roomsOf({ limit: 3, before: found[1]! }), found.slice(0, 1));
    const counts = await store.countRoomsOf([ALICE, BOB, CAROL]);
    assert.deepEqual([ALICE, BOB, CAROL].map((user) => counts.get(user)), [7, 7, undefined]);
    assert.deepEqual(await store.countRoomsOf([]), new Map());
    assert.deepEqual((await other.countRoomsOf([ALICE])).get(ALICE), 1);
  },

  async "changeBlocks() adds and removes blocks, up to a bound"(fixture) {
    const store = fixture.rooms(SERVICE);
    assert.deepEqual(await store.blocks(ALICE), []);
    const both: readonly RoomBlock[] = [user(BOB), { kind: "room", jid: COVEN }];
    assert.equal(await store.changeBlocks(ALICE, { added: both, removed: [] }, 2), true);
    assert.deepEqual(await store.blocks(ALICE), both);
    assert.deepEqual(await fixture.rooms("rooms.example.org").blocks(ALICE), []);
    const third = { added: [user(CAROL), user(BOB)], removed: [] };
    assert.equal(await store.changeBlocks(ALICE, third, 2), false);
    assert.deepEqual(await store.blocks(ALICE), both);
    assert.equal(
      await store.changeBlocks(ALICE, { ...third, removed: [both[1]!, user("x@y")] }, 2),
      true,
    );
    assert.deepEqual(await store.blocks(ALICE), [user(BOB), user(CAROL)]);
  },

  async "blocking() returns those who block a room or a person"(fixture) {
    const store = fixture.rooms(SERVICE);
    const room: RoomBlock = { kind: "room", jid: COVEN };
    await store.changeBlocks(ALICE, { added: [room], removed: [] }, 10);
    await store.changeBlocks(BOB, { added: [user(CAROL)], removed: [] }, 10);
    const all = [ALICE, BOB, CAROL];
    assert.deepEqual(await store.blocking(all, [room]), new Set([ALICE]));
    assert.deepEqual(await store.blocking(all, [room, user(CAROL)]), new Set([ALICE, BOB]));
    assert.deepEqual(await store.blocking(all, [user(COVEN)]), new Set(), "another kind");
    assert.deepEqual(await store.blocking([CAROL], [room, user(CAROL)]), new Set());
    assert.deepEqual(await store.blocking([], [room]), new Set());
  },

  async "removeUser() passes rooms on to those who came first, and removes empty ones"(fixture) {
    const store = fixture.rooms(SERVICE);
    const other = fixture.rooms("rooms.example.org");
    const version = await create(store, COVEN, [owner(ALICE)]);
    const second = await store.change(COVEN, { expected: version, set: [member(CAROL)] });
    await store.change(COVEN, { expected: second!, set: [member(BOB)] });
    await create(store, HEATH, [owner(ALICE)]);
    await create(other, "a@rooms.example.org", [owner(BOB), member(ALICE)]);
    await store.changeBlocks(ALICE, { added: [user(BOB)], removed: [] }, 10);
    assert.deepEqual(await store.removeUser(ALICE), [HEATH]);
    assert.deepEqual(await store.removeUser(ALICE), []);
    assert.deepEqual((await store.read(COVEN))?.occupants, [owner(CAROL), member(BOB)]);
    assert.ok((await store.read(COVEN))!.version > second!);
    assert.equal(await store.read(HEATH), undefined);
    assert.deepEqual((await other.read("a@rooms.example.org"))?.occupants, [owner(BOB)]);
    assert.deepEqual(await store.blocks(ALICE), []);
  },

  async "a room of 1 000 occupants and 64 KiB of configuration comes back whole"(fixture) {
    const store = fixture.rooms(SERVICE);
    const occupants = Array.from(
      { length: 1000 },
      (_, i) => member(`user${String(i).padStart(4, "0")}@example.com`),
    );
    const config = "é".repeat(32_700);
    const version = await store.create(COVEN, { config, occupants });
    assert.deepEqual(await store.read(COVEN), { version, creation: version, config, occupants });
    await store.change(COVEN, {
      expected: version!,
      removed: occupants.slice(1).map(({ jid }) => jid),
    });
    assert.deepEqual((await store.read(COVEN))?.occupants, [occupants[0]]);
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    for (const text of AWKWARD_TEXTS) {
      const store = fixture.rooms(text);
      const version = await store.create(`${text}@r`, {
        config: text,
        occupants: [owner(`${text}@u`)],
      });
      assert.deepEqual(await store.read(`${text}@r`), {
        version,
        creation: version,
        config: text,
        occupants: [owner(`${text}@u`)],
      });
      const [listed] = await store.roomsOf(`${text}@u`, { limit: 1 });
      assert.deepEqual(listed, { room: `${text}@r`, version, config: text });
      await store.changeBlocks(text, { added: [user(text)], removed: [] }, 1);
      assert.deepEqual(await store.blocks(text), [user(text)]);
    }
  },
};

/** Registers the tests that every `RoomStore` passes unchanged; `open` gives an empty backend. */
export function roomStoreConformance(name: string, open: () => Promise<RoomStoreFixture>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: rooms: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}

async function create(
  store: RoomStore,
  room: string,
  occupants: readonly RoomOccupant[],
): Promise<number> {
  const version = await store.create(room, { config: "{}", occupants });
  assert.ok(version !== undefined);
  return version;
}

function occupant(jid: string, affiliation: RoomAffiliation): RoomOccupant {
  return { jid, affiliation };
}

function owner(jid: string): RoomOccupant {
  return occupant(jid, "owner");
}

function member(jid: string): RoomOccupant {
  return occupant(jid, "member");
}

function user(jid: string): RoomBlock {
  return { kind: "user", jid };
}

function domainOf(room: string): string {
  return room.slice(room.indexOf("@") + 1);
}
