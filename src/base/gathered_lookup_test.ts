import assert from "node:assert/strict";
import { GatheredLookup } from "./gathered_lookup.ts";

/** A lookup whose questions are answered by hand: each key with its upper case, but for `none`. */
function setUp(keysAtOnce: number) {
  const questions: { keys: readonly string[]; answer(failure?: Error): void }[] = [];
  const lookup = new GatheredLookup<string>((keys) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, string>>();
    const known = keys.filter((key) => key !== "none");
    questions.push({
      keys,
      answer: (failure) =>
        failure === undefined
          ? resolve(new Map(known.map((key) => [key, key.toUpperCase()])))
          : reject(failure),
    });
    return promise;
  }, keysAtOnce);
  return { lookup, questions };
}

Deno.test("GatheredLookup.find() asks at once, and gathers while a question is under way", async () => {
  const { lookup, questions } = setUp(10);
  const first = lookup.find("a");
  assert.deepEqual(questions.map(({ keys }) => keys), [["a"]]);
  const others = ["b", "none", "b"].map((key) => lookup.find(key));
  assert.equal(questions.length, 1);
  questions[0]!.answer();
  assert.equal(await first, "A");
  assert.deepEqual(questions[1]!.keys, ["b", "none"]);
  questions[1]!.answer();
  assert.deepEqual(await Promise.all(others), ["B", undefined, "B"]);
});

Deno.test("GatheredLookup.find() asks for a bounded number of keys with one question", async () => {
  const { lookup, questions } = setUp(2);
  const all = ["a", "b", "c", "d"].map((key) => lookup.find(key));
  for (let at = 0; at < questions.length; at++) {
    questions[at]!.answer();
    await all[2 * at];
  }
  assert.deepEqual(await Promise.all(all), ["A", "B", "C", "D"]);
  assert.deepEqual(questions.map(({ keys }) => keys), [["a"], ["b", "c"], ["d"]]);
});

Deno.test("GatheredLookup.find() rejects for the keys of a question that failed, and goes on", async () => {
  const { lookup, questions } = setUp(10);
  const first = lookup.find("a");
  const second = lookup.find("b");
  questions[0]!.answer(new Error("away"));
  await assert.rejects(first, /away/);
  questions[1]!.answer();
  assert.equal(await second, "B");
});
