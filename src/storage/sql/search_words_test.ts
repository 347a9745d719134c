import assert from "node:assert/strict";
import fc from "fast-check";
import { AWKWARD_TEXTS } from "../testing/awkward_texts.ts";
import { keyOf } from "./keys.ts";
import { searchedWordsOf, wordOfArchive, wordsOf } from "./search_words.ts";

/** True when a message with a text is found by a search. */
function isFound(text: string, search: string): boolean {
  const words = new Set(wordsOf(text));
  const searched = searchedWordsOf(search);
  return searched.length > 0 && searched.every((word) => words.has(word));
}

Deno.test("wordsOf() gives each word once, whatever its case and form", () => {
  assert.deepEqual(wordsOf("The the THE a 7th"), ["xxthe", "xxa", "xx7th"]);
  assert.deepEqual(wordsOf("n\u0303andu ñANDU"), wordsOf("Ñandu"));
  assert.deepEqual(wordsOf("ｆｕｌｌ"), ["xxfull"]);
  assert.deepEqual(wordsOf(" -- \u{1f600} ' \" "), []);
});

Deno.test("wordsOf() gives letters and digits alone, of a length that no engine leaves out", () => {
  const texts = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...AWKWARD_TEXTS));
  fc.assert(fc.property(texts, (text) => {
    for (const word of [...wordsOf(text), ...searchedWordsOf(text)]) {
      assert.match(word, /^[a-z0-9]{3,82}$/);
    }
  }));
  for (const word of ["a", "я", "x".repeat(60), "x".repeat(61), "я".repeat(20), "я".repeat(21)]) {
    assert.match(wordsOf(word).join(" "), /^[a-z0-9]{3,82}$/);
  }
});

Deno.test("a message is found by its own text, if that has a word", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    assert.equal(isFound(text, text), wordsOf(text).length > 0);
  }));
});

Deno.test("words of different kinds are never the same", () => {
  const long = wordsOf("я".repeat(21))[0]!;
  assert.equal(isFound(long, "я".repeat(21)), false);
  assert.equal(isFound(wordsOf("я")[0]!, "я"), false);
  const archive = wordOfArchive(keyOf("alice@example.com"));
  assert.match(archive, /^xa[0-9a-f]{16}$/);
  assert.ok(!wordsOf(archive).includes(archive));
});

Deno.test("scripts without spaces are found by any part of their words", () => {
  const text = "明日、東京タワーで会いましょう iPhone手机";
  for (
    const search of ["東京", "東", "タワー", "会いましょう", "京タ", "iphone", "手机", "明日 手"]
  ) {
    assert.ok(isFound(text, search), search);
  }
  for (const search of ["京東", "タで", "手iphone 天", "phone"]) {
    assert.ok(!isFound(text, search), search);
  }
  assert.ok(isFound("학교에 갔다", "학교"));
  assert.ok(isFound("พรุ่งนี้เจอกัน", "เจอ"));
});

Deno.test("wordsOf() gives the first words of a message that has too many", () => {
  const han = Array.from(
    { length: 32_768 },
    (_, i) => String.fromCodePoint(0x20_000 + i * 7_919 % 42_711),
  ).join("");
  const latin = Array.from({ length: 10_000 }, (_, i) => i.toString(36)).join(" ");
  const long = Array.from({ length: 2_500 }, (_, i) => `${i}${"x".repeat(61)}`).join(" ");
  for (const text of [han, latin, long, `${long} ${han}`]) {
    const words = wordsOf(text);
    assert.ok(words.length <= 4_096, `${words.length}`);
    assert.ok(words.join(" ").length <= 65_536);
    const beginning = text.slice(0, 1_000);
    assert.ok(isFound(text, beginning.slice(0, beginning.lastIndexOf(" "))), "it is found");
  }
  assert.equal(wordsOf(latin).length, 4_096);
  assert.equal(wordsOf(han).length, 4_096);
  assert.ok(wordsOf(long).join(" ").length > 65_000);
});
