import { replay, replayKept, SUBJECTS } from "./replay.ts";
import { TARGETS } from "./targets/mod.ts";

for (const name of Object.keys(SUBJECTS)) {
  Deno.test(`fuzz target ${name} accepts the inputs of earlier findings`, () => replayKept(name));
}

for (const target of TARGETS) {
  Deno.test(`fuzz target ${target.name} takes its seeds`, () =>
    replay(target, target.seeds().map((input, i) => ({ file: `seed ${i}`, input }))));
}
