import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import { withCluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { SCENARIOS } from "./mod.ts";

/** A real server: what these tests say about Redis is not to be said about a replacement. */
const REDIS: ClusterOptions = { redis: "local" };

// Scenarios that ask for nothing of their own share one cluster, which takes longest to start.
const undemanding = SCENARIOS.filter(({ options }) => options === undefined);

Deno.test("scenarios on one cluster", async (test) => {
  await withCluster(REDIS, async (cluster) => {
    for (const scenario of undemanding) {
      await test.step(scenario.name, async () => {
        await play(scenario, cluster);
        await untilEverybodyHasLeft(cluster);
      });
    }
  });
});

for (const scenario of SCENARIOS.filter(({ options }) => options !== undefined)) {
  Deno.test(`scenario ${scenario.name}`, async () => {
    const options = { ...scenario.options, ...REDIS };
    await withCluster(options, (cluster) => play(scenario, cluster));
  });
}

/** Keeps the cluster's directory when the scenario fails: a step's failure is not seen outside. */
async function play(scenario: Scenario, cluster: Cluster): Promise<void> {
  try {
    await scenario.run(cluster, () => {});
  } catch (thrown) {
    await cluster.keep();
    throw new Error(`${scenario.name} failed; see ${cluster.run.directory}\n${cluster.tails()}`, {
      cause: thrown,
    });
  }
}

/** The next scenario finds the tables as the first one did. */
async function untilEverybodyHasLeft(cluster: Cluster): Promise<void> {
  await using stage = new Stage(cluster);
  const accounts = cluster.users.map(({ localpart }) => `${localpart}@${cluster.globalHost}`);
  const domains = cluster.options.components.map(({ name }) => name);
  for (const name of [...accounts, ...domains]) await stage.untilGone(name);
}
