import assert from "node:assert/strict";
import { fuzzLive } from "./fuzz_live.ts";
import type { LiveFuzzTarget } from "./fuzz_target.ts";

/** A target in memory. The test decides which inputs fail, and how. */
class FakeTarget implements LiveFuzzTarget {
  readonly name = "fake";
  readonly tokens = [];
  readonly inputsPerCheck = 10;
  /** Looked at, and forgotten, by `check`. */
  bugs: string[] = [];
  checks = 0;
  readonly #run: (input: number, target: FakeTarget) => void;

  constructor(run: (input: number, target: FakeTarget) => void) {
    this.#run = run;
  }

  seeds(): readonly Uint8Array[] {
    return [];
  }

  // deno-lint-ignore require-await -- rejects, as a target does
  async run(input: Uint8Array): Promise<void> {
    this.#run(input[0]!, this);
  }

  // deno-lint-ignore require-await -- rejects, as a target does
  async check(): Promise<void> {
    this.checks++;
    const bug = this.bugs.shift();
    this.bugs = [];
    if (bug !== undefined) throw new Error(bug);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function numbers(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, i) => Uint8Array.of(i));
}

Deno.test("fuzzLive() finds the one input that makes a node report a bug, among those of a check", async () => {
  const target = new FakeTarget((input, { bugs }) => input === 14 && bugs.push("TypeError"));
  const { runs, finding } = await fuzzLive(target, numbers(100));
  assert.equal(runs, 20);
  assert.match(finding!.problem, /TypeError/);
  assert.deepEqual(finding!.inputs, [Uint8Array.of(14)]);
});

Deno.test("fuzzLive() finds a bug that the last inputs have made known", async () => {
  const target = new FakeTarget((input, { bugs }) => input === 14 && bugs.push("TypeError"));
  assert.deepEqual((await fuzzLive(target, numbers(16))).finding?.inputs, [Uint8Array.of(14)]);
});

Deno.test("fuzzLive() finds a bug that is reported once only, and keeps all that may have led to it", async () => {
  let isFirst = true;
  const target = new FakeTarget((input, { bugs }) => {
    if (input === 14 && isFirst) bugs.push("TypeError");
    isFirst &&= input !== 14;
  });
  const { finding } = await fuzzLive(target, numbers(100));
  assert.match(finding!.problem, /TypeError/);
  assert.deepEqual(finding!.inputs, numbers(20).slice(10));
});

Deno.test("fuzzLive() checks the node after an input over which it took too long, and after it in time", async () => {
  let tries = 0;
  const target = new FakeTarget((input, { bugs }) => {
    if (input !== 3) return;
    if (++tries === 2) bugs.push("TypeError");
    if (tries === 1) throw new Error("too long");
  });
  const { runs, finding } = await fuzzLive(target, numbers(100));
  assert.equal(runs, 4);
  assert.match(finding!.problem, /TypeError/);
  assert.deepEqual(finding!.inputs, [Uint8Array.of(3)]);
});

Deno.test("fuzzLive() finds an input over which the node takes too long each time", async () => {
  const target = new FakeTarget((input) => {
    if (input === 3) throw new Error("too long");
  });
  const { finding } = await fuzzLive(target, numbers(100));
  assert.match(finding!.problem, /too long/);
  assert.deepEqual(finding!.inputs, [Uint8Array.of(3)]);
});

Deno.test("fuzzLive() finds nothing in a node that was held up twice, and goes on", async () => {
  let tries = 0;
  const target = new FakeTarget((input) => {
    if (input === 3 && ++tries < 3) throw new Error("too long");
  });
  assert.deepEqual(await fuzzLive(target, numbers(30)), { runs: 30, finding: undefined });
  assert.ok(target.checks >= 3 + 2);
});
