import { CertificateAuthority, Run, writeCertificate } from "../../harness/mod.ts";
import { LocalRedis, RedisClient } from "../../harness/redis/mod.ts";
import { BenchChild } from "./bench_child.ts";
import type { LatencySummary } from "./latency_recorder.ts";
import { processUsage } from "./process_usage.ts";
import type { TableNodeCommand, TableNodeEvent, TableNodePlan } from "./table_protocol.ts";

/** Cost of one node's session table, and the time until another datacenter has it. */
export interface TableFigures {
  readonly sessions: number;
  readonly loginsPerSecond: number;
  /** Lookups of one node a second, from memory and by asking Redis over one connection. */
  readonly cachedLookupsPerSecond: number;
  readonly uncachedLookupsPerSecond: number;
  /** Processor time to renew all sessions once within `refresh_after` (60 s), as a share of a core. */
  readonly renewalShareOfCore: number;
  /** Seconds until a datacenter that is new has all of it. */
  readonly transferSeconds: number;
  /** Latency of stanzas on the same link, during the transfer and after it. */
  readonly latencyMeanwhile: LatencySummary;
  readonly latencyIdle: LatencySummary;
}

export interface TableMeasurementOptions {
  readonly sessions: number;
  readonly stanzasPerSecond: number;
}

type TableNode = BenchChild<TableNodeCommand, TableNodeEvent>;

const OWNER = "dc1.example.com";
const NEWCOMER = "dc2.example.com";
const LOOKUP_MS = 2_000;
/** After this the logins have been read back, and nothing but renewal goes on. */
const SETTLE_MS = 10_000;
const RENEWAL_MS = 12_000;
const IDLE_MS = 6_000;
const POLL_MS = 20;

/** Two nodes with a Redis each, and a link with TLS between them. */
export async function measureTable(
  options: TableMeasurementOptions,
  progress: (text: string) => void,
): Promise<TableFigures> {
  const { sessions } = options;
  await using run = await Run.start();
  const authority = await CertificateAuthority.create();
  const cafile = run.path("ca.pem");
  await Deno.writeTextFile(cafile, authority.certificatePem);
  await using ownerRedis = new LocalRedis({ name: "owner", run, password: "" });
  await using newcomerRedis = new LocalRedis({ name: "newcomer", run, password: "" });
  await Promise.all([ownerRedis.start(), newcomerRedis.start()]);
  const plan = async (localHost: string, redis: LocalRedis, rest: Partial<TableNodePlan>) => {
    const certificate = await authority.issue({ names: [localHost], addresses: ["127.0.0.1"] });
    const { directory } = run;
    const files = await writeCertificate(certificate, { directory, name: localHost });
    const redisPort = redis.address.port;
    const nothing = { sessions: 0, seed: undefined };
    return { localHost, redisPort, cafile, ...files, ...nothing, ...rest } satisfies TableNodePlan;
  };

  const ownerPlan = await plan(OWNER, ownerRedis, { sessions });
  await using owner: TableNode = BenchChild.start("./table_node.ts", ownerPlan, {
    permissions: TABLE_PERMISSIONS,
  });
  const { port, loginMs } = await owner.expect("ready");
  progress(`table: ${sessions} sessions`);
  const renewalShareOfCore = await measureRenewal(owner);
  await owner.send({ do: "look-up", forMs: LOOKUP_MS });
  const lookups = await owner.expect("looked-up");

  const seed = { host: "127.0.0.1", port };
  const newcomerPlan = await plan(NEWCOMER, newcomerRedis, { seed });
  await using newcomer: TableNode = BenchChild.start(
    "./table_node.ts",
    newcomerPlan,
    { permissions: TABLE_PERMISSIONS },
  );
  await newcomer.expect("ready");
  await owner.send({ do: "send", to: NEWCOMER, perSecond: options.stanzasPerSecond });
  const transferSeconds = await measureTransfer(newcomerRedis);
  progress(`table: a new datacenter has it after ${transferSeconds.toFixed(1)} s`);
  const latencyMeanwhile = await latency(newcomer);
  await sleep(2_000); // the last piece's aftermath is neither
  await latency(newcomer);
  await sleep(IDLE_MS);
  return {
    sessions,
    loginsPerSecond: sessions / loginMs * 1000,
    cachedLookupsPerSecond: lookups.cachedPerSecond,
    uncachedLookupsPerSecond: lookups.askedPerSecond,
    renewalShareOfCore,
    transferSeconds,
    latencyMeanwhile,
    latencyIdle: await latency(newcomer),
  };
}

const TABLE_PERMISSIONS = ["--allow-read", "--allow-sys=hostname"];

async function measureRenewal(owner: TableNode): Promise<number> {
  await sleep(SETTLE_MS);
  const before = await processUsage(owner.pid);
  const startMs = performance.now();
  await sleep(RENEWAL_MS);
  const after = await processUsage(owner.pid);
  return (after.cpuUs - before.cpuUs) / 1000 / (performance.now() - startMs);
}

/** Seconds until all of the owner's table is applied in the newcomer's Redis. */
async function measureTransfer(redis: LocalRedis): Promise<number> {
  const startMs = performance.now();
  await using client = new RedisClient(redis.address);
  for (;;) {
    const applied = await client.call("GET", `causeway:applied:${OWNER}#node1@${OWNER}`);
    if (applied !== null) return (performance.now() - startMs) / 1000;
    await sleep(POLL_MS);
  }
}

async function latency(node: TableNode): Promise<LatencySummary> {
  await node.send({ do: "report" });
  return (await node.expect("report")).latency;
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
