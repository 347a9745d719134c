import { deepStrictEqual } from "node:assert/strict";
import { STAMP_DIGITS, StampScanner, writeStamp } from "./stamp_scanner.ts";

const STAMPS = [0, 7, 999_999_999_999, 123_456_789_012];

function stream(): Uint8Array {
  const text = STAMPS.map((stamp) =>
    `<body>~${String(stamp).padStart(STAMP_DIGITS, "0")} x</body>`
  );
  return new TextEncoder().encode(text.join(""));
}

Deno.test("StampScanner.push() finds every stamp wherever the stream is cut", () => {
  const bytes = stream();
  for (let first = 0; first <= bytes.length; first++) {
    for (const second of [first, first + 1, first + 13]) {
      const found: number[] = [];
      const scanner = new StampScanner((stamp) => found.push(stamp));
      scanner.push(bytes.subarray(0, first));
      scanner.push(bytes.subarray(first, second));
      scanner.push(bytes.subarray(second));
      deepStrictEqual(found, STAMPS, `cut at ${first} and ${second}`);
    }
  }
});

Deno.test("StampScanner.push() finds every stamp byte by byte", () => {
  const found: number[] = [];
  const scanner = new StampScanner((stamp) => found.push(stamp));
  for (const byte of stream()) scanner.push(Uint8Array.of(byte));
  deepStrictEqual(found, STAMPS);
});

Deno.test("writeStamp() writes what StampScanner.push() reads", () => {
  for (const stamp of STAMPS) {
    const bytes = new TextEncoder().encode(`<~${"x".repeat(STAMP_DIGITS)}>`);
    writeStamp(bytes, 2, stamp);
    const found: number[] = [];
    new StampScanner((value) => found.push(value)).push(bytes);
    deepStrictEqual(found, [stamp]);
    deepStrictEqual(bytes.at(-1), ">".charCodeAt(0));
  }
});
