import assert from "node:assert/strict";
import fc from "fast-check";
import { GaplessCount } from "./gapless_count.ts";

Deno.test("GaplessCount.done is the last number before the first gap", () => {
  fc.assert(fc.property(
    fc.nat(5),
    fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 30 }),
    (done, numbers) => {
      const count = new GaplessCount(done);
      const all = new Set(Array.from({ length: done }, (_, i) => i + 1));
      for (const number of numbers) {
        count.add(number);
        all.add(number);
        let last = 0;
        while (all.has(last + 1)) last++;
        assert.equal(count.done, last);
      }
    },
  ));
});
