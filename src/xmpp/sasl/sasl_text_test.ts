import assert from "node:assert/strict";
import fc from "fast-check";
import { encodeSaslText, tryDecodeSaslText } from "./sasl_text.ts";

Deno.test("tryDecodeSaslText() undoes encodeSaslText()", () => {
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), (text) => {
    assert.equal(tryDecodeSaslText(encodeSaslText(text)), text);
  }));
});

Deno.test("tryDecodeSaslText() reads = and an empty text as an empty message", () => {
  assert.equal(tryDecodeSaslText("="), "");
  assert.equal(tryDecodeSaslText(""), "");
});

Deno.test("tryDecodeSaslText() refuses text that is not base64 of UTF-8", () => {
  for (const text of ["a", "ab==c", "a b=", "abc\n", "YWJj=", "_-__", "/w==", "7aCA"]) {
    assert.equal(tryDecodeSaslText(text), undefined, text);
  }
});
