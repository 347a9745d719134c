import assert from "node:assert/strict";
import type { OfflineMessage, OfflineStore } from "../offline_store.ts";
import { AWKWARD_TEXTS, MEGABYTE_XML } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface OfflineStoreFixture extends AsyncDisposable {
  /** The waiting messages of a domain; each call may be answered by an object of its own. */
  offlineMessages(domainpart: string): OfflineStore;
}

type Check = (fixture: OfflineStoreFixture) => Promise<void>;

const ROOMY = { maxMessages: 1_000, maxBytes: 100_000_000 };
const NOW = 1_700_000_000_000;
const LONG_MS = 3_600_000;
const ONE = { id: new Uint8Array(16).fill(1), nowMs: NOW, forMs: LONG_MS };
const OTHER = { ...ONE, id: new Uint8Array(16).fill(2) };
const FIRST_PAGE = { after: 0, limit: 1_000 };

/** Returns a message with this text, which is from one sender unless it says otherwise. */
export function conformanceMessage(
  text: string,
  sender = "bob@example.com",
  expiresAtMs = NOW + 1_000_000,
): OfflineMessage {
  return { sender, stanza: new TextEncoder().encode(text), sentAtMs: NOW, expiresAtMs };
}

function textsOf(messages: readonly { readonly stanza: Uint8Array }[]): string[] {
  return messages.map(({ stanza }) => new TextDecoder().decode(stanza));
}

async function keepAll(store: OfflineStore, localpart: string, ...texts: string[]): Promise<void> {
  const messages = texts.map((text) => conformanceMessage(text));
  const kept = await store.keep(localpart, messages, ROOMY);
  assert.deepEqual(kept, texts.map(() => true));
}

const CHECKS: Readonly<Record<string, Check>> = {
  async "messages are claimed once, in their order, page by page, and removed"(fixture) {
    const store = fixture.offlineMessages("example.com");
    await keepAll(store, "alice", "one", "two");
    await keepAll(store, "alice", "three");
    assert.equal(await store.claim("alice", ONE), 3);
    assert.equal(await store.claim("alice", OTHER), 0);
    assert.equal(await store.claim("alice", ONE), 0, "its own are not claimed twice");
    assert.deepEqual(await store.claimed("alice", OTHER.id, FIRST_PAGE), []);
    const page = await store.claimed("alice", ONE.id, { after: 0, limit: 2 });
    assert.deepEqual(textsOf(page), ["one", "two"]);
    assert.deepEqual(page.map(({ sentAtMs }) => sentAtMs), [NOW, NOW]);
    const after = page.at(-1)!.sequence;
    const rest = await store.claimed("alice", ONE.id, { after, limit: 2 });
    assert.deepEqual(textsOf(rest), ["three"]);
    await store.remove("alice", ONE.id, page.map(({ sequence }) => sequence));
    const left = await store.all("alice");
    assert.deepEqual(textsOf(left), ["three"]);
    assert.equal(left[0]!.expiresAtMs, conformanceMessage("three").expiresAtMs);
    await store.remove("alice", ONE.id, [rest[0]!.sequence]);
    assert.deepEqual(await store.all("alice"), []);
  },

  async "messages kept behind a claim are behind it in their order, too"(fixture) {
    const store = fixture.offlineMessages("example.com");
    await keepAll(store, "alice", "one");
    await store.claim("alice", ONE);
    await keepAll(store, "alice", "two");
    assert.equal(await store.claim("alice", ONE), 1);
    const claimed = await store.claimed("alice", ONE.id, FIRST_PAGE);
    assert.deepEqual(textsOf(claimed), ["one", "two"]);
  },

  async "a claim that has ended, or that was released, leaves its messages to others"(fixture) {
    const store = fixture.offlineMessages("example.com");
    await keepAll(store, "alice", "one", "two");
    await store.claim("alice", ONE);
    const [first, second] = await store.claimed("alice", ONE.id, FIRST_PAGE);
    await store.release("alice", ONE.id, [first!.sequence]);
    assert.equal(await store.claim("alice", OTHER), 1);
    await store.renew([{ localpart: "alice", id: OTHER.id }], -1);
    assert.equal(await store.claim("alice", { ...OTHER, nowMs: NOW + 1 }), 1, "its own has ended");
    await store.renew([{ localpart: "alice", id: ONE.id }], -1);
    assert.equal(await store.claim("alice", OTHER), 1, "the first claim has ended");
    await store.remove("alice", ONE.id, [first!.sequence, second!.sequence]);
    assert.deepEqual(textsOf(await store.all("alice")), ["one", "two"], "no longer its own");
    await store.release("alice", ONE.id, [first!.sequence, second!.sequence]);
    assert.equal(await store.claim("alice", ONE), 0);
  },

  async "a claim that ends now is over a moment later, however often that is asked"(fixture) {
    const store = fixture.offlineMessages("example.com");
    await keepAll(store, "alice", "one");
    const [claims, startedAt] = [[ONE, OTHER], Date.now()];
    // Longer than a second, in which some databases count.
    for (let round = 0; Date.now() < startedAt + 1_100; round++) {
      const claim = claims[round % 2]!;
      assert.equal(await store.claim("alice", claim), 1, `round ${round}`);
      await store.renew([{ localpart: "alice", id: claim.id }], -1);
      assert.deepEqual(await store.waiting(["alice"], NOW), ["alice"], `round ${round}`);
    }
  },

  async "the clock of a node that claims says nothing about the end of a claim"(fixture) {
    const store = fixture.offlineMessages("example.com");
    const lasting = conformanceMessage("one", undefined, 8e15);
    assert.deepEqual(await store.keep("alice", [lasting], ROOMY), [true]);
    await store.claim("alice", { ...ONE, nowMs: 0 });
    for (const nowMs of [0, NOW, 4e15]) {
      assert.deepEqual(await store.waiting(["alice"], nowMs), []);
      assert.equal(await store.claim("alice", { ...OTHER, nowMs }), 0);
    }
  },

  async "many claims are held for longer at once, each with its own messages"(fixture) {
    const store = fixture.offlineMessages("example.com");
    for (const name of ["alice", "bob", "carol"]) await keepAll(store, name, name);
    await store.claim("alice", ONE);
    await store.claim("bob", OTHER);
    await store.claim("carol", { ...ONE, id: new Uint8Array(16).fill(3) });
    const many = Array.from({ length: 600 }, (_, i) => {
      const id = new Uint8Array(16).fill(9);
      id.set([i >> 8, i & 0xff]);
      return { localpart: `nobody${i}`, id };
    });
    const own = [{ localpart: "alice", id: ONE.id }, ...many, { localpart: "bob", id: OTHER.id }];
    const names = ["alice", "bob", "carol"];
    await store.renew([...own, { localpart: "carol", id: new Uint8Array(16).fill(3) }], -1);
    assert.deepEqual((await store.waiting(names, NOW)).toSorted(), names);
    await store.renew(own, LONG_MS);
    await store.renew([], -1);
    assert.deepEqual(await store.waiting(names, NOW), ["carol"]);
  },

  async "of claims that are made at once, each message goes to one"(fixture) {
    const stores = [fixture.offlineMessages("example.com"), fixture.offlineMessages("example.com")];
    const texts = Array.from({ length: 20 }, (_, i) => `${i}`);
    await keepAll(stores[0]!, "alice", ...texts);
    const claims = Array.from({ length: 4 }, (_, i) => ({
      ...ONE,
      id: new Uint8Array(16).fill(i + 1),
    }));
    const counts = await Promise.all(
      claims.map((claim, i) => stores[i % 2]!.claim("alice", claim)),
    );
    assert.equal(counts.reduce((sum, count) => sum + count, 0), texts.length);
    const all = await Promise.all(
      claims.map((claim) => stores[0]!.claimed("alice", claim.id, FIRST_PAGE)),
    );
    assert.deepEqual(all.map((messages) => messages.length), counts);
    assert.deepEqual(textsOf(all.flat()).toSorted(), texts.toSorted());
  },

  async "messages kept at the same moment are all kept, within the bounds"(fixture) {
    const stores = [fixture.offlineMessages("example.com"), fixture.offlineMessages("example.com")];
    const bounds = { maxMessages: 4, maxBytes: 1_000 };
    const kept = await Promise.all(
      Array.from(
        { length: 6 },
        (_, i) =>
          stores[i % 2]!.keep("alice", [conformanceMessage(`${i}`, `${i}@example.com`)], bounds),
      ),
    );
    assert.equal(kept.flat().filter((isKept) => isKept).length, bounds.maxMessages);
    const sequences = (await stores[0]!.all("alice")).map(({ sequence }) => sequence);
    assert.equal(new Set(sequences).size, bounds.maxMessages);
  },

  async "a sender takes half of an empty mailbox, and others find room beside it"(fixture) {
    const store = fixture.offlineMessages("example.com");
    const bounds = { maxMessages: 10, maxBytes: 1_000 };
    const from = async (sender: string, count: number, length = 1) => {
      const messages = Array.from(
        { length: count },
        () => conformanceMessage("x".repeat(length), sender),
      );
      const kept = await store.keep("alice", messages, bounds);
      return kept.filter((isKept) => isKept).length;
    };
    assert.equal(await from("bob@example.com", 10), 5);
    assert.equal(await from("carol@example.com", 10), 3);
    assert.equal(await from("dave@example.com", 10), 1);
    assert.equal(await from("erin@example.com", 10), 1);
    assert.equal(await from("grace@example.com", 10), 0, "the mailbox is full");
    await store.removeAll("alice");
    assert.equal(await from("bob@example.com", 10, 200), 3, "bytes count alike");
    assert.equal(await from("carol@example.com", 1, 500), 0);
    assert.equal(await from("carol@example.com", 1, 390), 1);
    assert.equal(await from("dave@example.com", 1, 11), 0);
  },

  async "messages that have expired are not claimed, and are removed"(fixture) {
    const store = fixture.offlineMessages("example.com");
    const other = fixture.offlineMessages("example.org");
    await store.keep("alice", [conformanceMessage("old", undefined, NOW)], ROOMY);
    await other.keep("bob", [conformanceMessage("old", undefined, NOW - 1)], ROOMY);
    await keepAll(store, "alice", "new");
    assert.equal(await store.claim("alice", ONE), 1);
    assert.deepEqual(textsOf(await store.claimed("alice", ONE.id, FIRST_PAGE)), ["new"]);
    assert.equal(await store.removeExpired(NOW), 2, "of all domains");
    assert.equal(await store.removeExpired(NOW), 0);
    assert.deepEqual(textsOf(await store.all("alice")), ["new"]);
    assert.deepEqual(await other.all("bob"), []);
  },

  async "waiting() names the accounts that have messages nobody has claimed"(fixture) {
    const store = fixture.offlineMessages("example.com");
    await keepAll(store, "alice", "one");
    await keepAll(store, "bob", "two");
    await keepAll(store, "carol", "three");
    await store.keep("dave", [conformanceMessage("old", undefined, NOW)], ROOMY);
    await store.claim("bob", ONE);
    const many = Array.from({ length: 1_200 }, (_, i) => `nobody${i}`);
    const names = ["alice", "bob", "dave", "erin", ...many];
    assert.deepEqual(await store.waiting(names, NOW), ["alice"]);
    await store.renew([{ localpart: "bob", id: ONE.id }], -60_000);
    assert.deepEqual((await store.waiting(names, NOW)).toSorted(), ["alice", "bob"]);
    assert.deepEqual(await store.waiting([], NOW), []);
    assert.deepEqual(await fixture.offlineMessages("example.org").waiting(names, NOW), []);
  },

  async "accounts and domains have messages of their own"(fixture) {
    const [store, other] = [
      fixture.offlineMessages("example.com"),
      fixture.offlineMessages("example.org"),
    ];
    await keepAll(store, "alice", "one");
    await keepAll(store, "bob", "two");
    await keepAll(other, "alice", "three");
    await store.removeAll("alice");
    await store.removeAll("alice");
    assert.deepEqual(await store.all("alice"), []);
    assert.deepEqual(await store.all("Bob"), [], "names are compared byte by byte");
    assert.deepEqual(textsOf(await store.all("bob")), ["two"]);
    assert.deepEqual(textsOf(await other.all("alice")), ["three"]);
  },

  async "metacharacters, NUL, characters beyond the BMP and 1 MB are kept as they are"(fixture) {
    const store = fixture.offlineMessages("'; --");
    for (const [index, text] of [...AWKWARD_TEXTS, MEGABYTE_XML].entries()) {
      const localpart = `${text.slice(0, 20)}${index}`;
      const message = conformanceMessage(text, text.slice(0, 100));
      assert.deepEqual(await store.keep(localpart, [message], ROOMY), [true]);
      assert.equal(await store.claim(localpart, ONE), 1);
      const [found] = await store.claimed(localpart, ONE.id, FIRST_PAGE);
      assert.ok(new TextDecoder().decode(found!.stanza) === text);
      await store.remove(localpart, ONE.id, [found!.sequence]);
      assert.deepEqual(await store.all(localpart), []);
    }
  },
};

/** Registers the tests that every `OfflineStore` passes unchanged; `open` gives an empty backend. */
export function offlineStoreConformance(
  name: string,
  open: () => Promise<OfflineStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: offline messages: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
