import assert from "node:assert/strict";
import { Mutator } from "./mutator.ts";

const UTF8 = new TextEncoder();

Deno.test("Mutator repeats its inputs from their seed, and differs with another", () => {
  const run = (seed: number) => {
    const mutator = new Mutator(seed, { tokens: [UTF8.encode("<x>")] });
    return Array.from(
      { length: 50 },
      () => mutator.mutate(UTF8.encode("hello"), UTF8.encode("you")).join(),
    );
  };
  assert.deepEqual(run(1), run(1));
  assert.notDeepEqual(run(1), run(2));
});

Deno.test("Mutator leaves its input alone and keeps to its bound", () => {
  const input = UTF8.encode("hello");
  const mutator = new Mutator(3, { tokens: [UTF8.encode("token")], maxBytes: 8 });
  let changed = 0;
  for (let i = 0; i < 1000; i++) {
    const mutated = mutator.mutate(input, UTF8.encode("other"));
    assert.ok(mutated.length <= 8);
    if (mutated.join() !== input.join()) changed++;
  }
  assert.equal(new TextDecoder().decode(input), "hello");
  assert.ok(changed > 900);
});
