import { BenchChild } from "./bench_child.ts";
import type { BenchOptions } from "./bench_options.ts";
import type { ClientPlan, LoadCommand, LoadEvent, LoadPlan, PairPlan } from "./load_protocol.ts";
import type { NodeFigures, RunFigures } from "./message_report.ts";
import { processUsage } from "./process_usage.ts";

/** One node as the bench sees it. */
export interface MeasuredNode {
  readonly name: string;
  readonly pid: number;
  /** Address where clients log in without TLS. */
  readonly c2s: { readonly host: string; readonly port: number };
}

/** Target of the load: one node for each datacenter, with accounts. */
export interface MeasuredCluster {
  readonly domain: string;
  readonly nodes: readonly MeasuredNode[];
  /** The name and password of an account of its own for each client, known at every node. */
  readonly account: (index: number) => { readonly localpart: string; readonly password: string };
  /** Waited for before the run at a fixed rate. @default nothing */
  readonly beforePaced?: () => Promise<void>;
  /** False leaves out the runs with a second device of each sender. @default true */
  readonly hasDevices?: boolean;
}

export interface ClusterFigures {
  readonly full: readonly RunFigures[];
  readonly paced: RunFigures;
  /** At full load, while a second device of each sender gets carbons in another datacenter. */
  readonly withCarbons: readonly RunFigures[];
}

/** The load generator's process. */
export type Load = BenchChild<LoadCommand, LoadEvent>;

/** The part of the options that says who writes to whom. */
type PairOptions = Pick<BenchOptions, "pairs" | "direction">;

/** Runs the load through the first two datacenters; the others only stand by. */
export async function measureCluster(
  cluster: MeasuredCluster,
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<ClusterFigures> {
  const plan: LoadPlan = {
    pairs: planPairs(cluster, options),
    devices: planDevices(cluster, options),
    inFlight: options.inFlight,
    messageBytes: options.messageBytes,
  };
  await using load: Load = BenchChild.start("./load_process.ts", plan);
  await load.expect("ready");
  const measureMs = options.seconds * 1000;
  const full: RunFigures[] = [];
  for (let run = 1; run <= options.runs; run++) {
    const warmUpMs = run === 1 ? options.warmUpSeconds * 1000 : SETTLE_MS;
    const figures = await measureRun(cluster, load, options, {
      do: "saturate",
      warmUpMs,
      measureMs,
    });
    full.push(figures);
    progress(`run ${run} of ${options.runs}: ${Math.round(figures.messagesPerSecond)} messages/s`);
  }
  await cluster.beforePaced?.();
  const perSecond = options.pacePerSecond;
  const command = { do: "pace", perSecond, warmUpMs: SETTLE_MS, measureMs } as const;
  const paced = await measureRun(cluster, load, options, command);
  progress(`at ${perSecond} messages/s: p99 ${paced.latency.p99Us} µs`);
  if (cluster.hasDevices === false) return { full, paced, withCarbons: [] };
  await load.send({ do: "bring-devices" });
  await load.expect("devices");
  const withCarbons: RunFigures[] = [];
  for (let run = 1; run <= options.runs; run++) {
    const figures = await measureRun(cluster, load, options, {
      do: "saturate",
      warmUpMs: SETTLE_MS,
      measureMs,
    });
    withCarbons.push(figures);
    progress(`with carbons, run ${run}: ${Math.round(figures.messagesPerSecond)} messages/s`);
  }
  return { full, paced, withCarbons };
}

/** Milliseconds before a later run is measured: the load starts anew each time. */
const SETTLE_MS = 500;

/** Returns the clients of each pair. */
export function planPairs(cluster: MeasuredCluster, options: PairOptions): PairPlan[] {
  return Array.from({ length: options.pairs }, (_, index) => {
    const { from, to } = placesOf(index, cluster, options);
    return {
      sender: planClient(cluster, { node: from, account: 2 * index, resource: "bench" }),
      recipient: planClient(cluster, { node: to, account: 2 * index + 1, resource: "bench" }),
    };
  });
}

/** The second device of each sender, where its recipient is: each carbon crosses the link. */
function planDevices(cluster: MeasuredCluster, options: BenchOptions): ClientPlan[] {
  return Array.from({ length: options.pairs }, (_, index) => {
    const { to } = placesOf(index, cluster, options);
    return planClient(cluster, { node: to, account: 2 * index, resource: "device" });
  });
}

/** Returns the node of a pair's sender, and that of its recipient. */
function placesOf(
  index: number,
  { nodes: [first, second] }: MeasuredCluster,
  { direction }: PairOptions,
): { readonly from: MeasuredNode; readonly to: MeasuredNode } {
  if (first === undefined || second === undefined) throw new TypeError("Two nodes are needed");
  const isBack = direction === "both-ways" && index % 2 === 1;
  return isBack ? { from: second, to: first } : { from: first, to: second };
}

function planClient(
  cluster: MeasuredCluster,
  { node, account, resource }: {
    readonly node: MeasuredNode;
    readonly account: number;
    readonly resource: string;
  },
): ClientPlan {
  return { ...node.c2s, domain: cluster.domain, ...cluster.account(account), resource };
}

/** Gives load to a cluster for a while. It is drained when this resolves. */
export async function measureRun(
  cluster: MeasuredCluster,
  load: Load,
  options: Pick<BenchOptions, "direction">,
  command: LoadCommand,
): Promise<RunFigures> {
  const pids = [load.pid, ...cluster.nodes.map(({ pid }) => pid)];
  await load.send(command);
  await load.expect("begin");
  const before = await Promise.all(pids.map(processUsage));
  const { result } = await load.expect("end");
  const after = await Promise.all(pids.map(processUsage));
  await load.expect("drained");
  if (result.received === 0) throw new Error("No message arrived");
  const cpuUsPerMessage = (index: number) =>
    (after[index]!.cpuUs - before[index]!.cpuUs) / result.received;
  return {
    messagesPerSecond: result.received / result.elapsedMs * 1000,
    nodes: cluster.nodes.map((node, index): NodeFigures => ({
      node: node.name,
      role: roleOf(index, options),
      cpuUsPerMessage: cpuUsPerMessage(index + 1),
      residentBytes: after[index + 1]!.residentBytes,
    })),
    loadCpuUsPerMessage: cpuUsPerMessage(0),
    latency: result.latency,
  };
}

function roleOf(index: number, options: Pick<BenchOptions, "direction">): NodeFigures["role"] {
  if (index > 1) return "bystander";
  if (options.direction === "both-ways") return "both";
  return index === 0 ? "source" : "destination";
}
