import assert from "node:assert/strict";
import { PacedWork } from "./paced_work.ts";

/** Paced work in turns that the test makes, of pieces that take a millisecond each. */
function setUp() {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const done: number[] = [];
  const paced = new PacedWork({
    sliceMs: 2,
    nowMs: () => nowMs,
    nextTurn: (callback) => turns.push(callback),
  });
  return {
    paced,
    done,
    add: (piece: number) =>
      paced.run(() => {
        nowMs++;
        done.push(piece);
        return piece;
      }),
    nextTurn: () => turns.shift()?.(),
  };
}

Deno.test("PacedWork.run() works for one slice in each turn, in the order of the pieces", async () => {
  const { paced, done, add, nextTurn } = setUp();
  const all = Promise.all([1, 2, 3, 4, 5].map(add));
  assert.deepEqual(done, [1, 2]);
  assert.equal(paced.waiting, 3);
  nextTurn();
  assert.deepEqual(done, [1, 2, 3, 4]);
  void add(6);
  assert.deepEqual(done, [1, 2, 3, 4], "this turn has no time left");
  nextTurn();
  assert.deepEqual(done, [1, 2, 3, 4, 5, 6]);
  assert.equal(paced.waiting, 0);
  assert.deepEqual(await all, [1, 2, 3, 4, 5]);
});

Deno.test("PacedWork.run() goes on after a piece that throws, and tells its caller", async () => {
  const { paced, add } = setUp();
  const failure = new Error("no");
  await assert.rejects(
    paced.run(() => {
      throw failure;
    }),
    failure,
  );
  assert.equal(await add(1), 1);
});

Deno.test("PacedWork.run() takes a piece from within another one", async () => {
  const { paced, done, add } = setUp();
  const inner = paced.run(() => {
    const last = add(2);
    assert.deepEqual(done, []);
    return last;
  });
  assert.equal(await inner, 2);
});

Deno.test("PacedWork lets the event loop read between two slices", async () => {
  const paced = new PacedWork({ sliceMs: 0.1 });
  const order: string[] = [];
  const busy = (name: string) => () => {
    const endMs = performance.now() + 1;
    while (performance.now() < endMs);
    order.push(name);
  };
  const pieces = [paced.run(busy("first")), paced.run(busy("second")), paced.run(busy("third"))];
  assert.deepEqual(order, ["first"]);
  assert.equal(paced.waiting, 2);
  await Promise.all(pieces);
  assert.deepEqual(order, ["first", "second", "third"]);
});
