import { sumOf } from "../screen/mod.ts";
import { restart } from "./node_trials.ts";
import type { Trial } from "./trial.ts";
import type { TrialStage } from "./trial_stage.ts";

/** Milliseconds for which the database is away: nodes hold more messages for it than come in that time. */
const AWAY_MS = 3_000;
/** Milliseconds in which nodes get new connections to it, and those who were refused ask again. */
const BACK_MS = 5_000;

export const DATABASE_LOST: Trial = {
  name: "database-lost",
  summary: "the database of all archives is killed and comes back, and a node restarts, " +
    "once for each datacenter; archives miss nothing",
  answers: "none",
  options: () => ({ database: "postgresql", archives: true }),
  // At 2 680 on a small machine, a node that ends has more than it can hand over in time.
  mostPerSecond: 1_000,
  async run(stage) {
    const { datacenters } = stage.cluster;
    for (const { name } of datacenters) {
      await loseDatabase(stage);
      await stage.pass(stage.faultMs / (2 * datacenters.length));
      await restart(stage, stage.node(name));
      await stage.pass(stage.faultMs / (2 * datacenters.length));
    }
  },
};

/** Kills the database as a crash would, and starts it again. */
async function loseDatabase(stage: TrialStage): Promise<void> {
  const { database } = stage.cluster;
  await stage.during(async () => {
    const before = await failures(stage);
    await database.kill();
    await stage.pass(AWAY_MS);
    if (await failures(stage) === before) throw new Error("No node missed the killed database");
    stage.prove("killed databases that nodes missed");
    await database.restart();
    await stage.untilReady();
  }, { afterMs: BACK_MS });
}

async function failures(stage: TrialStage): Promise<number> {
  return sumOf(await stage.metrics(), "causeway_storage_failures_total");
}
