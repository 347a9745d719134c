import assert from "node:assert/strict";
import fc from "fast-check";
import { FingerprintSet } from "./fingerprint_set.ts";

const MAX_PRINT = Number.MAX_SAFE_INTEGER;

/** A few values that collide in their low bits, so that cells run into one another. */
const print = fc.oneof(
  fc.integer({ min: 1, max: 40 }).map((n) => n * 32 + 1),
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: MAX_PRINT - 20, max: MAX_PRINT }),
);

Deno.test("FingerprintSet holds the same values as a Set after any additions and deletions", () => {
  const command = fc.tuple(fc.constantFrom("add", "delete", "clear"), print);
  fc.assert(fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
    const set = new FingerprintSet(16);
    const model = new Set<number>();
    const seen = new Set<number>();
    for (const [kind, value] of commands) {
      seen.add(value);
      if (kind === "clear" || (kind === "add" && set.isFull)) {
        set.clear();
        model.clear();
      } else if (kind === "add") {
        set.add(value);
        model.add(value);
      } else {
        set.delete(value);
        model.delete(value);
      }
      for (const each of seen) assert.equal(set.has(each), model.has(each), String(each));
    }
  }));
});

Deno.test("FingerprintSet.isFull becomes true with the last print that has room", () => {
  const set = new FingerprintSet(5);
  for (let n = 1; n <= 5; n++) {
    assert.equal(set.isFull, false);
    set.add(n);
    set.add(n); // takes no further cell
  }
  assert.equal(set.isFull, true);
  set.delete(1);
  assert.equal(set.isFull, true); // its cell is still in use
  set.clear();
  assert.equal(set.isFull, false);
});
