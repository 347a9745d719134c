import assert from "node:assert/strict";
import type { LastStore } from "../last_store.ts";
import { AWKWARD_TEXTS } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface LastStoreFixture extends AsyncDisposable {
  /** The last logouts of a domain; each call may be answered by an object of its own. */
  lastLogouts(domainpart: string): LastStore;
}

/** 2026, in milliseconds that no 32-bit column holds. */
const NOON = 1_790_000_000_123;

type Check = (fixture: LastStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "read() returns the newest logout that was noted, until remove()"(fixture) {
    const store = fixture.lastLogouts("example.com");
    assert.equal(await store.read("alice"), undefined);
    await store.note([{ localpart: "alice", atMs: NOON, status: "bye" }]);
    assert.deepEqual(await store.read("alice"), { atMs: NOON, status: "bye" });
    await store.note([{ localpart: "alice", atMs: NOON - 1, status: "older" }]);
    assert.deepEqual(await store.read("alice"), { atMs: NOON, status: "bye" });
    await store.note([{ localpart: "alice", atMs: NOON + 1, status: "" }]);
    assert.deepEqual(await store.read("alice"), { atMs: NOON + 1, status: "" });
    await store.remove("alice");
    await store.remove("alice");
    assert.equal(await store.read("alice"), undefined);
  },

  async "accounts and domains have logouts of their own"(fixture) {
    const [store, other] = [fixture.lastLogouts("example.com"), fixture.lastLogouts("example.org")];
    await store.note([
      { localpart: "alice", atMs: NOON, status: "one" },
      { localpart: "bob", atMs: NOON + 1, status: "two" },
    ]);
    await other.note([{ localpart: "alice", atMs: NOON + 2, status: "three" }]);
    await store.note([]);
    await store.remove("alice");
    assert.equal(await store.read("alice"), undefined);
    assert.deepEqual(await store.read("bob"), { atMs: NOON + 1, status: "two" });
    assert.deepEqual(await other.read("alice"), { atMs: NOON + 2, status: "three" });
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    const store = fixture.lastLogouts("'; --");
    const logouts = AWKWARD_TEXTS.map((status, index) => ({
      localpart: `${status}${index}`,
      atMs: NOON + index,
      status,
    }));
    await store.note(logouts);
    for (const { localpart, ...logout } of logouts) {
      assert.deepEqual(await store.read(localpart), logout);
      await store.remove(localpart);
      assert.equal(await store.read(localpart), undefined);
    }
  },

  async "logouts that several nodes note at the same moment leave the newest"(fixture) {
    const stores = [fixture.lastLogouts("example.com"), fixture.lastLogouts("example.com")];
    const accounts = Array.from({ length: 10 }, (_, i) => `user${i}`);
    const newest = NOON + 3;
    await Promise.all([NOON + 1, newest, NOON].map((atMs, index) => {
      const order = index % 2 === 0 ? accounts : accounts.toReversed();
      return stores[index % 2]!.note(
        order.map((localpart) => ({ localpart, atMs, status: `${atMs}` })),
      );
    }));
    for (const localpart of accounts) {
      assert.deepEqual(await stores[0]!.read(localpart), { atMs: newest, status: `${newest}` });
    }
  },
};

/** Registers the tests that every `LastStore` passes unchanged; `open` gives an empty backend. */
export function lastStoreConformance(name: string, open: () => Promise<LastStoreFixture>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: last activity: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
