import { corpusFiles, readCorpus } from "./corpus.ts";
import { CUTS } from "./fuzz_inputs.ts";
import { SeededRandom } from "../../src/base/mod.ts";
import { TARGETS } from "./targets/mod.ts";

for (const target of TARGETS) {
  Deno.test(`fuzz target ${target.name} takes its seeds, and what once was a finding`, async () => {
    const names = ["a seed", ...await corpusFiles(target.name)];
    const inputs = [...target.seeds(), ...await readCorpus(target.name)];
    for (const [i, input] of inputs.entries()) {
      // Cut in several ways: where an input is cut has been a finding's other half.
      for (let seed = 0; seed < CUTS; seed++) {
        const random = new SeededRandom(seed);
        try {
          target.run(input, (below) => Math.floor(random.unit() * below));
        } catch (thrown) {
          throw new Error(`${names[i - target.seeds().length + 1] ?? names[0]}, seed ${seed}`, {
            cause: thrown,
          });
        }
      }
    }
  });
}
