import assert from "node:assert/strict";
import type { SearchOptions, SearchTerm } from "../vcard_search.ts";
import type { VcardStore } from "../vcard_store.ts";
import { AWKWARD_TEXTS, MEGABYTE_XML } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface VcardStoreFixture extends AsyncDisposable {
  /** The vCards of a domain; each call may be answered by an object of its own. */
  vcards(domainpart: string): VcardStore;
}

type Check = (fixture: VcardStoreFixture) => Promise<void>;

/** Returns a vCard, public if `isPublic` is true, and else of the given class, if any. */
function cardOf(fields: string, isPublic: boolean | string = true): string {
  const own = isPublic === true ? "PUBLIC" : isPublic;
  const text = own === false ? "" : `<CLASS><${own}/></CLASS>`;
  return `<vCard xmlns='vcard-temp'>${text}${fields}</vCard>`;
}

async function namesOf(
  store: VcardStore,
  terms: readonly SearchTerm[],
  options: Partial<SearchOptions> = {},
): Promise<readonly string[]> {
  const found = await store.search(terms, { limit: 10, findsAll: false, ...options });
  return found.map(({ localpart }) => localpart);
}

const CHECKS: Readonly<Record<string, Check>> = {
  async "search() finds public vCards by whole fields and begins, whatever their case"(fixture) {
    const store = fixture.vcards("example.com");
    const other = fixture.vcards("example.org");
    const alice = "<FN> Alice  Müller </FN><N><FAMILY>Müller</FAMILY><GIVEN>Alice</GIVEN></N>" +
      "<EMAIL><USERID>a@example.com</USERID></EMAIL><ADR><LOCALITY>Ulm</LOCALITY></ADR>";
    await store.write("alice", cardOf(alice));
    await store.write(
      "alan",
      cardOf("<N><GIVEN>Alan</GIVEN></N><ADR><LOCALITY>Ulm</LOCALITY></ADR>"),
    );
    await store.write("bob", cardOf("<N><GIVEN>Alice</GIVEN></N><NICKNAME>%_\\*😀</NICKNAME>"));
    await other.write("alice", cardOf(alice));
    const find = (...terms: SearchTerm[]) => namesOf(store, terms);
    assert.deepEqual(await find({ field: "last", text: "MÜLLER" }), ["alice"]);
    assert.deepEqual(await find({ field: "last", text: "Müll" }), []);
    assert.deepEqual(await find({ field: "last", text: "mül*" }), ["alice"]);
    assert.deepEqual(await find({ field: "fn", text: "alice müller" }), ["alice"]);
    assert.deepEqual((await find({ field: "first", text: "alice" })).toSorted(), ["alice", "bob"]);
    const both = [{ field: "first", text: "al*" }, { field: "locality", text: "ulm" }] as const;
    assert.deepEqual((await find(...both)).toSorted(), ["alan", "alice"]);
    assert.deepEqual(await find(...both, { field: "email", text: "a@*" }), ["alice"]);
    assert.deepEqual(await find({ field: "user", text: "al*" }), ["alan", "alice"]);
    assert.deepEqual(await find({ field: "nick", text: "%_\\*😀" }), ["bob"]);
    for (const text of ["%", "_", "*", "", " ", "**"]) {
      assert.deepEqual(await find({ field: "nick", text }), [], text);
    }
    assert.deepEqual(await find(), []);
    const [found] = await store.search([{ field: "email", text: "A@EXAMPLE.com" }], {
      limit: 1,
      findsAll: false,
    });
    assert.equal(found!.fields.get("fn"), "Alice  Müller", "as it was written");
  },

  async "search() finds those who want to be found, and with findsAll those who do not mind"(
    fixture,
  ) {
    const store = fixture.vcards("example.com");
    const fn = "<FN>Alice</FN>";
    await store.write("public", cardOf(fn));
    await store.write("silent", cardOf(fn, false));
    await store.write("private", cardOf(fn, "PRIVATE"));
    await store.write("secret", cardOf(fn, "CONFIDENTIAL"));
    await store.write("other", fn);
    const terms = [{ field: "fn", text: "alice" }] as const;
    assert.deepEqual(await namesOf(store, terms), ["public"]);
    const all = await namesOf(store, terms, { findsAll: true });
    assert.deepEqual(all.toSorted(), ["public", "silent"]);
  },

  async "search() follows changes and removals, and finds no more than its limit"(fixture) {
    const store = fixture.vcards("example.com");
    const terms = [{ field: "fn", text: "a*" }] as const;
    for (let i = 0; i < 5; i++) await store.write(`user${i}`, cardOf(`<FN>A${i}</FN>`));
    assert.deepEqual(await namesOf(store, terms, { limit: 3 }), ["user0", "user1", "user2"]);
    await store.write("user0", cardOf("<FN>B</FN>"));
    await store.write("user1", cardOf("<FN>A1</FN>", "PRIVATE"));
    await store.remove("user2");
    assert.deepEqual(await namesOf(store, terms), ["user3", "user4"]);
    assert.deepEqual(await namesOf(store, [{ field: "fn", text: "b" }]), ["user0"]);
  },

  async "search() cuts long texts alike where they are kept and where they are asked for"(fixture) {
    const store = fixture.vcards("example.com");
    const long = "é".repeat(2_000);
    await store.write("alice", cardOf(`<FN>${long}</FN>`));
    await store.write("x".repeat(300), cardOf("<FN>b</FN>"));
    assert.deepEqual(await namesOf(store, [{ field: "fn", text: long }]), ["alice"]);
    assert.deepEqual(await namesOf(store, [{ field: "fn", text: "b" }]), [], "its JID is too long");
  },

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

  async "replace() leaves a vCard that is another one by now, and none where there was none"(
    fixture,
  ) {
    const store = fixture.vcards("example.com");
    const find = (text: string) => namesOf(store, [{ field: "fn", text }]);
    const [one, two] = [cardOf("<FN>One</FN>"), cardOf("<FN>Two</FN>")];
    assert.equal(await store.replace("alice", one, two), false);
    assert.equal(await store.read("alice"), undefined);
    await store.write("alice", one);
    assert.equal(await store.replace("alice", two, undefined), false);
    assert.equal(await store.read("alice"), one);
    assert.equal(await store.replace("alice", one, two), true);
    assert.equal(await store.read("alice"), two);
    assert.deepEqual([await find("One"), await find("Two")], [[], ["alice"]]);
    assert.equal(await store.replace("alice", two, undefined), true);
    assert.equal(await store.read("alice"), undefined);
    assert.deepEqual(await find("Two"), []);
  },

  async "replace() of no vCard writes one only where there is none, at the same moment too"(
    fixture,
  ) {
    const stores = [fixture.vcards("example.com"), fixture.vcards("example.com")];
    const [store] = stores;
    const find = (text: string) => namesOf(store!, [{ field: "fn", text }]);
    const [one, two] = [cardOf("<FN>One</FN>"), cardOf("<FN>Two</FN>")];
    assert.equal(await store!.replace("alice", undefined, undefined), true);
    assert.equal(await store!.read("alice"), undefined);
    assert.equal(await store!.replace("alice", undefined, one), true);
    assert.equal(await store!.replace("alice", undefined, two), false);
    assert.equal(await store!.replace("alice", undefined, undefined), false);
    assert.equal(await store!.read("alice"), one);
    assert.deepEqual([await find("One"), await find("Two")], [["alice"], []]);
    await store!.remove("alice");
    const cards = [0, 1, 2, 3].map((i) => cardOf(`<FN>${i}</FN>`));
    const written = await Promise.all(
      cards.map((xml, i) => stores[i % 2]!.replace("alice", undefined, xml)),
    );
    assert.deepEqual(written.filter((each) => each).length, 1, `${written}`);
    assert.equal(await store!.read("alice"), cards[written.indexOf(true)]);
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
