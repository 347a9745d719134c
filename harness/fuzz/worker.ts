/// <reference lib="deno.worker" />
import { CUTS, fuzzInputs } from "./fuzz_inputs.ts";
import { Mutator } from "./mutator.ts";
import { findTarget } from "./targets/mod.ts";
import type { FuzzPlan, FuzzWord } from "./worker_protocol.ts";

/** Between words to the watchdog. */
const SLICE_MS = 100;

self.onmessage = (event: MessageEvent<FuzzPlan>) => fuzz(event.data);

/** Runs one input after the other, until terminated or something does not hold. */
function fuzz(plan: FuzzPlan): void {
  const target = findTarget(plan.target);
  const mutator = new Mutator(plan.seed, { tokens: target.tokens });
  const kept = [...target.seeds(), ...plan.corpus];
  const inputs = fuzzInputs(kept, { mutator, times: CUTS });
  const length = new Uint32Array(plan.current, 0, 1);
  const bytes = new Uint8Array(plan.current, 4);
  const chance = (below: number): number => mutator.below(below);
  let runs = 0;
  const say = (word: FuzzWord): void => self.postMessage(word);
  const showCurrent = (input: Uint8Array): void => {
    length[0] = input.length;
    bytes.set(input);
  };
  const slice = async (): Promise<void> => {
    const endMs = performance.now() + SLICE_MS;
    do {
      const input = inputs.next().value;
      showCurrent(input);
      try {
        target.run(input, chance);
      } catch (thrown) {
        const problem = thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown);
        return say({ kind: "finding", runs, problem });
      }
      runs++;
    } while (performance.now() < endMs);
    say({ kind: "progress", runs }); // the references have their own time
    const finding = await target.settle?.();
    if (finding !== undefined) {
      showCurrent(finding.input);
      return say({ kind: "finding", runs, problem: finding.problem });
    }
    say({ kind: "progress", runs });
    setTimeout(runSlice, 0); // lets the worker be ended
  };
  const runSlice = (): void => {
    slice().catch((thrown) => {
      const problem = thrown instanceof Error ? thrown.message : String(thrown);
      say({ kind: "failed", problem });
    });
  };
  runSlice();
}
