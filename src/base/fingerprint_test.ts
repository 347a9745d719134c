import assert from "node:assert/strict";
import fc from "fast-check";
import { beginPrint, endPrint, mixAscii, mixBytes, mixText } from "./fingerprint.ts";

const ENCODER = new TextEncoder();

function printOfBytes(bytes: Uint8Array): number {
  beginPrint(bytes.length);
  mixBytes(bytes, 0, bytes.length);
  return endPrint();
}

function printOfTexts(...texts: readonly string[]): number {
  beginPrint(texts.length);
  for (const text of texts) mixText(text);
  return endPrint();
}

Deno.test("a fingerprint is a positive integer below 2^53, the same for the same contents", () => {
  fc.assert(fc.property(fc.array(fc.string({ unit: "binary" })), (texts) => {
    const prints = [printOfTexts(...texts), printOfBytes(ENCODER.encode(texts.join()))];
    assert.ok(prints.every((print) => Number.isSafeInteger(print) && print > 0));
    assert.deepEqual([printOfTexts(...texts), printOfBytes(ENCODER.encode(texts.join()))], prints);
  }));
});

Deno.test("fingerprints of alike contents differ", () => {
  const seen = new Set<number>();
  for (let i = 0; i < 20_000; i++) {
    seen.add(printOfTexts("alice@example.com/phone", "bob@example.com", `id${i}`));
    seen.add(printOfBytes(ENCODER.encode(`<message id='${i}'/>`)));
  }
  for (const texts of [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["", "abc"], ["é"], []]) {
    seen.add(printOfTexts(...texts));
  }
  assert.equal(seen.size, 40_007);
});

Deno.test("mixAscii() adds what mixText() does", () => {
  fc.assert(fc.property(fc.string({ unit: "binary-ascii" }), fc.nat(3), (text, before) => {
    const bytes = ENCODER.encode("x".repeat(before) + text);
    beginPrint(1);
    mixAscii(bytes, before, bytes.length);
    assert.equal(endPrint(), printOfTexts(text));
  }));
});
