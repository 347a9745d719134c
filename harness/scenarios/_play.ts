import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import { withCluster } from "../cluster/mod.ts";
import { withDeadline } from "../deadline.ts";
import type { Replication, Scenario } from "../scenario.ts";
import { PATIENT_BOUNCE } from "./_patient_bounce.ts";
import { shareOf, SHARES } from "./_shares.ts";
import { Stage } from "./_stage.ts";
import { SCENARIOS } from "./mod.ts";

/** A real Redis server: the results must not depend on a replacement. */
const REDIS: ClusterOptions = { redis: "local" };

/** Milliseconds after which a scenario is taken to hang. No machine comes near to them. */
const LIMIT_MS = 900_000;

/** Options of the clusters that several scenarios share, because a cluster takes long to start. */
const SHARED: ReadonlyMap<ClusterOptions | undefined, string> = new Map([
  [undefined, "one cluster"],
  [PATIENT_BOUNCE, "one cluster with a patient bounce"],
]);

/** Plays the scenarios without options of their own on shared clusters. */
export function testOnSharedClusters(replication: Replication): void {
  for (const [options, where] of SHARED) {
    const scenarios = onShared(replication, options);
    Deno.test({
      name: `scenarios on ${where}, replication ${replication}`,
      ignore: scenarios.length === 0,
      async fn(test) {
        await withCluster({ ...REDIS, replication, ...options }, async (cluster) => {
          for (const scenario of scenarios) {
            await test.step(scenario.name, async () => {
              await play(scenario, cluster);
              await untilEverybodyHasLeft(cluster);
            });
          }
        });
      },
    });
  }
}

/** Plays a share of the scenarios with options of their own, each on its own cluster. */
export function testOnOwnClusters(replication: Replication, share: number): void {
  for (const scenario of ownClusterShare(replication, share)) {
    Deno.test(`scenario ${scenario.name}, replication ${replication}`, async () => {
      const options = { replication, ...scenario.options, ...REDIS };
      await withCluster(options, (cluster) => play(scenario, cluster));
    });
  }
}

/** Returns the scenarios of one share; see `SHARES`. */
export function ownClusterShare(replication: Replication, share: number): readonly Scenario[] {
  const own = playedWith(replication).filter(({ options }) => !SHARED.has(options));
  return shareOf(own, { number: share, of: SHARES[replication] });
}

/** Returns the scenarios of the clusters that several share. */
export function sharedClusterScenarios(replication: Replication): readonly Scenario[] {
  return [...SHARED.keys()].flatMap((options) => onShared(replication, options));
}

function onShared(
  replication: Replication,
  options: ClusterOptions | undefined,
): readonly Scenario[] {
  return playedWith(replication).filter((scenario) => scenario.options === options);
}

function playedWith(replication: Replication): readonly Scenario[] {
  return SCENARIOS.filter(({ replications = ["external"] }) => replications.includes(replication));
}

/**
 * Plays a scenario, and keeps the cluster's directory when it fails: the test runner does not
 * report a step's failure to the cluster.
 */
async function play(scenario: Scenario, cluster: Cluster): Promise<void> {
  try {
    await withDeadline(scenario.run(cluster, () => {}), {
      what: `the end of ${scenario.name}`,
      withinMs: LIMIT_MS,
    });
  } catch (thrown) {
    await cluster.keep();
    throw new Error(`${scenario.name} failed; see ${cluster.run.directory}\n${cluster.tails()}`, {
      cause: thrown,
    });
  }
}

/** Waits until the tables hold no session, as the next scenario expects. */
async function untilEverybodyHasLeft(cluster: Cluster): Promise<void> {
  await using stage = new Stage(cluster);
  const accounts = cluster.users.map(({ localpart }) => `${localpart}@${cluster.globalHost}`);
  const domains = cluster.options.components.map(({ name }) => name);
  for (const name of [...accounts, ...domains]) await stage.untilGone(name);
}
