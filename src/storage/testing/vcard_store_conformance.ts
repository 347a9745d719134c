import assert from "node:assert/strict";
import type { VcardStore } from "../vcard_store.ts";
import { AWKWARD_TEXTS, MEGABYTE_XML } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface VcardStoreFixture extends AsyncDisposable {
  /** The vCards of a domain; each call may be answered by an object of its own. */
  vcards(domainpart: string): VcardStore;
}

type Check = (fixture: VcardStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "read() returns what write() wrote last, until remove()"(fixture) {
    const store = fixture.vcards("example.com");
    assert.equal(await store.read("alice"), undefined);
    await store.write("alice", "one");
    assert.equal(await store.read("alice"), "one");
    await store.write("alice", "two");
    assert.equal(await store.read("alice"), "two");
    await store.remove("alice");
    await store.remove("alice");
    assert.equal(await store.read("alice"), undefined);
  },

  async "accounts and domains have vCards of their own"(fixture) {
    const [store, other] = [fixture.vcards("example.com"), fixture.vcards("example.org")];
    await store.write("alice", "one");
    await store.write("bob", "two");
    await other.write("alice", "three");
    await store.remove("alice");
    assert.equal(await store.read("alice"), undefined);
    assert.equal(await store.read("Bob"), undefined, "names are compared byte by byte");
    assert.equal(await store.read("bob"), "two");
    assert.equal(await other.read("alice"), "three");
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    for (const domainpart of ["example.com", "'; --"]) {
      const store = fixture.vcards(domainpart);
      for (const [index, text] of AWKWARD_TEXTS.entries()) {
        await store.write(`${text}${index}`, text);
        assert.equal(await store.read(`${text}${index}`), text);
      }
      for (const [index, text] of AWKWARD_TEXTS.entries()) {
        await store.remove(`${text}${index}`);
        assert.equal(await store.read(`${text}${index}`), undefined);
      }
    }
  },

  async "a vCard of 1 MB is kept whole"(fixture) {
    const store = fixture.vcards("example.com");
    await store.write("alice", MEGABYTE_XML);
    assert.ok(await store.read("alice") === MEGABYTE_XML, "differs from what was written");
  },

  async "vCards of one account that are written at the same moment all end, and one stays"(
    fixture,
  ) {
    const stores = [fixture.vcards("example.com"), fixture.vcards("example.com")];
    const writers = Array.from({ length: 4 }, (_, i) => `${i}`);
    await Promise.all(writers.map((xml, i) => stores[i % 2]!.write("alice", xml)));
    assert.ok(writers.includes(await stores[0]!.read("alice") ?? ""));
  },
};

/** Registers the tests that every `VcardStore` passes unchanged; `open` gives an empty backend. */
export function vcardStoreConformance(name: string, open: () => Promise<VcardStoreFixture>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: vCards: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
