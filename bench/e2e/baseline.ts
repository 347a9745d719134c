import { CertificateAuthority } from "../../harness/certificates.ts";
import type {
  BaselineEvent,
  BaselineReceiverCommand,
  BaselineReceiverPlan,
  BaselineSenderCommand,
  BaselineSenderPlan,
} from "./baseline_protocol.ts";
import { BenchChild } from "./bench_child.ts";
import type { LatencySummary } from "./latency_recorder.ts";
import { processUsage } from "./process_usage.ts";

export interface BaselineOptions {
  readonly frameBytes: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Frames a second for the measurement of latency. */
  readonly pacePerSecond: number;
}

/** Figures of the same machine with only TLS between two processes. */
export interface BaselineFigures {
  readonly framesPerSecond: number;
  readonly senderCpuUsPerFrame: number;
  readonly receiverCpuUsPerFrame: number;
  /** At the fixed rate. */
  readonly latency: LatencySummary;
}

type Receiver = BenchChild<BaselineReceiverCommand, BaselineEvent>;
type Sender = BenchChild<BaselineSenderCommand, BaselineEvent>;

/** Measures a raw `node:tls` stream of frames: its highest rate, and its latency at a fixed one. */
export async function measureBaseline(options: BaselineOptions): Promise<BaselineFigures> {
  const serverName = "baseline.example.com";
  const authority = await CertificateAuthority.create("Causeway bench CA");
  const certificate = await authority.issue({ names: [serverName] });
  const caPem = authority.certificatePem;
  const plan: BaselineReceiverPlan = { ...certificate, caPem, frameBytes: options.frameBytes };

  await using receiver: Receiver = BenchChild.start("./baseline_receiver.ts", plan);
  const { port } = await receiver.expect("listening");
  const senderPlan: BaselineSenderPlan = { ...plan, port, serverName };
  await using sender: Sender = BenchChild.start("./baseline_sender.ts", senderPlan);
  await sender.expect("connected");

  await sender.send({ do: "saturate" });
  const fast = await measure(sender, receiver, options);
  await sender.send({ do: "pause" });
  await sender.send({ do: "pace", perSecond: options.pacePerSecond });
  const paced = await measure(sender, receiver, options);
  return {
    framesPerSecond: fast.result.frames / fast.result.elapsedMs * 1000,
    senderCpuUsPerFrame: fast.senderCpuUs / fast.result.frames,
    receiverCpuUsPerFrame: fast.receiverCpuUs / fast.result.frames,
    latency: paced.result.latency,
  };
}

async function measure(sender: Sender, receiver: Receiver, options: BaselineOptions) {
  await sleep(options.warmUpMs);
  await receiver.send({ do: "begin" });
  await receiver.expect("begun");
  const before = await Promise.all([processUsage(sender.pid), processUsage(receiver.pid)]);
  await sleep(options.measureMs);
  await receiver.send({ do: "end" });
  const { result } = await receiver.expect("ended");
  const after = await Promise.all([processUsage(sender.pid), processUsage(receiver.pid)]);
  return {
    result,
    senderCpuUs: after[0].cpuUs - before[0].cpuUs,
    receiverCpuUs: after[1].cpuUs - before[1].cpuUs,
  };
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
