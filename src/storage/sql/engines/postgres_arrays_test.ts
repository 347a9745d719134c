import { strictEqual } from "node:assert/strict";
import { bigintArray, byteaArray, textArray } from "./postgres_arrays.ts";

// Heads: one dimension, nulls allowed, the type of the elements, their number, first index 1.

Deno.test("byteaArray() writes each value behind its length, and NULL as a length alone", () => {
  const array = byteaArray([Uint8Array.of(1, 2), null, new Uint8Array()]);
  strictEqual(
    array.toString("hex"),
    "00000001" + "00000001" + "00000011" + "00000003" + "00000001" +
      "00000002" + "0102" + "ffffffff" + "00000000",
  );
});

Deno.test("bigintArray() writes safe integers of both signs in eight bytes", () => {
  const array = bigintArray([1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);
  strictEqual(
    array.toString("hex"),
    "00000001" + "00000001" + "00000014" + "00000004" + "00000001" +
      "00000008" + "0000000000000001" + "00000008" + "ffffffffffffffff" +
      "00000008" + "001fffffffffffff" + "00000008" + "ffe0000000000001",
  );
});

Deno.test("textArray() writes UTF-8, and lengths in bytes", () => {
  strictEqual(
    textArray(["a", "\u00e9\u{1f600}"]).toString("hex"),
    "00000001" + "00000001" + "00000019" + "00000002" + "00000001" +
      "00000001" + "61" + "00000006" + "c3a9f09f9880",
  );
});
