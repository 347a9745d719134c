import { SeededRandom } from "../../src/base/mod.ts";
import { CORPUS, readKept } from "./corpus.ts";
import type { KeptInput } from "./corpus.ts";
import { CUTS } from "./fuzz_inputs.ts";
import { fuzzLive } from "./fuzz_live.ts";
import type { FuzzTarget, LiveFuzzTarget } from "./fuzz_target.ts";
import { LIVE_TARGETS } from "./run_live.ts";
import { TARGETS } from "./targets/mod.ts";

/** A target that is here, or how one that is a running node is started. */
export type FuzzSubject = FuzzTarget | (() => Promise<LiveFuzzTarget>);

/** Every target by its name. */
export const SUBJECTS: Readonly<Record<string, FuzzSubject>> = {
  ...Object.fromEntries(TARGETS.map((target) => [target.name, target])),
  ...LIVE_TARGETS,
};

/** Stand-ins, for tests. */
export interface ReplayOptions {
  readonly subject?: FuzzSubject;
  readonly corpus?: string;
}

/**
 * Gives a target what once was a finding of it. A node is started only where there is something.
 * Rejects with the file and what does not hold.
 */
export async function replayKept(
  name: string,
  { subject = SUBJECTS[name]!, corpus = CORPUS }: ReplayOptions = {},
): Promise<void> {
  const kept = await readKept(name, corpus);
  if (typeof subject !== "function") return await replay(subject, kept);
  if (kept.length > 0) await replayLive(subject, kept);
}

/** Cuts each input in several ways, the same each time. */
export async function replay(target: FuzzTarget, kept: readonly KeptInput[]): Promise<void> {
  try {
    for (const { file, input } of kept) {
      for (let seed = 0; seed < CUTS; seed++) {
        const random = new SeededRandom(seed);
        try {
          target.run(input, (below) => Math.floor(random.unit() * below));
        } catch (thrown) {
          throw new Error(`${file}, seed ${seed}`, { cause: thrown });
        }
      }
      const finding = await target.settle?.();
      if (finding !== undefined) throw new Error(`${file}: ${finding.problem}`);
    }
  } finally {
    await target.close?.();
  }
}

async function replayLive(
  start: () => Promise<LiveFuzzTarget>,
  kept: readonly KeptInput[],
): Promise<void> {
  await using target = await start();
  const { finding } = await fuzzLive(target, kept.map(({ input }) => input));
  if (finding === undefined) return;
  const files = kept.filter(({ input }) => finding.inputs.includes(input)).map(({ file }) => file);
  throw new Error(`${files.join(", ")}: ${finding.problem}`);
}
