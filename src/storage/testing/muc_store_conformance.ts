import assert from "node:assert/strict";
import type {
  MucAffiliate,
  MucAffiliation,
  MucStore,
  NewMucMessage,
  NewMucRoom,
} from "../muc_store.ts";
import type { RoomListPage } from "../room_list_page.ts";
import type { RoomKind, RoomNames } from "../room_outbox.ts";
import { AWKWARD_TEXTS } from "./awkward_texts.ts";
import { roomNamesConformance } from "./room_names_conformance.ts";
import { roomOutboxConformance } from "./room_outbox_conformance.ts";

/** One backend, empty, opened for one test. */
export interface MucStoreFixture extends AsyncDisposable {
  /** The rooms of a domain; each call may be answered by an object of its own. */
  muc(domainpart: string): MucStore;
  roomNames(kind: RoomKind): RoomNames;
}

const SERVICE = "conference.example.com";
const COVEN = `coven@${SERVICE}`;
const HEATH = `heath@${SERVICE}`;
const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];

type Check = (fixture: MucStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "read() returns what create() and change() have written, until destroy()"(fixture) {
    const store = fixture.muc(SERVICE);
    assert.equal(await store.read(COVEN), undefined);
    const first = await create(store, COVEN, [is(ALICE, "owner"), is(BOB, "member")]);
    assert.deepEqual(await store.read(COVEN), {
      version: first,
      creation: first,
      config: "{}",
      subject: "",
      lastNumber: first,
      affiliates: [is(ALICE, "owner"), is(BOB, "member")],
    });
    const again = newRoom({ config: "other", affiliates: [is(CAROL, "owner")] });
    assert.equal(await store.create(COVEN, again), "exists");
    const second = await store.change(COVEN, {
      expected: first,
      config: "new",
      set: [is(BOB, "outcast", "noise"), is(CAROL, "admin")],
      removed: [ALICE, "nobody@example.com"],
    });
    assert.equal(second, first + 1);
    assert.deepEqual(await store.read(COVEN), {
      version: second,
      creation: first,
      config: "new",
      subject: "",
      lastNumber: first,
      affiliates: [is(BOB, "outcast", "noise"), is(CAROL, "admin")],
    });
    assert.equal(await store.destroy(COVEN, first), false);
    assert.equal(await store.destroy(COVEN, second!), true);
    assert.equal(await store.read(COVEN), undefined);
    assert.equal(await store.destroy(COVEN, second!), false);
    assert.equal(await store.change(COVEN, { expected: second!, config: "x" }), undefined);
  },

  async "change() changes nothing when the version is another one"(fixture) {
    const store = fixture.muc(SERVICE);
    const version = await create(store, COVEN, [is(ALICE, "owner")]);
    const change = {
      expected: version - 1,
      config: "x",
      set: [is(BOB, "member")],
      removed: [ALICE],
    };
    assert.equal(await store.change(COVEN, change), undefined);
    assert.deepEqual((await store.read(COVEN))?.affiliates, [is(ALICE, "owner")]);
    assert.equal((await store.read(COVEN))?.config, "{}");
  },

  async "changes that several nodes make at the same moment lose nothing"(fixture) {
    const stores = [fixture.muc(SERVICE), fixture.muc(SERVICE)];
    const content = newRoom({ affiliates: [is(ALICE, "owner")] });
    const made = await Promise.all(stores.map((store) => store.create(COVEN, content)));
    assert.equal(made.filter((each) => each !== "exists").length, 1, "one of them made it");
    const people = Array.from({ length: 8 }, (_, i) => `user${i}@example.com`);
    await Promise.all(people.map(async (jid, index) => {
      const store = stores[index % 2]!;
      for (;;) {
        const { version: expected } = (await store.read(COVEN))!;
        const set = [is(jid, "member")];
        if (await store.change(COVEN, { expected, set }) !== undefined) return;
      }
    }));
    const found = (await stores[0]!.read(COVEN))!;
    assert.deepEqual(found.affiliates.map(({ jid }) => jid), [ALICE, ...people]);
  },

  async "post() numbers messages without gaps, whoever asks, and the same one once"(fixture) {
    const stores = [fixture.muc(SERVICE), fixture.muc(SERVICE)];
    assert.equal(await stores[0]!.post(COVEN, message("a")), undefined);
    await create(stores[0]!, COVEN, [is(ALICE, "owner")]);
    await create(stores[0]!, HEATH, [is(ALICE, "owner")]);
    const first = (await stores[0]!.post(COVEN, message("a")))!;
    assert.equal(await stores[1]!.post(COVEN, message("a")), first);
    const numbers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => stores[i % 2]!.post(COVEN, message(`m${i}`))),
    );
    assert.deepEqual(
      numbers.toSorted((one, other) => one! - other!),
      Array.from({ length: 12 }, (_, i) => first + 1 + i),
    );
    const kept = await stores[1]!.messages(COVEN, { limit: 100 });
    assert.deepEqual(kept.map(({ number }) => number), [first, ...numbers.toSorted()]);
    assert.notEqual(await stores[1]!.post(HEATH, message("a")), undefined);
    assert.equal((await stores[1]!.messages(HEATH, { limit: 100 })).length, 1);
  },

  async "messages() returns the newest ones in their order, and what was written of them"(fixture) {
    const store = fixture.muc(SERVICE);
    await create(store, COVEN, []);
    assert.deepEqual(await store.messages(COVEN, { limit: 10 }), []);
    const numbers: number[] = [];
    for (const id of ["a", "b", "c"]) numbers.push((await store.post(COVEN, message(id)))!);
    const written = (index: number, id: string) => ({
      number: numbers[index],
      id,
      sentAtMs: 1_700_000_000_000,
      stanza: `<message>${id}</message>`,
    });
    assert.deepEqual(await store.messages(COVEN, { limit: 2 }), [written(1, "b"), written(2, "c")]);
    const behind = await store.messages(COVEN, { limit: 10, after: numbers[1]! });
    assert.deepEqual(behind, [written(2, "c")]);
    assert.deepEqual(await store.messages(COVEN, { limit: 0 }), []);
  },

  async "post() sets the subject together with its message"(fixture) {
    const store = fixture.muc(SERVICE);
    const version = await create(store, COVEN, []);
    await store.post(COVEN, { ...message("s"), subject: "<subject>é</subject>" });
    await store.post(COVEN, message("t"));
    const found = await store.read(COVEN);
    assert.deepEqual([found?.subject, found?.version], ["<subject>é</subject>", version]);
  },

  async "a room keeps as many messages as were asked for, and not many more"(fixture) {
    const store = fixture.muc(SERVICE);
    await create(store, COVEN, []);
    for (let i = 0; i < 50; i++) await store.post(COVEN, { ...message(`m${i}`), keep: 20 });
    const kept = await store.messages(COVEN, { limit: 1_000 });
    assert.ok(kept.length >= 20 && kept.length < 40, `${kept.length} are kept`);
    assert.equal(kept.at(-1)?.id, "m49");
  },

  async "a room that is made again has no message, version or number of before"(fixture) {
    const store = fixture.muc(SERVICE);
    const version = await create(store, COVEN, [is(ALICE, "owner")]);
    const number = (await store.post(COVEN, message("a")))!;
    await store.destroy(COVEN, version);
    // The first version is a time.
    while (Date.now() <= number) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.ok(await create(store, COVEN, [is(BOB, "owner")]) > version);
    assert.deepEqual(await store.messages(COVEN, { limit: 10 }), []);
    assert.ok((await store.post(COVEN, message("a")))! > number);
    assert.deepEqual((await store.read(COVEN))?.affiliates, [is(BOB, "owner")]);
  },

  async "roomNames() pages through the rooms of all domains"(fixture) {
    await roomNamesConformance({
      names: fixture.roomNames("muc"),
      create: (room) => create(fixture.muc(domainOf(room)), room, []),
      async destroy(room) {
        const store = fixture.muc(domainOf(room));
        await store.destroy(room, (await store.read(room))!.version);
      },
    });
  },

  async "a room keeps messages until its archive has them"(fixture) {
    const [one, other] = [fixture.muc(SERVICE), fixture.muc(SERVICE)];
    await create(one, COVEN, []);
    await roomOutboxConformance({
      outbox: other,
      room: COVEN,
      post: async (message) => (await one.post(COVEN, message))!,
    });
    const { version } = (await one.read(COVEN))!;
    await one.destroy(COVEN, version);
    assert.equal(await one.unarchived(COVEN, 10), undefined);
  },

  async "list() pages through the listed rooms of one domain"(fixture) {
    const store = fixture.muc(SERVICE);
    const names = Array.from({ length: 7 }, (_, i) => `room${i}@${SERVICE}`);
    for (const name of names) {
      await store.create(name, newRoom({ config: name }));
    }
    const version = await store.create(COVEN, newRoom({ isListed: false })) as number;
    await create(fixture.muc("rooms.example.org"), "room0@rooms.example.org", []);
    const found: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await store.list({ limit: 3, ...after !== undefined && { after } });
      assert.ok(page.length <= 3);
      for (const { room, config } of page) assert.equal(config, room);
      found.push(...page.map(({ room }) => room));
      if (page.length < 3) break;
      after = page.at(-1)!.room;
    }
    assert.deepEqual(found.toSorted(), names);
    const roomsOf = async (page: RoomListPage) => (await store.list(page)).map(({ room }) => room);
    assert.deepEqual(await roomsOf({ limit: 3, isLast: true }), found.slice(-3));
    assert.deepEqual(await roomsOf({ limit: 3, before: found[4]! }), found.slice(1, 4));
    assert.deepEqual(await roomsOf({ limit: 3, before: found[1]! }), found.slice(0, 1));
    assert.equal(await store.countListed(), 7);
    await store.change(COVEN, { expected: version, isListed: true });
    assert.equal((await store.list({ limit: 100 })).length, 8);
    assert.deepEqual(await store.list({ limit: 0 }), []);
    assert.equal(await store.countListed(), 8);
  },

  async "removeUser() takes all affiliations from somebody"(fixture) {
    const store = fixture.muc(SERVICE);
    const other = fixture.muc("rooms.example.org");
    const version = await create(store, COVEN, [is(ALICE, "owner"), is(BOB, "admin")]);
    await create(other, "a@rooms.example.org", [is(ALICE, "outcast")]);
    await store.removeUser(ALICE);
    await store.removeUser(ALICE);
    assert.deepEqual((await store.read(COVEN))?.affiliates, [is(BOB, "admin")]);
    assert.ok((await store.read(COVEN))!.version > version);
    assert.deepEqual((await other.read("a@rooms.example.org"))?.affiliates, []);
  },

  async "create() makes no more rooms of one creator than may be, whoever owns them"(fixture) {
    const store = fixture.muc(SERVICE);
    const make = (room: string, content: Partial<NewMucRoom> = {}) =>
      store.create(`${room}@${SERVICE}`, newRoom({ maxCreated: 2, ...content }));
    const first = await make("a", { affiliates: [is(BOB, "owner")] }) as number;
    await make("b");
    assert.equal(await make("c"), "too-many");
    assert.equal(await store.read(`c@${SERVICE}`), undefined);
    assert.equal(await make("b"), "exists");
    assert.equal(
      typeof await make("c", { creator: BOB }),
      "number",
      "he made none of alice's rooms",
    );
    const [other, elsewhere] = ["rooms.example.org", "a@rooms.example.org"];
    assert.equal(typeof await fixture.muc(other).create(elsewhere, newRoom({})), "number");
    assert.equal(await make("d", { maxCreated: 1 }), "too-many");
    await store.destroy(`a@${SERVICE}`, first);
    assert.equal(typeof await make("d"), "number");
    assert.equal(await make("e"), "too-many");
    // The next owner of her name has made none of them.
    await store.removeUser(ALICE);
    assert.equal(typeof await make("e"), "number");
    assert.equal(typeof await make("f"), "number");
    assert.equal(await make("g"), "too-many");
  },

  async "create() makes no more rooms than may be when several nodes make them at the same moment"(
    fixture,
  ) {
    const stores = [fixture.muc(SERVICE), fixture.muc(SERVICE)];
    const made = await Promise.all(
      Array.from(
        { length: 6 },
        (_, i) => stores[i % 2]!.create(`room${i}@${SERVICE}`, newRoom({ maxCreated: 3 })),
      ),
    );
    assert.equal(made.filter((each) => each === "too-many").length, 3);
    assert.equal((await stores[0]!.list({ limit: 10 })).length, 3);
  },

  async "a room of 1 000 affiliations, and texts of 64 KiB, come back whole"(fixture) {
    const store = fixture.muc(SERVICE);
    const affiliates = Array.from(
      { length: 1000 },
      (_, i) => is(`user${String(i).padStart(4, "0")}@example.com`, "member"),
    );
    const text = "é".repeat(32_768);
    const version = await store.create(COVEN, newRoom({ config: text, affiliates })) as number;
    const lastNumber = await store.post(COVEN, { ...message("a"), stanza: text, subject: text });
    assert.deepEqual(await store.read(COVEN), {
      version,
      creation: version,
      config: text,
      subject: text,
      lastNumber,
      affiliates,
    });
    assert.equal((await store.messages(COVEN, { limit: 1 }))[0]?.stanza, text);
    await store.change(COVEN, {
      expected: version,
      removed: affiliates.slice(1).map(({ jid }) => jid),
    });
    assert.deepEqual((await store.read(COVEN))?.affiliates, [affiliates[0]]);
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    for (const text of AWKWARD_TEXTS) {
      const store = fixture.muc(text);
      const affiliates = [is(`${text}@u`, "owner", text)];
      const version = await store.create(`${text}@r`, newRoom({ config: text, affiliates }));
      const posted = { ...message(text), stanza: text, subject: text };
      const lastNumber = await store.post(`${text}@r`, posted);
      assert.deepEqual(await store.read(`${text}@r`), {
        version,
        creation: version,
        config: text,
        subject: text,
        lastNumber,
        affiliates,
      });
      const [kept] = await store.messages(`${text}@r`, { limit: 1 });
      assert.deepEqual([kept?.id, kept?.stanza], [text, text]);
      const [listed] = await store.list({ limit: 1 });
      assert.deepEqual(listed, { room: `${text}@r`, config: text });
    }
  },
};

/** Registers the tests that every `MucStore` passes unchanged; `open` gives an empty backend. */
export function mucStoreConformance(name: string, open: () => Promise<MucStoreFixture>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: Multi-User Chat: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}

async function create(
  store: MucStore,
  room: string,
  affiliates: readonly MucAffiliate[],
): Promise<number> {
  const version = await store.create(room, newRoom({ affiliates }));
  assert.ok(typeof version === "number", version as string);
  return version;
}

function newRoom(content: Partial<NewMucRoom>): NewMucRoom {
  const byAlice = { creator: ALICE, maxCreated: 100 };
  return { config: "{}", isListed: true, affiliates: [], ...byAlice, ...content };
}

function is(jid: string, affiliation: MucAffiliation, reason = ""): MucAffiliate {
  return { jid, affiliation, reason };
}

function message(id: string): NewMucMessage {
  return { id, sentAtMs: 1_700_000_000_000, stanza: `<message>${id}</message>`, keep: 100 };
}

function domainOf(room: string): string {
  return room.slice(room.indexOf("@") + 1);
}
