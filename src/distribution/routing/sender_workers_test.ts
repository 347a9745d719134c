import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { SenderWorkers } from "./sender_workers.ts";
import type { Finish, SenderWorkersDeps } from "./sender_workers.ts";

/** Rules for up to `maxItems` items of one byte each, from any sender; the lower is older. */
function upTo(maxItems: number, maxBytes = Infinity): SenderWorkersDeps<number | string> {
  const shares = new FairShares({ maxItems, maxBytes });
  return {
    sharesOf: () => shares,
    lookedUp: new FairShares(),
    holdersOf: () => NOBODY,
    bytesOf: () => 1,
    isOlder: (item, other) => item < other,
  };
}

const NOBODY = { singles: [], crowds: [] };

Deno.test("SenderWorkers keeps a sender's items in order behind one that waits", async () => {
  const done: number[] = [];
  const gates = new Map<number, PromiseWithResolvers<void>>();
  const workers = new SenderWorkers<number>((item) => {
    const gate = gates.get(item);
    if (gate === undefined) {
      done.push(item);
      return undefined;
    }
    return gate.promise.then(() => () => void done.push(item));
  }, upTo(100));
  const first = Promise.withResolvers<void>();
  gates.set(3, Promise.withResolvers());
  workers.begin("a", 0, first.promise.then(() => () => void done.push(1)));
  for (const item of [2, 3, 4]) assert.equal(workers.enqueue("a", item), true);
  assert.deepEqual(done, []);
  assert.equal(workers.isBusy("b"), false);
  first.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(done, [1, 2]);
  assert.equal(workers.queued, 1);
  gates.get(3)!.resolve();
  await workers.idle();
  assert.deepEqual(done, [1, 2, 3, 4]);
  assert.equal(workers.active, 0);
  assert.equal(workers.queued, 0);
});

Deno.test("SenderWorkers goes on within the call that ends a wait, however many end within it", async () => {
  const done: number[] = [];
  const wait = (item: number) => {
    let end = () => {};
    const pending = {
      whenOver: (goOn: (rest: Finish) => void) => end = () => goOn(() => void done.push(item)),
    };
    return { pending, end: () => end() };
  };
  const first = wait(0);
  let second: ReturnType<typeof wait> | undefined;
  const workers = new SenderWorkers<number>((item) => {
    if (item === 1) return (second = wait(1)).pending;
    // Its wait is over already. There may be very many of them.
    return { whenOver: (goOn) => goOn(() => void done.push(item)) };
  }, upTo(100_000));
  workers.begin("a", 0, first.pending);
  for (let item = 1; item <= 50_000; item++) workers.enqueue("a", item);
  first.end();
  assert.deepEqual(done, [0]);
  second!.end();
  assert.equal(done.length, 50_001);
  assert.equal(workers.active, 0);
  assert.equal(workers.begin("b", 0, { whenOver: (goOn) => goOn(() => {}) }), true);
  assert.equal(workers.isBusy("b"), false);
  await workers.idle();
});

Deno.test("SenderWorkers.enqueue() refuses one past its bound", async () => {
  const workers = new SenderWorkers<number>(() => undefined, upTo(2));
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 0, first.promise);
  assert.deepEqual([1, 2, 3].map((item) => workers.enqueue("a", item)), [true, true, false]);
  first.resolve(() => {});
  await workers.idle();
});

Deno.test("SenderWorkers.enqueue() takes items up to the bound in bytes that they count for", async () => {
  const answers = new FairShares({ maxBytes: 6 });
  const stanzas = new FairShares({ maxBytes: 6 });
  const workers = new SenderWorkers<number>(() => undefined, {
    ...upTo(100),
    sharesOf: (item) => item < 0 ? answers : stanzas,
    bytesOf: (item) => Math.abs(item),
  });
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 0, first.promise);
  const taken = [1, 2, 3, 1, -7, -6, -1].map((item) => workers.enqueue("a", item));
  assert.deepEqual(taken, [true, true, true, false, false, true, false]);
  assert.equal(workers.queuedBytes, 12);
  first.resolve(() => {});
  await workers.idle();
  assert.deepEqual([workers.queued, workers.queuedBytes], [0, 0]);
  assert.deepEqual([stanzas.bytes, answers.bytes], [0, 0]);
});

Deno.test("SenderWorkers takes no room from others when one sender fills its share", async () => {
  const shares = new FairShares({ maxItems: 100 });
  const workers = new SenderWorkers<string>(() => undefined, {
    ...upTo(100),
    sharesOf: () => shares,
    holdersOf: (item) => ({ singles: [item], crowds: [] }),
  });
  const first = Promise.withResolvers<Finish>();
  for (const sender of ["eve", "alice"]) workers.begin(sender, sender, first.promise);
  let taken = 0;
  while (workers.enqueue("eve", "eve")) taken++;
  assert.equal(taken, 20);
  for (let n = 0; n < 10; n++) assert.equal(workers.enqueue("alice", "alice"), true);
  first.resolve(() => {});
  await workers.idle();
  assert.equal(shares.items, 0);
});

Deno.test("SenderWorkers counts items in a lookup, and begins none past their bound", async () => {
  const lookedUp = new FairShares({ maxItems: 2 });
  const test = new Gated({ lookedUp });
  const { workers, done } = test;
  assert.equal(workers.begin("a", "New", test.handle("New")!), true);
  assert.equal(workers.begin("b", "Other", test.handle("Other")!), true);
  assert.equal(workers.begin("c", "Third", test.handle("Third")!), false);
  assert.equal(workers.isBusy("c"), false);
  workers.enqueue("a", "Newer");
  assert.equal(lookedUp.items, 2);
  await test.open("New");
  assert.equal(lookedUp.items, 2); // "Newer" is in its lookup now
  await test.open("Newer");
  await test.open("Other");
  await workers.idle();
  assert.deepEqual([done, lookedUp.items, lookedUp.bytes], [["New", "Newer", "Other"], 0, 0]);
});

Deno.test("SenderWorkers takes items enqueued while it works, past its compaction point", async () => {
  const done: number[] = [];
  const workers = new SenderWorkers<number>((item) => {
    done.push(item);
    return item % 7 === 0 ? Promise.resolve(() => {}) : undefined;
  }, upTo(10_000));
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 0, first.promise);
  const expected = Array.from({ length: 5000 }, (_, i) => i);
  for (const item of expected) workers.enqueue("a", item);
  first.resolve(() => {});
  await workers.idle();
  assert.deepEqual(done, expected);
});

Deno.test("SenderWorkers reports a long queue once, and again when it is gone", async () => {
  const told: string[] = [];
  const workers = new SenderWorkers<number>(
    () => undefined,
    upTo(10_000),
    (item, isOver) => void told.push(`${item} ${isOver}`),
  );
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 0, first.promise);
  for (let item = 1; item < 256; item++) workers.enqueue("a", item);
  assert.deepEqual(told, []);
  for (let item = 256; item < 1000; item++) workers.enqueue("a", item);
  assert.deepEqual(told, ["256 true"]);
  first.resolve(() => {});
  await workers.idle();
  assert.deepEqual(told, ["256 true", "256 false"]);
});

Deno.test("SenderWorkers.enqueue() throws for an idle sender", () => {
  const workers = new SenderWorkers<number>(() => undefined, upTo(1));
  assert.throws(() => workers.enqueue("a", 1), RangeError);
});

/** A worker whose items finish when their gates open. */
class Gated {
  readonly done: string[] = [];
  readonly gates = new Map<string, PromiseWithResolvers<void>>();
  readonly workers: SenderWorkers<string>;

  constructor(
    rules: Partial<SenderWorkersDeps<string>> = {},
    pressure: (item: string, isOver: boolean) => void = () => {},
  ) {
    this.workers = new SenderWorkers<string>((item) => this.handle(item), {
      ...upTo(100),
      isOlder: (item, other) => item.at(-1)! < other.at(-1)!,
      ...rules,
    }, pressure);
  }

  /** Handles `item`, which has to wait when it begins with a capital. */
  handle(item: string): Promise<Finish> | undefined {
    if (item === item.toLowerCase()) {
      this.done.push(item);
      return undefined;
    }
    const gate = Promise.withResolvers<void>();
    this.gates.set(item, gate);
    return gate.promise.then(() => () => void this.done.push(item));
  }

  async open(item: string): Promise<void> {
    this.gates.get(item)!.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

Deno.test("SenderWorkers does returned items before the item that waits, in their own order", async () => {
  const test = new Gated();
  const { workers, done } = test;
  workers.begin("a", "New", test.handle("New")!);
  workers.enqueue("a", "newer");
  for (const old of ["old1", "Old2", "old3"]) workers.enqueue("a", old, { isReturned: true });
  await test.open("New");
  assert.deepEqual(done, ["old1"]);
  workers.enqueue("a", "old4", { isReturned: true });
  await test.open("Old2");
  await workers.idle();
  assert.deepEqual(done, ["old1", "Old2", "old3", "old4", "New", "newer"]);
  assert.equal(workers.queued, 0);
});

Deno.test("SenderWorkers keeps returned items in order when the first of them has to wait", async () => {
  const test = new Gated();
  const { workers, done } = test;
  workers.begin("a", "Old1", test.handle("Old1")!, { isReturned: true });
  workers.enqueue("a", "New");
  workers.enqueue("a", "old2", { isReturned: true });
  await test.open("Old1");
  assert.deepEqual(done, ["Old1", "old2"]);
  workers.enqueue("a", "old3", { isReturned: true });
  await test.open("New");
  await workers.idle();
  assert.deepEqual(done, ["Old1", "old2", "old3", "New"]);
});

Deno.test("SenderWorkers loses no item, whenever it is returned", async () => {
  for (let turns = 0; turns < 12; turns++) {
    const test = new Gated();
    const { workers, done } = test;
    workers.begin("a", "New", test.handle("New")!);
    test.gates.get("New")!.resolve();
    for (let turn = 0; turn < turns && workers.isBusy("a"); turn++) await Promise.resolve();
    if (!workers.isBusy("a")) continue;
    workers.enqueue("a", "old", { isReturned: true });
    await workers.idle();
    assert.deepEqual(
      [done.toSorted(), workers.queued],
      [["New", "old"], 0],
      `after ${turns} turns`,
    );
  }
});

Deno.test("SenderWorkers does an item returned a second time by its age, even before one whose lookup is done", async () => {
  const test = new Gated();
  const { workers, done } = test;
  workers.begin("a", "Old2", test.handle("Old2")!, { isReturned: true });
  workers.enqueue("a", "new");
  for (const old of ["old3", "old1", "Old0"]) workers.enqueue("a", old, { isReturned: true });
  await test.open("Old2");
  assert.deepEqual(done, []);
  await test.open("Old0");
  await workers.idle();
  assert.deepEqual(done, ["Old0", "old1", "Old2", "old3", "new"]);
  assert.equal(workers.queued, 0);
});

Deno.test("SenderWorkers does a long queue of items returned in batches in order", async () => {
  const done: number[] = [];
  const workers = new SenderWorkers<number>((item) => void done.push(item), {
    ...upTo(10_000),
    isOlder: (item, other) => item < other,
  });
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 10_000, first.promise);
  for (const from of [6, 0, 3, 9, 1]) {
    for (let n = 0; n < 100; n++) workers.enqueue("a", 100 * from + n, { isReturned: true });
  }
  first.resolve(() => {});
  await workers.idle();
  assert.deepEqual(done, done.toSorted((a, b) => a - b));
  assert.equal(done.length, 500);
});

Deno.test("SenderWorkers has items foreseen in their order, while one alone waits before them", async () => {
  const asked: string[] = [];
  const gates = new Map([1, 2, 4].map((item) => [item, Promise.withResolvers<void>()]));
  let refused = 3;
  const workers = new SenderWorkers<number>(
    (item) => gates.get(item)?.promise.then(() => () => {}),
    {
      ...upTo(2_000),
      foresee: (item, { before, head }) => {
        asked.push(`${item} behind ${before} and ${head}`);
        return item !== refused;
      },
    },
  );
  const end = async (item: number) => {
    gates.get(item)!.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  };
  workers.begin("a", 1, gates.get(1)!.promise.then(() => () => {}));
  for (const item of [2, 3, 4]) workers.enqueue("a", item);
  const asIs = ["2 behind 1 and 1", "3 behind 2 and 1", "3 behind 2 and 1"];
  assert.deepEqual(asked, asIs);
  workers.enqueue("a", 0, { isReturned: true });
  workers.enqueue("a", 5);
  assert.deepEqual(asked, asIs, "nothing is foreseen behind a returned item");
  await end(1);
  assert.deepEqual(asked.splice(0), [...asIs, "3 behind 2 and 2"]);
  refused = 5;
  await end(2); // what cannot be foreseen is done in its turn
  assert.deepEqual(asked.splice(0), ["5 behind 4 and 4"]);
  // Many items pass while the queue lasts: their places in it change.
  refused = -1;
  for (let item = 6; item < 1_500; item++) workers.enqueue("a", item);
  assert.equal(asked.length, 1_495);
  await end(4);
  await workers.idle();
  assert.equal(workers.queued, 0);
});

Deno.test("SenderWorkers slows a sender whose items are few and long", async () => {
  const told: string[] = [];
  const note = (item: number, isOver: boolean) => void told.push(`${item} ${isOver}`);
  const rules = { ...upTo(100), bytesOf: () => 300_000 };
  const workers = new SenderWorkers<number>(() => undefined, rules, note);
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 0, first.promise);
  for (const item of [1, 2, 3]) workers.enqueue("a", item);
  assert.deepEqual(told, []);
  for (const item of [4, 5]) workers.enqueue("a", item);
  assert.deepEqual(told, ["4 true"]);
  first.resolve(() => {});
  await workers.idle();
  assert.deepEqual(told, ["4 true", "4 false"]);
});

Deno.test("SenderWorkers counts only the items that wait among those that make a sender slow", async () => {
  const told: string[] = [];
  const test = new Gated({ bytesOf: () => 600_000 }, (item, isOver) => {
    told.push(`${item} ${isOver}`);
  });
  test.workers.begin("a", "First", test.handle("First")!);
  test.workers.enqueue("a", "Second");
  await test.open("First");
  test.workers.enqueue("a", "Third");
  assert.deepEqual(told, [], "the second is in its lookup");
  for (const item of ["Second", "Third"]) await test.open(item);
  await test.workers.idle();
});

Deno.test("SenderWorkers.slow() slows a sender until its queue is gone, and nobody without a queue", async () => {
  const told: string[] = [];
  const note = (item: number, isOver: boolean) => void told.push(`${item} ${isOver}`);
  const workers = new SenderWorkers<number>(() => undefined, upTo(1000), note);
  workers.slow("a", 0);
  const first = Promise.withResolvers<Finish>();
  workers.begin("a", 0, first.promise);
  for (let times = 0; times < 2; times++) workers.slow("a", 0);
  for (let item = 1; item < 300; item++) workers.enqueue("a", item);
  assert.deepEqual(told, ["0 true"], "once");
  first.resolve(() => {});
  await workers.idle();
  assert.deepEqual(told, ["0 true", "0 false"]);
});

Deno.test("SenderWorkers.slow() slows the sender afar for the given item, until the queue is gone", async () => {
  const told: string[] = [];
  const rules = {
    ...upTo(1000),
    slowAfar: (item: string) => {
      told.push(`${item} slow`);
      return () => void told.push(`${item} over`);
    },
  };
  const gates = [Promise.withResolvers<Finish>(), Promise.withResolvers<Finish>()] as const;
  const workers = new SenderWorkers<string>((item) => {
    if (item === "older") return undefined;
    // The second item waits as well.
    void Promise.resolve().then(() => workers.slow("a", item));
    return gates[1].promise;
  }, rules);
  workers.begin("a", "first", gates[0].promise);
  workers.enqueue("a", "older", { isReturned: true });
  workers.slow("a", "first");
  workers.enqueue("a", "second");
  gates[0].resolve(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(told, ["first slow", "second slow", "first over"]);
  gates[1].resolve(() => {});
  await workers.idle();
  assert.deepEqual(told.slice(3), ["second over"]);
});
