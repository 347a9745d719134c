import type { Cluster } from "../cluster/mod.ts";
import {
  runTrial,
  type Side,
  type Trial,
  type TrialResult,
  type TrialStage,
} from "../trials/mod.ts";
import { liveMs } from "../live_clock.ts";
import { commotion } from "./commotion.ts";
import { Progress } from "./progress.ts";
import { leaks, rssByThird, type Sample } from "./samples.ts";
import { sampleNode } from "./watch.ts";

/** Duration and load of a soak. */
export interface SoakOptions {
  readonly minutes: number;
  readonly perSecond: number;
  /** A malicious datacenter is there all the time. */
  readonly hasMalice: boolean;
  /** Traffic of the accounts beside their numbered stanzas. */
  readonly side: Side;
  readonly say: (line: string) => void;
}

const SAMPLE_MS = 2_000;
/** Milliseconds after the commotion in which every stanza must get its fate. */
const SETTLE_MS = 30_000;
/**
 * Milliseconds after that in which a node must get rid of all stanzas. Those for the malicious
 * datacenter, which is gone by then, go back after `expire_after`, 120 s.
 */
const CALM_MS = 150_000;
const MEBIBYTE = 1024 * 1024;

/** Runs load, clients that come and go, and faults, and checks that no resource leaks. */
export async function soak(
  { minutes, perSecond, hasMalice, side, say }: SoakOptions,
): Promise<TrialResult> {
  const trial: Trial = {
    name: "soak",
    summary: `${minutes} minutes of traffic, moves and faults`,
    answers: "some",
    run: async (stage) => {
      const found = await commotionUnderWatch(stage);
      if (found.length > 0) throw new Error(found.join("; "));
    },
  };
  return await runTrial(trial, { faultMs: minutes * 60_000, perSecond, hasMalice, side, say });
}

async function commotionUnderWatch(stage: TrialStage): Promise<readonly string[]> {
  const { cluster } = stage;
  const victim = cluster.datacenters.at(-1)!.nodes.at(-1)!;
  const watched = stage.nodes().filter(({ node }) => node !== victim);
  const sampleAll = () =>
    Promise.all(watched.map(({ datacenter, node }) => sampleNode(datacenter, node)));
  const calm = await sampleAll();
  const rows: (readonly Sample[])[] = [];
  const { ledger } = stage.load;
  const progress = new Progress({
    minutes: stage.faultMs / 60_000,
    nowMs: liveMs(),
    say: stage.say,
  });
  const watching = new AbortController();
  const watch = (async () => {
    while (!watching.signal.aborted) {
      const samples = await sampleAll();
      rows.push(samples);
      progress.look(
        liveMs(),
        () => ({ sent: ledger.sent, unsettled: ledger.unsettled(), samples }),
      );
      await stage.pass(SAMPLE_MS);
    }
  })();
  watch.catch(() => {}); // a node that is gone fails it below, where the ledger is still printed
  try {
    await commotion(stage, victim);
  } finally {
    watching.abort();
    await watch;
  }
  await stage.endMalice(); // else its stanzas to nobody are held for as long as it writes them
  stage.load.pause();
  await stage.load.settle(SETTLE_MS);
  const end = await untilCalm(cluster, sampleAll);
  return watched.flatMap(({ node }, index) => {
    const samples = rows.map((row) => row[index]!);
    const mebibytes = rssByThird(samples).map((bytes) => Math.round(bytes / MEBIBYTE));
    const [before, after] = [calm, end].map((at) => at[index]!.handles ?? "unknown");
    const handles = `${before} → ${after} handles`;
    stage.say(`${node.name}: ${mebibytes.join(" → ")} MiB by thirds, ${handles}`);
    return leaks(calm[index]!, samples, end[index]!).map((leak) => `${node.name}: ${leak}`);
  });
}

/** Returns the samples of the moment in which no node holds a stanza, or else the last ones. */
async function untilCalm(
  cluster: Cluster,
  sampleAll: () => Promise<readonly Sample[]>,
): Promise<readonly Sample[]> {
  let last: readonly Sample[] = [];
  await cluster.until(async () => {
    last = await sampleAll();
    return last.every(({ held }) => held === 0);
  }, { what: "no node holds anything", withinMs: CALM_MS, everyMs: 500 }).catch(() => {});
  return last;
}
