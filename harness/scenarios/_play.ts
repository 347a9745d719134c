import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import { withCluster } from "../cluster/mod.ts";
import type { Replication, Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { SCENARIOS } from "./mod.ts";

/** A real server: what these tests say about Redis is not to be said about a replacement. */
const REDIS: ClusterOptions = { redis: "local" };

/** Plays the scenarios that ask for nothing of their own on one cluster, which takes long to start. */
export function testOnOneCluster(replication: Replication): void {
  const undemanding = playedWith(replication).filter(({ options }) => options === undefined);
  Deno.test({
    name: `scenarios on one cluster, replication ${replication}`,
    ignore: undemanding.length === 0,
    async fn(test) {
      await withCluster({ ...REDIS, replication }, async (cluster) => {
        for (const scenario of undemanding) {
          await test.step(scenario.name, async () => {
            await play(scenario, cluster);
            await untilEverybodyHasLeft(cluster);
          });
        }
      });
    },
  });
}

/** Plays the scenarios that need a cluster as they want it, each on its own. */
export function testOnOwnClusters(replication: Replication): void {
  for (const scenario of playedWith(replication)) {
    if (scenario.options === undefined) continue;
    Deno.test(`scenario ${scenario.name}, replication ${replication}`, async () => {
      const options = { replication, ...scenario.options, ...REDIS };
      await withCluster(options, (cluster) => play(scenario, cluster));
    });
  }
}

function playedWith(replication: Replication): readonly Scenario[] {
  return SCENARIOS.filter(({ replications = ["external"] }) => replications.includes(replication));
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
