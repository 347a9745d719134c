import assert from "node:assert/strict";
import type { RosterItem, RosterStore } from "../roster_store.ts";

/** One backend, empty, opened for one test. */
export interface RosterStoreFixture extends AsyncDisposable {
  /** Returns the rosters. Each call may return another object, as another node would have. */
  rosters(): RosterStore;
}

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];

/** Makes an item that clients see. */
export function conformanceItem(jid: string, fields: Partial<RosterItem> = {}): RosterItem {
  return {
    jid,
    name: "",
    groups: [],
    subscription: "none",
    isAsking: false,
    isApproved: false,
    isListed: true,
    request: undefined,
    ...fields,
  };
}

/** Puts an item in, however often another writer is faster. */
async function put(store: RosterStore, owner: string, item: RosterItem): Promise<number> {
  for (;;) {
    const { version } = await store.find(owner, item.jid);
    const written = await store.write(owner, { expected: version, contact: item.jid, item });
    if (written !== undefined) return written;
  }
}

/** Adds a group to an item that many writers change at the same time. */
async function addGroup(store: RosterStore, owner: string, jid: string, group: string) {
  for (;;) {
    const { version, item = conformanceItem(jid) } = await store.find(owner, jid);
    const changed = { ...item, groups: [...item.groups, group] };
    const write = { expected: version, contact: jid, item: changed };
    if (await store.write(owner, write) !== undefined) return;
  }
}

type Check = (fixture: RosterStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "a roster that nobody has changed is empty and has version 0"(fixture) {
    const store = fixture.rosters();
    assert.deepEqual(await store.read(ALICE), { version: 0, removedVersion: 0, items: [] });
    assert.deepEqual(await store.find(ALICE, BOB), {
      version: 0,
      item: undefined,
      items: 0,
      requests: 0,
    });
    assert.deepEqual(await store.contacts(ALICE), []);
    await store.removeAll(ALICE);
  },

  async "write() keeps every field of an item"(fixture) {
    const store = fixture.rosters();
    const items = [
      conformanceItem(BOB, {
        name: "Bob 😀 O'Neill \\ %_\"--;",
        groups: ["a", "ﬀ", "'; DROP TABLE rosters; --", "\0"],
        subscription: "both",
        isApproved: true,
      }),
      conformanceItem(CAROL, {
        subscription: "from",
        isAsking: true,
        isListed: false,
        request: new Uint8Array([0, 255, 39, 92]),
      }),
      conformanceItem("dave@example.com", { subscription: "to" }),
    ];
    const versions: number[] = [];
    for (const item of items) versions.push(await put(store, ALICE, item));
    const roster = await fixture.rosters().read(ALICE);
    assert.deepEqual(roster.items, items.map((item, i) => ({ ...item, version: versions[i]! })));
    assert.equal(roster.version, versions[2]);
    for (const item of items) {
      const entry = await store.find(ALICE, item.jid);
      assert.deepEqual(entry, { version: roster.version, item, items: 3, requests: 1 });
    }
  },

  async "write() makes each version larger than the one before, and notes removals"(fixture) {
    const store = fixture.rosters();
    const first = await put(store, ALICE, conformanceItem(BOB));
    const second = await put(store, ALICE, conformanceItem(BOB, { name: "Bob" }));
    assert.equal((await store.read(ALICE)).removedVersion, first);
    assert.ok(second > first && first > 0, `${first}, ${second}`);
    const removal = { expected: second, contact: BOB, item: undefined };
    const third = await store.write(ALICE, removal);
    assert.ok(third !== undefined && third > second);
    assert.deepEqual(await store.read(ALICE), {
      version: third,
      removedVersion: third,
      items: [],
    });
  },

  async "write() changes nothing when the version is not the expected one"(fixture) {
    const store = fixture.rosters();
    const item = conformanceItem(BOB);
    const first = await put(store, ALICE, item);
    for (const expected of [0, first - 1, first + 1]) {
      const write = { expected, contact: BOB, item: { ...item, name: "other" } };
      assert.equal(await store.write(ALICE, write), undefined);
      const removal = { expected, contact: BOB, item: undefined };
      assert.equal(await store.write(ALICE, removal), undefined);
    }
    assert.equal(
      await store.write(BOB, { expected: 7, contact: ALICE, item: conformanceItem(ALICE) }),
      undefined,
    );
    assert.deepEqual((await store.read(ALICE)).items, [{ ...item, version: first }]);
    assert.deepEqual((await store.read(BOB)).items, []);
  },

  async "writers that change one roster at once lose nothing"(fixture) {
    const [one, other] = [fixture.rosters(), fixture.rosters()];
    const writers = Array.from({ length: 12 }, (_, i) => {
      const store = i % 2 === 0 ? one : other;
      // Half of them share an item, and the others have an item each. The first makes the roster.
      return i % 3 === 0
        ? addGroup(store, ALICE, BOB, `g${i}`)
        : put(store, ALICE, conformanceItem(`u${i}@example.com`)).then(() => {});
    });
    await Promise.all(writers);
    const { items } = await one.read(ALICE);
    const bob = items.find(({ jid }) => jid === BOB);
    assert.deepEqual(bob?.groups.toSorted(), ["g0", "g3", "g6", "g9"]);
    assert.equal(items.length, 9);
    assert.equal(new Set(items.map(({ version }) => version)).size, 9);
  },

  async "of two writers with the same expectation one succeeds"(fixture) {
    for (const expected of [0, await put(fixture.rosters(), BOB, conformanceItem(CAROL))]) {
      const owner = expected === 0 ? ALICE : BOB;
      const written = await Promise.all(["a", "b", "c"].map((name) => {
        const contact = `${name}@example.com`;
        return fixture.rosters().write(owner, {
          expected,
          contact,
          item: conformanceItem(contact),
        });
      }));
      assert.equal(written.filter((version) => version !== undefined).length, 1);
    }
  },

  async "fill() adds what the roster does not have, and changes nothing else"(fixture) {
    const store = fixture.rosters();
    assert.deepEqual(await store.fill(ALICE, []), new Set());
    assert.equal((await store.read(ALICE)).version, 0, "nothing was written");
    const before = conformanceItem(BOB, { name: "Bob", subscription: "both" });
    const asking = { isListed: false, request: new TextEncoder().encode("<presence/>") };
    const items = [conformanceItem(BOB, { name: "Robert" }), conformanceItem(CAROL, asking)];
    const first = await put(store, ALICE, before);
    assert.deepEqual(await store.fill(ALICE, items), new Set([BOB]));
    const filled = await store.read(ALICE);
    assert.ok(filled.version > first);
    assert.deepEqual(
      filled.items.map(({ version: _, ...item }) => item),
      [before, conformanceItem(CAROL, asking)],
    );
    assert.deepEqual(await store.fill(ALICE, items), new Set([BOB, CAROL]));
    assert.deepEqual(await store.read(ALICE), filled, "to repeat it changes nothing");
    assert.deepEqual((await store.read(BOB)).items, []);
  },

  async "fill() makes a roster of very many items while others change it"(fixture) {
    const store = fixture.rosters();
    const items = Array.from({ length: 250 }, (_, i) => conformanceItem(`friend${i}@example.net`));
    const [kept] = await Promise.all([
      fixture.rosters().fill(ALICE, items),
      put(fixture.rosters(), ALICE, conformanceItem(BOB)),
      fixture.rosters().fill(ALICE, items.slice(100)),
    ]);
    assert.ok(kept.size === 0 || kept.size === 150, `${kept.size}`);
    const found = (await store.read(ALICE)).items.map(({ jid }) => jid);
    assert.deepEqual(found, [BOB, ...items.map(({ jid }) => jid)].sort());
  },

  async "contacts() returns subscriptions of both sides, and requests"(fixture) {
    const store = fixture.rosters();
    const request = new TextEncoder().encode("<presence type='subscribe'/>");
    const strangers = ["x", "y"].map((name) => `${name}@example.com`);
    await put(store, ALICE, conformanceItem(BOB, { subscription: "both" }));
    await put(store, BOB, conformanceItem(ALICE, { subscription: "from" }));
    await put(store, ALICE, conformanceItem(CAROL, { subscription: "to", request }));
    await put(store, ALICE, conformanceItem("dave@example.com", { isAsking: true }));
    await put(store, ALICE, conformanceItem(strangers[0]!));
    await put(store, ALICE, conformanceItem(strangers[1]!, { isApproved: true }));
    await put(store, ALICE, conformanceItem("z@example.com", { isListed: false, request }));
    await put(store, "other@example.com", conformanceItem(ALICE, { subscription: "both" }));
    assert.deepEqual(
      (await store.contacts(ALICE)).map(({ jid, request }) => [jid, request]).toSorted(),
      [BOB, CAROL, "dave@example.com"].map((jid) => [jid, undefined]),
      "no request is read unless it is asked for",
    );
    const contacts = await store.contacts(ALICE, { withRequests: true });
    assert.deepEqual(contacts.toSorted((one, two) => one.jid < two.jid ? -1 : 1), [
      { jid: BOB, subscription: "both", isAsking: false, request: undefined, reverse: "from" },
      { jid: CAROL, subscription: "to", isAsking: false, request, reverse: undefined },
      {
        jid: "dave@example.com",
        subscription: "none",
        isAsking: true,
        request: undefined,
        reverse: undefined,
      },
      { jid: "z@example.com", subscription: "none", isAsking: false, request, reverse: undefined },
    ]);
  },

  async "readItem() returns the item that find() does"(fixture) {
    const store = fixture.rosters();
    assert.equal(await store.readItem(ALICE, BOB), undefined);
    const item = conformanceItem(BOB, { groups: ["a", "b"], request: new Uint8Array([0, 255]) });
    await store.write(ALICE, { expected: 0, contact: BOB, item });
    assert.deepEqual(await store.readItem(ALICE, BOB), item);
    assert.deepEqual(await store.readItem(ALICE, BOB), (await store.find(ALICE, BOB)).item);
    assert.equal(await store.readItem(ALICE, CAROL), undefined);
    assert.equal(await store.readItem(BOB, ALICE), undefined);
  },

  async "subscription() returns what one item says"(fixture) {
    const store = fixture.rosters();
    assert.equal(await store.subscription(ALICE, BOB), undefined);
    for (const subscription of ["both", "from", "to", "none"] as const) {
      await put(store, ALICE, conformanceItem(BOB, { subscription, isAsking: true }));
      assert.equal(await store.subscription(ALICE, BOB), subscription);
    }
    assert.equal(await store.subscription(BOB, ALICE), undefined);
    assert.equal(await store.subscription(ALICE, CAROL), undefined);
    assert.deepEqual([...await store.subscriptions([BOB, ALICE, CAROL], BOB)], [
      [ALICE, await store.subscription(ALICE, BOB)],
    ]);
    assert.deepEqual([...await store.subscriptions([], BOB)], []);
  },

  async "removeAll() removes one roster and leaves the others"(fixture) {
    const store = fixture.rosters();
    const before = await put(store, ALICE, conformanceItem(BOB));
    await put(store, BOB, conformanceItem(ALICE));
    await store.removeAll(ALICE);
    assert.deepEqual(await store.read(ALICE), { version: 0, removedVersion: 0, items: [] });
    assert.equal((await store.read(BOB)).items.length, 1);
    const write = { expected: before, contact: BOB, item: conformanceItem(BOB) };
    assert.equal(await store.write(ALICE, write), undefined, "the change was for the old roster");
  },

  async "removeAll() ends what contacts share with the account"(fixture) {
    const store = fixture.rosters();
    const both = { subscription: "both", isApproved: true } as const;
    await put(store, ALICE, conformanceItem(BOB, both));
    await put(store, BOB, conformanceItem(ALICE, { ...both, name: "Alice" }));
    await put(store, BOB, conformanceItem(CAROL, both));
    await put(store, ALICE, conformanceItem(CAROL, { isAsking: true }));
    const request = new Uint8Array(1);
    await put(store, CAROL, conformanceItem(ALICE, { isListed: false, request }));
    for (let i = 0; i < 2; i++) {
      await store.removeAll(ALICE);
      assert.deepEqual((await store.read(ALICE)).items, []);
      assert.deepEqual(
        (await store.find(BOB, ALICE)).item,
        conformanceItem(ALICE, { name: "Alice" }),
      );
      assert.equal((await store.find(BOB, CAROL)).item?.subscription, "both");
      assert.equal((await store.find(CAROL, ALICE)).item, undefined);
    }
  },

  async "names that differ only in case or accent are different accounts"(fixture) {
    const store = fixture.rosters();
    const owners = ["a@example.com", "A@example.com", "á@example.com"];
    for (const owner of owners) await put(store, owner, conformanceItem(BOB, { name: owner }));
    for (const owner of owners) {
      assert.deepEqual((await store.read(owner)).items.map(({ name }) => name), [owner]);
    }
  },

  async "read() returns a roster of very many items in the order of their JIDs"(fixture) {
    const store = fixture.rosters();
    let { version: expected } = await store.find(ALICE, BOB);
    const jids = Array.from({ length: 300 }, (_, i) => `u${i * 7 % 300}@example.com`);
    for (const contact of jids) {
      expected = (await store.write(ALICE, { expected, contact, item: conformanceItem(contact) }))!;
    }
    const read = (await store.read(ALICE)).items.map(({ jid }) => jid);
    assert.deepEqual(read, jids.toSorted());
  },

  async "a roster of 10000 contacts is read whole, changed at one place, and asked for its contacts"(
    fixture,
  ) {
    const store = fixture.rosters();
    const subscriptions = ["both", "to", "from", "none"] as const;
    const items = Array.from(
      { length: 10_000 },
      (_, i) =>
        conformanceItem(`contact${String(i).padStart(4, "0")}@example.com`, {
          name: `Contact ${i} 😀`,
          groups: [`Group ${i % 50}`],
          subscription: subscriptions[i % 4]!,
        }),
    );
    assert.deepEqual(await store.fill(ALICE, items), new Set());
    const one = items[4321]!;
    await put(store, one.jid, conformanceItem(ALICE, { subscription: "from" }));

    const { version, items: all } = await fixture.rosters().read(ALICE);
    assert.deepEqual(all, items.map((item, i) => ({ ...item, version: all[i]!.version })));
    const entry = { version, item: one, items: 10_000, requests: 0 };
    assert.deepEqual(await store.find(ALICE, one.jid), entry);

    const item = { ...one, name: "Renamed" };
    const write = { expected: version, contact: one.jid, item };
    const written = await store.write(ALICE, write);
    assert.ok(written !== undefined && written > version);
    assert.equal(await store.write(ALICE, write), undefined, "the version was used up");
    const { items: after } = await store.read(ALICE);
    assert.equal(after.length, 10_000);
    assert.deepEqual(after.filter((each) => each.version > version), [{
      ...item,
      version: written,
    }]);

    const contacts = await store.contacts(ALICE);
    assert.deepEqual(
      new Set(contacts.map(({ jid }) => jid)),
      new Set(items.filter(({ subscription }) => subscription !== "none").map(({ jid }) => jid)),
    );
    const { subscription, reverse } = contacts.find(({ jid }) => jid === one.jid)!;
    assert.deepEqual([subscription, reverse], [one.subscription, "from"]);
  },
};

/** Registers the tests that every `RosterStore` passes unchanged; `open` gives an empty backend. */
export function rosterStoreConformance(
  name: string,
  open: () => Promise<RosterStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: rosters: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
