import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { Exchange } from "./exchange.ts";

/** A database whose store answers when the test lets it. */
class SlowDatabase {
  readonly #name: string;
  isClosed = false;
  readonly #waiting: (() => void)[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  readonly store = {
    kind: "slow",
    name: () => this.#name,
    read: async (key: string): Promise<string> => {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      if (this.isClosed) throw new Error("closed");
      return `${this.#name} ${key}`;
    },
  };

  answer(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

Deno.test("Exchange.replace() lets calls end where they began, sends later ones to the new database, and then closes the old", async () => {
  const [one, other] = [new SlowDatabase("one"), new SlowDatabase("other")];
  const exchange = new Exchange(one, new ManualClock());
  const store = exchange.store((database) => database.store);
  assert.equal(store.kind, "slow");
  assert.ok("read" in store && !("write" in store));
  const early = [store.read("a"), store.read("b")];
  exchange.replace(other);
  const late = store.read("c");
  assert.equal(store.name(), "other");
  assert.equal(one.isClosed, false);
  one.answer();
  assert.deepEqual(await Promise.all(early), ["one a", "one b"]);
  assert.equal(one.isClosed, true);
  other.answer();
  assert.equal(await late, "other c");
  await exchange.close();
  assert.equal(other.isClosed, true);
});

Deno.test("Exchange closes a replaced database at once when it has nothing to do, and after a while whatever it does", async () => {
  const databases = ["a", "b", "c"].map((name) => new SlowDatabase(name));
  const clock = new ManualClock();
  const exchange = new Exchange(databases[0]!, clock);
  const store = exchange.store((database) => database.store);
  exchange.replace(databases[1]!);
  assert.equal(databases[0]!.isClosed, true);
  const hanging = store.read("x");
  exchange.replace(databases[2]!);
  clock.advance(29_999);
  assert.equal(databases[1]!.isClosed, false);
  clock.advance(1);
  assert.equal(databases[1]!.isClosed, true);
  databases[1]!.answer();
  await assert.rejects(hanging, /closed/);
  await exchange.close();
});

Deno.test("Exchange.close() closes replaced databases too, and leaves no timer", async () => {
  const [one, other] = [new SlowDatabase("one"), new SlowDatabase("other")];
  const exchange = new Exchange(one); // with the machine's clock, whose timers a test must end
  const call = exchange.store((database) => database.store).read("x");
  exchange.replace(other);
  await exchange.close();
  assert.deepEqual([one.isClosed, other.isClosed], [true, true]);
  one.answer();
  await assert.rejects(call);
});

Deno.test("Exchange.shared() returns one object for a name, whose failures are those of its database", async () => {
  const exchange = new Exchange(new SlowDatabase("one"), new ManualClock());
  const open = (database: SlowDatabase) => database.store;
  assert.equal(exchange.shared("slow", open), exchange.shared("slow", open));
  assert.notEqual(exchange.store(open), exchange.store(open));
  const failing = exchange.store(() => ({ read: () => Promise.reject(new RangeError("no")) }));
  await assert.rejects(failing.read(), RangeError);
  await exchange.close();
});
