import type { LiveFuzzTarget } from "./fuzz_target.ts";
import type { FuzzFinding, FuzzResult } from "./run_in_process.ts";

/** Times that an input is tried before it is a finding that the node takes long over it. */
const TRIES = 3;

/**
 * Sends `inputs` one after the other. What `check` finds is a finding at once; what `run` finds is one
 * when it is so each time, as a machine that was held up lets one input wait too long once, and after
 * each such try the node is checked.
 */
export async function fuzzLive(
  target: LiveFuzzTarget,
  inputs: Iterable<Uint8Array>,
): Promise<FuzzResult> {
  let runs = 0;
  let unchecked: Uint8Array[] = [];
  for (const input of inputs) {
    runs++;
    unchecked.push(input);
    let problem = await problemOf(() => target.run(input));
    if (problem === undefined && unchecked.length < target.inputsPerCheck) continue;
    const fault = await problemOf(() => target.check());
    if (fault !== undefined) return { runs, finding: await blame(target, unchecked, fault) };
    for (let tries = 1; problem !== undefined; tries++) {
      if (tries === TRIES) return { runs, finding: { problem, inputs: [input] } };
      problem = await problemOf(() => target.run(input));
      const again = await problemOf(() => target.check());
      if (again !== undefined) return { runs, finding: { problem: again, inputs: [input] } };
    }
    unchecked = [];
  }
  const fault = await problemOf(() => target.check());
  return { runs, finding: fault === undefined ? undefined : await blame(target, unchecked, fault) };
}

/** Looks for the one input of `suspects` that brings `problem` about again; without one, keeps all. */
async function blame(
  target: LiveFuzzTarget,
  suspects: readonly Uint8Array[],
  problem: string,
): Promise<FuzzFinding> {
  // A problem that persists says nothing about the current input.
  if (await problemOf(() => target.check()) === undefined) {
    for (const input of suspects) {
      await problemOf(() => target.run(input));
      const again = await problemOf(() => target.check());
      if (again !== undefined) return { problem: again, inputs: [input] };
    }
  }
  return { problem, inputs: suspects };
}

async function problemOf(action: () => Promise<void>): Promise<string | undefined> {
  try {
    await action();
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown);
  }
}
