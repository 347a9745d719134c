import assert from "node:assert/strict";
import fc from "fast-check";
import { CausewayError } from "../../base/mod.ts";
import { BareJid, FullJid } from "./jid.ts";
import {
  jidFromBytes,
  MAX_JID_PART_BYTES,
  parseJid,
  tryMakeJid,
  tryParseJid,
  tryPrepareLocalpart,
} from "./jid_parser.ts";

/** Written texts, and their normalised form; undefined where the text is not a JID. */
const CASES: readonly (readonly [string, string | undefined])[] = [
  ["alice@example.com", "alice@example.com"],
  ["Alice@Example.COM/Phone", "alice@example.com/Phone"],
  ["example.com", "example.com"],
  ["example.com.", "example.com"],
  ["example.com..", undefined],
  ["a@example.com./r", "a@example.com/r"],
  ["example.com/foo@bar/baz", "example.com/foo@bar/baz"],
  ["a@b/c/d@e", "a@b/c/d@e"],
  ["fussball@example.com", "fussball@example.com"],
  ["fußball@example.com", "fußball@example.com"],
  ["π@example.com", "π@example.com"],
  ["Σ@example.com/foo", "σ@example.com/foo"],
  ["ς@example.com/foo", "ς@example.com/foo"],
  ["king@example.com/♚", "king@example.com/♚"],
  ["ＡＬＩＣＥ@example.com", "alice@example.com"],
  ["a＠b@example.com", undefined],
  ["e\u0301@example.com", "é@example.com"],
  ["a@example.com/e\u0301", "a@example.com/é"],
  ["a@example.com/a\u00a0b\u3000c", "a@example.com/a b c"],
  ["a@example.com/ spaced ", "a@example.com/ spaced "],
  ["a@bücher.example", "a@bücher.example"],
  ["a@xn--bcher-kva.example", "a@bücher.example"],
  ["a@XN--BCHER-KVA.EXAMPLE", "a@bücher.example"],
  ["a@BÜCHER。example", "a@bücher.example"],
  ["a@faß.example", "a@faß.example"],
  ["a@[::1]", "a@[::1]"],
  ["a@[0:0:0:0:0:0:0:1]/r", "a@[::1]/r"],
  ["a@[2001:DB8::A]", "a@[2001:db8::a]"],
  ["a@127.0.0.1", "a@127.0.0.1"],
  ["شهرام@example.com", "شهرام@example.com"],
  ["", undefined],
  ["@example.com", undefined],
  ["a@", undefined],
  ["a@/r", undefined],
  ["/r", undefined],
  ["a@example.com/", undefined],
  ["a@b@c", undefined],
  ["a b@example.com", undefined],
  ['"a"@example.com', undefined],
  ["a&b@example.com", undefined],
  ["a'b@example.com", undefined],
  ["a:b@example.com", undefined],
  ["<a>@example.com", undefined],
  ["a\u0000@example.com", undefined],
  ["a\u007f@example.com", undefined],
  ["henryⅣ@example.com", undefined],
  ["♚@example.com", undefined],
  ["a\u200b@example.com", undefined],
  ["a\u00ad@example.com", undefined],
  ["a\u0378@example.com", undefined],
  ["aש@example.com", undefined],
  ["\u0661\u06f1@example.com", undefined],
  ["a\u00b7b@example.com", undefined],
  ["l\u00b7l@example.com", "l\u00b7l@example.com"],
  ["क्\u200dष@example.com", "क्\u200dष@example.com"],
  ["a\u200db@example.com", undefined],
  ["a\u{10a3f}\u200db@example.com", "a\u{10a3f}\u200db@example.com"],
  ["ب\u064b\u200c\u064bب@example.com", "ب\u064b\u200c\u064bب@example.com"],
  ["ب\u200c@example.com", undefined],
  ["ب\u200ca@example.com", undefined],
  ["a\u200cب@example.com", undefined],
  ["a@example.com/é\u30fbア", "a@example.com/é\u30fbア"],
  ["a@example.com/é\u30fb", undefined],
  ["a@example.com/\u0375α", "a@example.com/\u0375α"],
  ["a@example.com/α\u0375", undefined],
  ["a@example.com/א\u05f3", "a@example.com/א\u05f3"],
  ["a@example.com/\u05f3א", undefined],
  ["a@example.com/\u0007", undefined],
  ["a@example.com/a\ud800", undefined],
  ["a@-example.com", undefined],
  ["a@example-.com", undefined],
  ["a@exa_mple.com", undefined],
  ["a@exam ple.com", undefined],
  ["a@example.com:5222", undefined],
  ["a@[::1", undefined],
  ["a@[fe80::1%25lo]", undefined],
  ["a@☃.example", undefined],
  ["a@xn--.example", undefined],
  ["a@..", undefined],
  ["a@.", undefined],
  [`a@${"x".repeat(64)}.com`, undefined],
];

Deno.test("parseJid() normalises each part by RFC 7622, or refuses it", () => {
  for (const [written, expected] of CASES) {
    assert.equal(tryParseJid(written)?.text, expected, JSON.stringify(written));
  }
});

Deno.test("parseJid() splits the parts at the first slash and the first at sign", () => {
  const jid = parseJid("Alice@Example.com/at@slash/");
  assert.ok(jid instanceof FullJid);
  assert.equal(jid.localpart, "alice");
  assert.equal(jid.domainpart, "example.com");
  assert.equal(jid.resourcepart, "at@slash/");
  assert.equal(jid.bare.text, "alice@example.com");
  const domain = parseJid("example.com");
  assert.ok(domain instanceof BareJid);
  assert.equal(domain.localpart, "");
});

Deno.test("parseJid() throws xmpp/jid-malformed for text that is not a JID", () => {
  assert.throws(
    () => parseJid("a@b@c"),
    (thrown) => thrown instanceof CausewayError && thrown.code === "xmpp/jid-malformed",
  );
});

Deno.test("parseJid() returns the same object for a text seen before, and full JIDs share a bare JID", () => {
  const first = parseJid("same@example.com/one");
  assert.equal(parseJid("same@example.com/one"), first);
  assert.equal(parseJid("SAME@example.com./one"), first);
  assert.equal(first.bare, parseJid("same@example.com"));
  assert.equal(parseJid("same@example.com/two").bare, first.bare);
});

Deno.test("parseJid() accepts 1023 bytes in a part and refuses 1024", () => {
  const label = "d".repeat(63);
  const domain1023 = `${`${label}.`.repeat(15)}${"e".repeat(63)}`;
  assert.equal(domain1023.length, MAX_JID_PART_BYTES);
  const domain1024 = `${`${label}.`.repeat(15)}${"e".repeat(62)}.f`;
  assert.equal(domain1024.length, MAX_JID_PART_BYTES + 1);
  const twoBytes = "é".repeat(511);
  const valid = [
    `${"a".repeat(1023)}@example.com`,
    `a@example.com/${"r".repeat(1023)}`,
    `a@${domain1023}`,
    `${twoBytes}a@example.com`,
    `a@example.com/${twoBytes}a`,
  ];
  const invalid = [
    `${"a".repeat(1024)}@example.com`,
    `a@example.com/${"r".repeat(1024)}`,
    `a@${domain1024}`,
    `${twoBytes}aa@example.com`,
    `a@example.com/${twoBytes}aa`,
  ];
  for (const text of valid) assert.equal(tryParseJid(text)?.text, text);
  for (const text of invalid) assert.equal(tryParseJid(text), undefined);
  assert.ok(tryParseJid(`${"a".repeat(1023)}@${domain1023}/${"r".repeat(1023)}`) !== undefined);
});

Deno.test("parseJid() refuses a part written in more than 1023 units, however short it normalises", () => {
  // Both normalise to 1023 bytes: full-width letters to as many narrow ones, pairs to one letter each.
  const most = "Ａ".repeat(1023);
  assert.equal(tryMakeJid(most, "example.com")?.localpart, "a".repeat(1023));
  assert.ok(tryMakeJid("", "example.com", "e\u0301".repeat(511)) !== undefined);
  assert.equal(tryMakeJid(`${most}Ａ`, "example.com"), undefined);
  // Four units that normalise to one letter of three bytes: the result would be short enough.
  const shrinking = `${"a".repeat(1000)}${"α\u0313\u0300\u0345".repeat(7)}`;
  assert.ok(new TextEncoder().encode(shrinking.normalize("NFC")).length <= MAX_JID_PART_BYTES);
  assert.equal(tryMakeJid(shrinking, "example.com"), undefined);
  assert.equal(tryMakeJid("", "example.com", shrinking), undefined);
});

Deno.test("tryPrepareLocalpart() returns the same localpart as parseJid()", () => {
  for (const [written, expected] of CASES) {
    const at = written.indexOf("@");
    if (at <= 0 || written.includes("/") || !written.endsWith("@example.com")) continue;
    const localpart = expected === undefined ? undefined : tryParseJid(expected)?.localpart;
    assert.equal(tryPrepareLocalpart(written.slice(0, at)), localpart, JSON.stringify(written));
  }
  assert.equal(tryPrepareLocalpart(""), undefined);
  assert.equal(tryPrepareLocalpart("a".repeat(1024)), undefined);
});

Deno.test("parseJid() accepts 30 marks in a row and refuses 31", () => {
  for (const base of ["a", "漢"]) {
    for (const mark of ["\u0316", "\uff9e"]) {
      const [most, more] = [base + mark.repeat(30), base + mark.repeat(31)];
      assert.ok(tryMakeJid(most, "example.com") !== undefined, most);
      assert.equal(tryMakeJid(more, "example.com"), undefined, more);
      assert.equal(tryMakeJid("", "example.com", more), undefined, more);
      assert.equal(tryMakeJid("", `${more}.example`), undefined, more);
    }
  }
  // The text has 30 marks as written, and 31 after the capital, or a mark, is decomposed. Nobody could
  // read the result again.
  assert.equal(tryMakeJid(`İ${"\u0316".repeat(30)}`, "example.com"), undefined);
  assert.equal(tryMakeJid("", "example.com", `α${"\u0344".repeat(16)}`), undefined);
});

Deno.test("parseJid() is idempotent, and rejoining its parts gives the same JID", () => {
  const unusual = fc.constantFrom(
    ..."aZ0.-_ßİıſKǅΣςσﬁＡｂ１ｶﾞé\u0301\u0308\u0323שלא\u0660\u06f0م\u094dक\u200d\u200c漢한ΐ\u00a0\u3000。♥😀",
  );
  const part = fc.oneof(
    fc.string({ unit: unusual, minLength: 1, maxLength: 5 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }),
    fc.stringMatching(/^[a-zA-Z0-9.-]{1,12}$/),
  );
  const text = fc.oneof(
    fc.tuple(part, part, part).map(([l, d, r]) => `${l}@${d}/${r}`),
    fc.tuple(part, part).map(([l, d]) => `${l}@${d}.example`),
    fc.tuple(part, part).map(([l, r]) => `${l}@example.com/${r}`),
    part.map((l) => `${l}@example.com`),
    part,
  );
  let valid = 0;
  fc.assert(
    fc.property(text, (written) => {
      const jid = tryParseJid(written);
      if (jid === undefined) return;
      valid++;
      // The test prepares the parts again from the start, because `parseJid(jid.text)` would find them
      // in the cache.
      assert.doesNotMatch(jid.localpart + jid.domainpart, /[@/]/);
      const resource = jid instanceof FullJid ? jid.resourcepart : undefined;
      assert.equal(tryMakeJid(jid.localpart, jid.domainpart, resource)?.text, jid.text);
      for (const one of [jid.localpart, jid.domainpart, resource ?? ""]) {
        assert.ok(new TextEncoder().encode(one).length <= MAX_JID_PART_BYTES);
      }
    }),
    { numRuns: 3000 },
  );
  assert.ok(valid > 300, `${valid} of 3000 texts were JIDs`);
});

Deno.test("jidFromBytes() accepts the same texts as parseJid(), and returns the same object", () => {
  const encoder = new TextEncoder();
  for (const [written, expected] of CASES) {
    if (!written.isWellFormed()) continue;
    const bytes = encoder.encode(`to='${written}'`);
    for (let round = 0; round < 2; round++) {
      const jid = jidFromBytes(bytes, 4, bytes.length - 1);
      assert.equal(jid?.text, expected, JSON.stringify(written));
      if (jid !== undefined) assert.equal(jid, parseJid(written));
    }
  }
  assert.equal(jidFromBytes(Uint8Array.of(0x61, 0xc0, 0x80), 0, 3), undefined);
});

Deno.test("utf8 of a JID is its text, encoded once", () => {
  for (const text of ["example.com", "jürgen@example.com", "alice@example.com/Büro 7"]) {
    const jid = parseJid(text);
    assert.deepEqual(jid.utf8, new TextEncoder().encode(text));
    assert.equal(jid.utf8, jid.utf8);
  }
});
