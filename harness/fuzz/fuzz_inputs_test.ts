import assert from "node:assert/strict";
import { fuzzInputs } from "./fuzz_inputs.ts";
import { Mutator } from "./mutator.ts";

Deno.test("fuzzInputs() begins with all that is kept, unchanged, and goes on with changes of it", () => {
  const kept = [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4, 5)];
  const [one, two, three] = kept;
  const inputs = fuzzInputs(kept, { mutator: new Mutator(1, { tokens: [] }), times: 2 });
  assert.deepEqual(inputs.take(6).toArray(), [one, one, two, two, three, three]);

  const changed = fuzzInputs(kept, { mutator: new Mutator(1, { tokens: [] }), times: 1 })
    .drop(3).take(100).filter((input) => kept.every((each) => each !== input)).toArray();
  assert.ok(changed.length > 50);
  assert.deepEqual(kept, [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4, 5)]);
});
