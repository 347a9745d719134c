import { join } from "node:path";
import { BenchChild } from "../e2e/bench_child.ts";
import { measureRun, planPairs } from "../e2e/cluster_measurement.ts";
import type { Load, MeasuredCluster } from "../e2e/cluster_measurement.ts";
import type { TelemetrySink } from "../e2e/telemetry_sink.ts";
import type { ArmCommand, ArmEvent, ArmPlan } from "./arm_protocol.ts";
import { NodeWatcher } from "./node_watcher.ts";
import type { ArmName, PairsOptions } from "./pairs_options.ts";
import type { Turn } from "./pairs_report.ts";

type ArmProcess = BenchChild<ArmCommand, ArmEvent>;

/** Tree and settings of an arm. */
export interface ArmPlace {
  readonly name: ArmName;
  /** Directory of its tree. */
  readonly tree: string;
  readonly sink: TelemetrySink;
}

const PASSWORD = "bench";
const DIRECTION = "one-way";
const TRACED_RATIO = 0.01;
const PERMISSIONS = ["--allow-read", "--allow-write", "--allow-sys", "--allow-run"];

/** The cluster of one arm with its clients, idle but for its turns. */
export class ClusterArm implements AsyncDisposable {
  readonly name: ArmName;
  readonly #process: ArmProcess;
  readonly #cluster: MeasuredCluster;
  readonly #load: Load;
  readonly #watcher: NodeWatcher | undefined;

  private constructor(
    name: ArmName,
    process: ArmProcess,
    { cluster, load, watcher }: {
      readonly cluster: MeasuredCluster;
      readonly load: Load;
      readonly watcher: NodeWatcher | undefined;
    },
  ) {
    this.name = name;
    this.#process = process;
    this.#cluster = cluster;
    this.#load = load;
    this.#watcher = watcher;
  }

  static async start({ name, tree, sink }: ArmPlace, options: PairsOptions): Promise<ClusterArm> {
    const account = (index: number) => ({ localpart: `bench${index}`, password: PASSWORD });
    const plan: ArmPlan = {
      tree,
      users: Array.from({ length: 2 * options.pairs }, (_, index) => account(index)),
      observe: observeOf(name, sink),
    };
    await using stack = new AsyncDisposableStack();
    const process: ArmProcess = stack.use(
      BenchChild.start("../pairs/arm_process.ts", plan, {
        config: join(tree, "deno.json"),
        permissions: PERMISSIONS,
      }),
    );
    const { domain, nodes } = await process.expect("ready");
    const cluster: MeasuredCluster = { domain, nodes, account };
    const load: Load = stack.use(
      BenchChild.start("./load_process.ts", {
        pairs: planPairs(cluster, { ...options, direction: DIRECTION }),
        devices: [],
        inFlight: options.inFlight,
        messageBytes: options.messageBytes,
      }),
    );
    await load.expect("ready");
    const watcher = name === "observed"
      ? new NodeWatcher(nodes.map(({ admin }) => admin))
      : undefined;
    stack.move();
    return new ClusterArm(name, process, { cluster, load, watcher });
  }

  /** Gives the cluster load for a while, of which the first part is not measured. */
  async turn(times: { readonly warmUpMs: number; readonly measureMs: number }): Promise<Turn> {
    const run = await measureRun(this.#cluster, this.#load, { direction: DIRECTION }, {
      do: "saturate",
      ...times,
    });
    if (this.#watcher?.failure !== undefined) throw this.#watcher.failure;
    const cpuUs = run.nodes.map(({ cpuUsPerMessage }) => cpuUsPerMessage);
    return {
      arm: this.name,
      messagesPerSecond: run.messagesPerSecond,
      cpuUsPerMessage: cpuUs.reduce((sum, each) => sum + each, 0),
      p99Us: run.latency.p99Us,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watcher?.[Symbol.asyncDispose]();
    await this.#load[Symbol.asyncDispose]();
    await using process = this.#process;
    try {
      await process.send({ do: "stop" });
      await process.expect("stopped");
    } catch {
      // It has died. The turn that this ended says so, and must not be hidden by another error.
    }
  }
}

function observeOf(name: ArmName, sink: TelemetrySink): ArmPlan["observe"] {
  if (name === "observed") return sink.settings(0);
  return name === "traced" ? sink.settings(TRACED_RATIO) : undefined;
}
