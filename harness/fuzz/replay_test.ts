import assert from "node:assert/strict";
import { join } from "node:path";
import { CORPUS, keepFinding } from "./corpus.ts";
import type { FuzzTarget, LiveFuzzTarget } from "./fuzz_target.ts";
import { type FuzzSubject, replayKept, SUBJECTS } from "./replay.ts";

const FIRST = Uint8Array.of(1, 0xff, 2);
const SECOND = Uint8Array.of(3);

/** A stand-in for `subject`, in process or a node as that is, that hands all it is given to `take`. */
function standIn(subject: FuzzSubject, take: (input: Uint8Array) => void): FuzzSubject {
  const common = { name: "stand-in", tokens: [], seeds: () => [] };
  if (typeof subject !== "function") return { ...common, run: take } satisfies FuzzTarget;
  const live: LiveFuzzTarget = {
    ...common,
    inputsPerCheck: 10,
    // deno-lint-ignore require-await -- rejects, as a target does
    run: async (input) => take(input),
    check: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return () => Promise.resolve(live);
}

async function withCorpus(target: string, action: (corpus: string) => Promise<void>) {
  const corpus = await Deno.makeTempDir({ prefix: "causeway-corpus-" });
  try {
    await Deno.mkdir(join(corpus, target));
    await action(corpus);
  } finally {
    await Deno.remove(corpus, { recursive: true });
  }
}

for (const [name, subject] of Object.entries(SUBJECTS)) {
  Deno.test(`replayKept() gives ${name} its kept inputs, and names the file that fails`, () =>
    withCorpus(name, async (corpus) => {
      const inputs = [SECOND, FIRST, SECOND];
      const files = await keepFinding(name, inputs, { corpus });
      const taken: Uint8Array[] = [];
      await replayKept(name, { corpus, subject: standIn(subject, (input) => taken.push(input)) });
      const times = taken.length / inputs.length;
      assert.ok(times >= 1);
      assert.deepEqual(taken, inputs.flatMap((input) => Array(times).fill(input)));

      const failing = standIn(subject, (input) => {
        if (input.length === FIRST.length) throw new Error("does not hold");
      });
      await assert.rejects(
        replayKept(name, { corpus, subject: failing }),
        ({ message }: Error) => message.includes(files[1]!) && !message.includes(files[0]!),
      );
    }));
}

Deno.test("replayKept() starts no node for which nothing was kept", () =>
  withCorpus("resp", (corpus) =>
    replayKept("resp", {
      corpus,
      subject: () => Promise.reject(new Error("started")),
    })));

Deno.test("fixtures/fuzz has a folder for each target, and no other", async () => {
  const folders: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(CORPUS)) {
    if (isDirectory) folders.push(name);
  }
  assert.deepEqual(folders.sort(), Object.keys(SUBJECTS).sort());
});
