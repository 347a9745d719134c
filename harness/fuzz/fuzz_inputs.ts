import type { Mutator } from "./mutator.ts";

/** Times that a kept input is tried in process: where it is cut has been a finding's other half. */
export const CUTS = 20;

/** All that is kept, each as it is and `times` times; then what becomes of it, without end. */
export function* fuzzInputs(
  kept: readonly Uint8Array[],
  { mutator, times }: { readonly mutator: Mutator; readonly times: number },
): Generator<Uint8Array, never> {
  for (const input of kept) {
    for (let i = 0; i < times; i++) yield input;
  }
  for (;;) yield mutator.mutate(mutator.pick(kept), mutator.pick(kept));
}
