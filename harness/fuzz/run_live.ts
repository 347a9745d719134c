import { readKept } from "./corpus.ts";
import { fuzzInputs } from "./fuzz_inputs.ts";
import { fuzzLive } from "./fuzz_live.ts";
import type { LiveFuzzTarget } from "./fuzz_target.ts";
import { Mutator } from "./mutator.ts";
import type { FuzzResult, FuzzRun } from "./run_in_process.ts";
import { startComponent } from "./targets/component.ts";
import { startConversation, startStarttls } from "./targets/conversation.ts";
import { LinksTarget } from "./targets/links.ts";
import { RespTarget } from "./targets/resp.ts";
import { startWebsocket } from "./targets/websocket.ts";

/** Targets that are a running node, and how each is started. */
export const LIVE_TARGETS: Readonly<Record<string, () => Promise<LiveFuzzTarget>>> = {
  conversation: startConversation,
  starttls: startStarttls,
  websocket: startWebsocket,
  component: startComponent,
  resp: () => RespTarget.start(),
  links: () => LinksTarget.start(),
};

/** Fuzzes a running node; it is started and ended here. */
export async function runLive(run: FuzzRun): Promise<FuzzResult> {
  await using target = await LIVE_TARGETS[run.target]!();
  const found = await readKept(run.target);
  const kept = [...target.seeds(), ...found.map(({ input }) => input)];
  return await fuzzLive(target, inputsOf(target, run, kept));
}

/** All that was kept, as it is, and then what becomes of it, until the time is over. */
function* inputsOf(
  target: LiveFuzzTarget,
  run: FuzzRun,
  kept: readonly Uint8Array[],
): Generator<Uint8Array> {
  const endMs = performance.now() + run.durationMs;
  const mutator = new Mutator(run.seed, { tokens: target.tokens });
  const inputs = fuzzInputs(kept, { mutator, times: 1 });
  for (let i = 0; i < kept.length || performance.now() < endMs; i++) yield inputs.next().value;
}
