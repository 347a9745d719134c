import type { Datacenter } from "../../../harness/mod.ts";
import { parsePrometheusText, sumOf } from "../../../harness/screen/mod.ts";
import { putBehind } from "../behind.ts";
import { BenchChild } from "../bench_child.ts";
import type { LatencySummary } from "../latency_recorder.ts";
import type { ClientPlan, LoadCommand, LoadEvent, LoadPlan } from "../load_protocol.ts";
import type { NewAccount } from "./accounts.ts";
import { addAccounts, PASSWORD } from "./accounts.ts";
import { collectGarbage, inspectorOf } from "./garbage.ts";
import type { PeopleCluster } from "./people_cluster.ts";
import type { StormCommand, StormEvent, StormPlan } from "./storm_protocol.ts";
import { crowdName } from "./storm_protocol.ts";

/** Many logins at once at one node, while others chat. */
export interface StormFigures {
  readonly logins: number;
  /** `limits.session_rate_per_node`; 0 for no limit. */
  readonly sessionRate: number;
  readonly contacts: number;
  readonly loginsPerSecond: number;
  /** Seconds from the first login until everybody had the presence of all contacts. */
  readonly presenceSeconds: number;
  /** Metrics that count what found no room, or failed, with how much they grew. */
  readonly overflows: Readonly<Record<string, number>>;
  /** Attempts to log in that the node refused. */
  readonly refused: number;
  /** Most requests that waited for a connection to the database at a look, and their bound. */
  readonly mostWaiting: number;
  /** Bytes of the node's heap and buffers in use: before, with all logged in, and after all left. */
  readonly memory: {
    readonly before: number;
    readonly loggedIn: number;
    readonly after: number;
  };
  /** Latency of the chats before the logins and while they went on. */
  readonly latencyBefore: LatencySummary;
  readonly latencyMeanwhile: LatencySummary;
  /** The same of chats within dc2, which that node has no part in: what the machine itself adds. */
  readonly elsewhereBefore: LatencySummary;
  readonly elsewhereMeanwhile: LatencySummary;
}

export interface StormMeasurementOptions {
  readonly logins: number;
  /** Value of `limits.session_rate_per_node` at the nodes. */
  readonly sessionRate: number;
  /** Messages a second of the chats. */
  readonly pacePerSecond: number;
  readonly seconds: number;
}

type Load = BenchChild<LoadCommand, LoadEvent>;
type Storm = BenchChild<StormCommand, StormEvent>;

/** Chats of one process, at their pace. */
interface Chats {
  readonly load: Load;
  readonly perSecond: number;
}

const CONTACTS = 50;
/** Logins under way at once: the node always has some to go on with. */
const AT_ONCE = 100;
const PAIRS = 10;
/** Messages of the chats for each one of those elsewhere, which are not to take much of the machine. */
const MORE_THAN_ELSEWHERE = 4;
const CHAT = { inFlight: 32, messageBytes: 300 } as const;
const WARM_UP_MS = 5_000;
const LOOK_MS = 1_000;
/** Nothing is left to be done so many milliseconds after the last client was served. */
const SETTLE_MS = 5_000;
/** Longest stretch of time with chats; the end of the logins ends it before. */
const LONGEST_MS = 600_000;

/** Metrics that grow when something finds no room, or fails. */
const OVERFLOWS = [
  "causeway_storage_failures_total",
  "causeway_stanzas_without_room_total",
  "causeway_roster_failures_total",
  "causeway_privacy_failures_total",
  "causeway_pep_failures_total",
  "causeway_redis_errors_total",
  "causeway_lookups_delayed_total",
  "causeway_connections_refused_total",
  "causeway_datacenter_limit_hits_total",
  "xmpp_limit_hits_total",
  "xmpp_auth_failures_total",
];

/** Logs a crowd in at dc1, where half of each chat goes on. Other chats go on within dc2. */
export async function measureStorm(
  { cluster, place }: PeopleCluster,
  { logins, sessionRate, pacePerSecond, seconds }: StormMeasurementOptions,
  progress: (text: string) => void,
): Promise<StormFigures> {
  const domain = cluster.globalHost;
  const contacts = Math.min(CONTACTS, logins - 1);
  await addAccounts([
    ...crowd(logins, contacts),
    ...Array.from(
      { length: 4 * PAIRS },
      (_, index) => ({ localpart: chatName(index), contacts: [] }),
    ),
  ], { domain, place, file: cluster.run.path("storm.sqlite") });
  progress(`crowd: ${logins} accounts`);
  const [dc1, dc2] = cluster.datacenters as [Datacenter, Datacenter];
  const inspector = inspectorOf(dc1.node);
  const client = (datacenter: Datacenter, index: number): ClientPlan => ({
    ...datacenter.clientAddress("none"),
    domain,
    localpart: chatName(index),
    password: PASSWORD,
    resource: "bench",
  });
  const planOf = (from: Datacenter, firstIndex: number): LoadPlan => ({
    pairs: Array.from({ length: PAIRS }, (_, index) => ({
      sender: client(from, firstIndex + 2 * index),
      recipient: client(dc2, firstIndex + 2 * index + 1),
    })),
    devices: [],
    ...CHAT,
  });
  const { host, port } = dc1.clientAddress("none");
  const stormPlan: StormPlan = {
    host,
    port,
    domain,
    password: PASSWORD,
    clients: logins,
    contacts,
    atOnce: AT_ONCE,
  };
  await using load: Load = BenchChild.start("./load_process.ts", planOf(dc1, 0));
  await using elsewhere: Load = BenchChild.start("./load_process.ts", planOf(dc2, 2 * PAIRS));
  await using storm: Storm = BenchChild.start("./people/storm_process.ts", stormPlan, {
    isBehind: true,
  });
  await load.expect("ready");
  await elsewhere.expect("ready");
  await storm.expect("ready");

  await putBehind(cluster.database.pids);

  const chats: readonly Chats[] = [
    { load, perSecond: pacePerSecond },
    { load: elsewhere, perSecond: pacePerSecond / MORE_THAN_ELSEWHERE },
  ];
  await begin(chats, seconds * 1000);
  const [latencyBefore, elsewhereBefore] = await end(chats);
  const before = await memoryOf(dc1, inspector);
  const overflowsBefore = await overflowsOf(cluster.datacenters);

  await begin(chats, LONGEST_MS);
  await using watch = new QueueWatch(dc1);
  await storm.send({ do: "log-in" });
  const loggedIn = await storm.expect("logged-in");
  progress(`crowd: logged in after ${(loggedIn.elapsedMs / 1000).toFixed(1)} s`);
  const met = await storm.expect("met");
  for (const { load } of chats) await load.send({ do: "stop" });
  const [latencyMeanwhile, elsewhereMeanwhile] = await end(chats);
  const mostWaiting = watch.most;
  const overflows = grown(overflowsBefore, await overflowsOf(cluster.datacenters));
  const memoryLoggedIn = await memoryOf(dc1, inspector);

  await storm.send({ do: "log-out" });
  await storm.expect("logged-out");
  const after = await memoryOf(dc1, inspector);
  return {
    logins,
    sessionRate,
    contacts,
    loginsPerSecond: logins / loggedIn.elapsedMs * 1000,
    presenceSeconds: met.elapsedMs / 1000,
    refused: loggedIn.refused,
    overflows,
    mostWaiting,
    memory: { before, loggedIn: memoryLoggedIn, after },
    latencyBefore: latencyBefore!,
    latencyMeanwhile: latencyMeanwhile!,
    elsewhereBefore: elsewhereBefore!,
    elsewhereMeanwhile: elsewhereMeanwhile!,
  };
}

/** Makes a ring: the contacts of each are its neighbours on both sides. */
function crowd(logins: number, contacts: number): NewAccount[] {
  return Array.from({ length: logins }, (_, index) => ({
    localpart: crowdName(index),
    contacts: Array.from({ length: contacts }, (_, step) => {
      const distance = step % 2 === 0 ? step / 2 + 1 : -(step + 1) / 2;
      return crowdName((index + distance + logins) % logins);
    }),
  }));
}

function chatName(index: number): string {
  return `chat${index}`;
}

/** Begins all chats, and returns once they are measured, for at most `measureMs`. */
async function begin(chats: readonly Chats[], measureMs: number): Promise<void> {
  for (const { load, perSecond } of chats) {
    await load.send({ do: "pace", perSecond, warmUpMs: WARM_UP_MS, measureMs });
  }
  for (const { load } of chats) await load.expect("begin");
}

/** Waits for the end of all chats. */
async function end(chats: readonly Chats[]): Promise<readonly LatencySummary[]> {
  const latencies: LatencySummary[] = [];
  for (const { load } of chats) {
    const { result } = await load.expect("end");
    await load.expect("drained");
    latencies.push(result.latency);
  }
  return latencies;
}

/**
 * Returns the bytes of the node's heap and buffers that are left after its garbage is collected. Waits
 * until the node has nothing left to tell of those who came or left.
 */
async function memoryOf(datacenter: Datacenter, inspector: string | undefined): Promise<number> {
  const deadlineMs = performance.now() + LONGEST_MS;
  while (pacedWorkIn(await metricsOf(datacenter)) > 0 && performance.now() < deadlineMs) {
    await sleep(LOOK_MS);
  }
  await sleep(SETTLE_MS);
  await collectGarbage(inspector);
  const metrics = await metricsOf(datacenter);
  return sumOf(metrics, "process_heap_used_bytes") +
    sumOf(metrics, "process_external_memory_bytes");
}

/** Returns the number of steps of logins, and of presence, that a node is still to do. */
function pacedWorkIn(metrics: Awaited<ReturnType<typeof metricsOf>>): number {
  return sumOf(metrics, "causeway_paced_work_waiting") +
    sumOf(metrics, "causeway_paced_work_under_way");
}

/** Looks at the queue for the database every second. */
class QueueWatch implements AsyncDisposable {
  readonly #datacenter: Datacenter;
  readonly #watching: Promise<void>;
  #most = 0;
  #isOver = false;

  constructor(datacenter: Datacenter) {
    this.#datacenter = datacenter;
    this.#watching = this.#watch();
  }

  /** Most requests that waited at a look. */
  get most(): number {
    return this.#most;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const waiting = sumOf(await metricsOf(this.#datacenter), "causeway_storage_waiting");
      this.#most = Math.max(this.#most, waiting);
      await sleep(LOOK_MS);
    }
  }
}

async function overflowsOf(datacenters: readonly Datacenter[]): Promise<Record<string, number>> {
  const all = await Promise.all(datacenters.map(metricsOf));
  return Object.fromEntries(
    OVERFLOWS.map((name) => [name, all.reduce((sum, metrics) => sum + sumOf(metrics, name), 0)]),
  );
}

function grown(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(after).map(([name, value]) => [name, value - before[name]!] as const)
      .filter(([, value]) => value > 0),
  );
}

async function metricsOf(datacenter: Datacenter) {
  const response = await fetch(datacenter.adminUrl("/metrics"));
  return parsePrometheusText(await response.text());
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
