import { deepStrictEqual, throws } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { type Replication, REPLICATIONS } from "../scenario.ts";
import { ownClusterShare, sharedClusterScenarios } from "./_play.ts";
import { shareOf } from "./_shares.ts";
import { SCENARIOS } from "./mod.ts";

const DIRECTORY = new URL(".", import.meta.url);

for (const replication of REPLICATIONS) {
  Deno.test(`every scenario is played exactly once with replication ${replication}`, () => {
    const played = sharesIn(readdirSync(DIRECTORY), replication)
      .flatMap((share) => ownClusterShare(replication, share));
    const names = [...played, ...sharedClusterScenarios(replication)].map(({ name }) => name);
    const due = SCENARIOS
      .filter(({ replications = ["external"] }) => replications.includes(replication))
      .map(({ name }) => name);
    deepStrictEqual(names.toSorted(), due.toSorted());
  });
}

/** Reads the shares that the test files among `names` play. */
function sharesIn(names: readonly string[], replication: Replication): readonly number[] {
  return names
    .filter((name) => name.endsWith("_test.ts"))
    .map((name) => readFileSync(new URL(name, DIRECTORY), "utf8"))
    .flatMap((text) => [...text.matchAll(/^testOnOwnClusters\("(\w+)", (\d+)\);$/gm)])
    .filter(([, kind]) => kind === replication)
    .map(([, , share]) => Number(share));
}

Deno.test("shareOf() deals items out in turn, and refuses a share that does not exist", () => {
  const items = ["a", "b", "c", "d", "e"];
  deepStrictEqual(shareOf(items, { number: 1, of: 2 }), ["a", "c", "e"]);
  deepStrictEqual(shareOf(items, { number: 2, of: 2 }), ["b", "d"]);
  deepStrictEqual(shareOf(items, { number: 6, of: 7 }), []);
  for (const number of [0, 3, 1.5]) throws(() => shareOf(items, { number, of: 2 }), RangeError);
});
