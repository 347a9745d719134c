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

/** Fuzzes a running node; it is started and ended here. */
export async function runLive(run: FuzzRun): Promise<FuzzResult> {
  await using target = await LIVE_TARGETS[run.target]!();
  const mutator = new Mutator(run.seed, { tokens: target.tokens });
  const inputs = [...target.seeds(), ...await readCorpus(run.target)];
  const endMs = performance.now() + run.durationMs;
  let runs = 0;
  for (; performance.now() < endMs; runs++) {
    const input = mutator.mutate(mutator.pick(inputs), mutator.pick(inputs));
    try {
      await target.run(input);
    } catch (thrown) {
      const problem = thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown);
      return { runs, finding: { problem, input } };
    }
  }
  return { runs, finding: undefined };
}
