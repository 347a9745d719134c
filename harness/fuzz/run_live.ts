import { readCorpus } from "./corpus.ts";
import type { LiveFuzzTarget } from "./fuzz_target.ts";
import { Mutator } from "./mutator.ts";
import type { FuzzResult, FuzzRun } from "./run_in_process.ts";
import { ConversationTarget } from "./targets/conversation.ts";
import { RespTarget } from "./targets/resp.ts";

/** Targets that are a running node, and how each is started. */
export const LIVE_TARGETS: Readonly<Record<string, () => Promise<LiveFuzzTarget>>> = {
  conversation: () => ConversationTarget.start(),
  resp: () => RespTarget.start(),
};

/** Times that an input is tried before it is a finding. */
const TRIES = 3;

/** Fuzzes a running node; it is started and ended here. */
export async function runLive(run: FuzzRun): Promise<FuzzResult> {
  await using target = await LIVE_TARGETS[run.target]!();
  const mutator = new Mutator(run.seed, { tokens: target.tokens });
  const inputs = [...target.seeds(), ...await readCorpus(run.target)];
  const endMs = performance.now() + run.durationMs;
  let runs = 0;
  for (; performance.now() < endMs; runs++) {
    const input = mutator.mutate(mutator.pick(inputs), mutator.pick(inputs));
    const problem = await problemOf(target, input);
    if (problem !== undefined) return { runs, finding: { problem, input } };
  }
  return { runs, finding: undefined };
}

/** What is wrong with `input` each time: a machine that was held up lets one wait too long once. */
async function problemOf(target: LiveFuzzTarget, input: Uint8Array): Promise<string | undefined> {
  let problem: string | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      await target.run(input);
      return undefined;
    } catch (thrown) {
      problem = thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown);
    }
  }
  return problem;
}
