// @ts-types="@types/pg"
import pg from "pg";
import { BenchChild } from "../bench_child.ts";
import { processUsage } from "../process_usage.ts";
import type { DatabasePlace } from "./accounts.ts";
import { addAccounts, PASSWORD } from "./accounts.ts";
import type { PeopleCluster } from "./people_cluster.ts";
import type { BareDriverPlan, RateCommand, RateEvent, RosterLoadPlan } from "./roster_protocol.ts";

/** Rate of roster gets through a node, and of the same statement through the driver alone. */
export interface RosterFigures {
  readonly contacts: number;
  readonly getsPerSecond: readonly number[];
  readonly statementsPerSecond: readonly number[];
  /** Microseconds of the node's processor time for one roster get. */
  readonly cpuUsPerGet: number;
}

export interface RosterMeasurementOptions {
  readonly runs: number;
  readonly seconds: number;
}

type RateProcess = BenchChild<RateCommand, RateEvent>;

const CONTACTS = 100;
const CLIENTS = 20;
const WARM_UP_MS = 1_000;
const PERMISSIONS = ["--allow-read", "--allow-sys"];

/** Measures both in turn, on one machine and one database. */
export async function measureRoster(
  { cluster, place, workers }: PeopleCluster,
  options: RosterMeasurementOptions,
  progress: (text: string) => void,
): Promise<RosterFigures> {
  const domain = cluster.globalHost;
  const contacts = Array.from({ length: CONTACTS }, (_, index) => `friend${index}`);
  const owners = Array.from({ length: CLIENTS }, (_, index) => `owner${index}`);
  await addAccounts(
    owners.map((localpart) => ({ localpart, contacts })),
    { domain, place, file: cluster.run.path("roster.sqlite") },
  );
  const [dc1] = cluster.datacenters;
  const address = dc1!.clientAddress("none");
  const command = { warmUpMs: WARM_UP_MS, measureMs: options.seconds * 1000 };
  const getsPerSecond: number[] = [];
  const statementsPerSecond: number[] = [];
  const cpuUs: number[] = [];
  for (let run = 1; run <= options.runs; run++) {
    let statement: string;
    {
      const plan: RosterLoadPlan = {
        clients: owners.map((localpart) => ({
          ...address,
          domain,
          localpart,
          password: PASSWORD,
          resource: "bench",
        })),
      };
      await using load: RateProcess = BenchChild.start("./people/roster_load.ts", plan);
      const node = dc1!.node.pid;
      const before = async () => (await processUsage(node)).cpuUs;
      const { rate, used } = await measure(load, command, before);
      getsPerSecond.push(rate);
      cpuUs.push(used / (rate * options.seconds));
      statement = await statementOf(place);
    }
    const plan: BareDriverPlan = {
      place,
      connections: workers,
      statement,
      owners: owners.map((localpart) => `${localpart}@${domain}`),
      rows: CONTACTS,
    };
    await using driver: RateProcess = BenchChild.start("./people/bare_driver.ts", plan, {
      permissions: PERMISSIONS,
    });
    statementsPerSecond.push((await measure(driver, command)).rate);
    progress(
      `rosters, run ${run}: ${Math.round(getsPerSecond.at(-1)!)} gets/s, ` +
        `${Math.round(statementsPerSecond.at(-1)!)} statements/s of the bare driver`,
    );
  }
  const cpuUsPerGet = cpuUs.reduce((sum, each) => sum + each, 0) / cpuUs.length;
  return { contacts: CONTACTS, getsPerSecond, statementsPerSecond, cpuUsPerGet };
}

async function measure(
  process: RateProcess,
  command: RateCommand,
  cpuUs: () => Promise<number> = () => Promise.resolve(0),
): Promise<{ readonly rate: number; readonly used: number }> {
  await process.expect("ready");
  await process.send(command);
  await process.expect("begin");
  const before = await cpuUs();
  const { answers, elapsedMs } = await process.expect("rate");
  const used = await cpuUs() - before;
  if (answers === 0) throw new Error("Nothing was answered");
  return { rate: answers / elapsedMs * 1000, used };
}

/** Returns the statement that the node has sent last for a roster, as the database saw it. */
async function statementOf({ username: user, ...place }: DatabasePlace): Promise<string> {
  const client = new pg.Client({ ...place, user });
  await client.connect();
  try {
    const { rows } = await client.query<{ query: string }>(
      "SELECT query FROM pg_stat_activity WHERE application_name = 'causeway' " +
        `AND query LIKE 'select%from "rosters"%' ORDER BY query_start DESC LIMIT 1`,
    );
    const [found] = rows;
    if (found === undefined) throw new Error("Cannot find the statement of a roster");
    return found.query;
  } finally {
    await client.end();
  }
}
