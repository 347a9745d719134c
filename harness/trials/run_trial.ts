import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, type ClusterOptions, withCluster } from "../cluster/mod.ts";
import { withDeadline } from "../deadline.ts";
import {
  type ArchiveBalance,
  archiveFindings,
  archiveLine,
  type Balance,
  balanceLine,
  deviceLines,
  findings,
  Ledger,
  type PresenceBalance,
  presenceFindings,
  presenceLine,
  type RosterBalance,
  rosterFindings,
  rosterLine,
} from "../ledger/mod.ts";
import { Load, type LoadClient, type Mix, type NodeEnd } from "../load/mod.ts";
import { liveMs } from "../live_clock.ts";
import { MaliciousPeer } from "../peers/mod.ts";
import { PATIENCE_MS } from "../until.ts";
import { ArchiveAudit } from "./archive_audit.ts";
import { befriendedUsers } from "./befriended_users.ts";
import {
  clientsWithSides,
  DATACENTERS,
  GUESTS,
  LOAD_USERS,
  loadClients,
  NODES,
  type Side,
} from "./load_clients.ts";
import type { Trial } from "./trial.ts";
import { TrialStage } from "./trial_stage.ts";

/** Options of a trial: load and duration. */
export interface TrialOptions {
  /** Milliseconds that the fault lasts. */
  readonly faultMs: number;
  readonly perSecond: number;
  /** Milliseconds for which the load runs alone before and after the fault. @default 2000 */
  readonly leadMs?: number;
  /** @default that of a `Load` */
  readonly mix?: Mix;
  /** A malicious datacenter is there all the time. @default true */
  readonly hasMalice?: boolean;
  /** Traffic of the accounts beside their numbered stanzas. @default "contacts" */
  readonly side?: Side;
  /** Added to what the trial asks of its cluster. */
  readonly cluster?: ClusterOptions;
  readonly say?: (line: string) => void;
  /** Milliseconds after which it is taken to hang. @default ten times the fault, and 15 min */
  readonly limitMs?: number;
}

/** Result of a trial. */
export interface TrialResult {
  readonly trial: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly findings: readonly string[];
  readonly proofs: Readonly<Record<string, number>>;
  readonly balance?: Balance;
  readonly archives?: ArchiveBalance;
  readonly rosters?: RosterBalance;
  readonly presence?: PresenceBalance;
  readonly seconds: number;
}

/** Milliseconds after the logins in which every client must hear from every other. */
const FOUND_WITHIN_MS = 2 * PATIENCE_MS;
/** Milliseconds after which everyone greets once more, for devices that were not known. */
const GREET_AGAIN_MS = 3_000;
/** Milliseconds in which every stanza must get its fate once the load has ended. */
const SETTLE_MS = 2 * PATIENCE_MS;
/** Stanzas wait for 25 s: longer than a client needs to come back, on a busy machine too. */
const BOUNCE = { resend_after_ms: 200, max_retries: 7 };
/** Seconds that a node may take to hand over what it holds: more than a busy machine needs. */
const SHUTDOWN_S = 20;
/** Milliseconds in which late duplicates and errors show up. */
const QUIET_MS = 1_500;
/** Limits of a trial, in milliseconds and in times of its fault. No machine comes near to them. */
const LIMIT = { restMs: 900_000, faults: 10 };

/** Plays one trial on a cluster of its own. Rejects only when there cannot be one, or it hangs. */
export async function runTrial(trial: Trial, options: TrialOptions): Promise<TrialResult> {
  const startMs = performance.now();
  const say = options.say ?? (() => {});
  const obstacle = await trial.obstacle?.();
  if (obstacle !== undefined) {
    say(`skipped: ${obstacle}`);
    return { trial: trial.name, outcome: "skipped", findings: [], proofs: {}, seconds: 0 };
  }
  const ofTrial = trial.options?.(options.faultMs);
  const clusterOptions: ClusterOptions = {
    datacenters: DATACENTERS,
    nodes: NODES,
    users: [...LOAD_USERS, ...GUESTS],
    ...(options.side !== "none" && { addUsers: befriendedUsers(LOAD_USERS) }),
    components: [],
    ...ofTrial,
    configure(configuration, place) {
      configuration.modules.mod_global_distrib["bounce"] = BOUNCE;
      ofTrial?.configure?.(configuration, place);
      configuration["limits"] = {
        shutdown_timeout: SHUTDOWN_S,
        ...configuration["limits"] as object | undefined,
      };
    },
    ...options.cluster,
  };
  const seen = await withCluster(clusterOptions, async (cluster) => {
    const result = await withDeadline(playOn(cluster, trial, { ...options, say }), {
      what: `the end of the trial ${trial.name}`,
      withinMs: options.limitMs ?? LIMIT.restMs + LIMIT.faults * options.faultMs,
      seen: () => cluster.tails(),
    });
    if (result.findings.length > 0) {
      await cluster.keep();
      say(`the files of this run are in ${cluster.run.directory}`);
    }
    return result;
  });
  return {
    trial: trial.name,
    outcome: seen.findings.length === 0 ? "passed" : "failed",
    ...seen,
    seconds: Math.round((performance.now() - startMs) / 100) / 10,
  };
}

async function playOn(
  cluster: Cluster,
  trial: Trial,
  { faultMs, perSecond, leadMs = 2_000, mix, hasMalice = true, side: kind = "contacts", say }:
    & TrialOptions
    & {
      readonly say: (line: string) => void;
    },
): Promise<Omit<TrialResult, "trial" | "outcome" | "seconds">> {
  const ends = new Map<string, NodeEnd>();
  const ledger = new Ledger();
  const { clients, side = undefined } = kind === "none"
    ? { clients: loadClients(cluster, ledger, { ends }) }
    : clientsWithSides(cluster, ledger, { ends, hasDevices: kind === "devices" });
  await using _prepared = await trial.prepare?.(cluster);
  await using malice = hasMalice ? await MaliciousPeer.beside(cluster) : undefined;
  await using load = new Load(clients, ledger, {
    perSecond: Math.min(perSecond, trial.mostPerSecond ?? Infinity),
    ...(side && { side }),
    ...(mix && { mix }),
  });
  await load.enter();
  const endMalice = async () => await malice?.stop();
  const stage = new TrialStage({ cluster, load, faultMs, say, endMalice }, ends);
  const found: string[] = [];
  try {
    await stage.during(() => untilEveryoneIsFound(stage));
    load.start();
    malice?.start();
    await delay(leadMs);
    await trial.run(stage);
    await stage.untilEveryoneIsOnline();
    await delay(leadMs);
    if (malice !== undefined) {
      await malice.stop();
      stage.prove("links of a malicious datacenter that were let in", malice.letIn);
    }
  } catch (thrown) {
    found.push(`the trial broke off: ${thrown instanceof Error ? thrown.message : thrown}`);
  }
  load.pause();
  const archives = cluster.options.archives ? new ArchiveAudit(cluster, load) : undefined;
  const look = archives && (() => archives.readOn());
  if (!await load.settle(SETTLE_MS, look)) say(`${ledger.unsettled()} stanzas without a fate`);
  await side?.end(SETTLE_MS);
  await delay(QUIET_MS);
  try {
    await archives?.readOn();
    await trial.finish?.(stage);
    found.push(...await archives?.differences() ?? []);
  } catch (thrown) {
    found.push(`the end broke off: ${thrown instanceof Error ? thrown.message : thrown}`);
  }
  const outlived = trial.outlivedExpiryMs?.(faultMs);
  const options = {
    windows: stage.windows,
    ...(outlived !== undefined && { outlivedExpiryMs: outlived }),
  };
  const balance = ledger.balance(options);
  const kept = archives?.balance((sender, atMs) => stage.mayMissCopies(sender, atMs));
  const rosters = side?.rosters.balance(options);
  const presence = side?.presence.balance();
  say(balanceLine(balance));
  for (const line of deviceLines(balance.devices)) say(line);
  if (kept !== undefined) {
    say(archiveLine(kept));
    found.push(...archiveFindings(kept));
  }
  if (rosters !== undefined && presence !== undefined) {
    say(rosterLine(rosters));
    say(presenceLine(presence));
    found.push(...rosterFindings(rosters), ...presenceFindings(presence));
  }
  const { answers } = trial;
  found.push(...findings(balance, { answers, askedOutside: load.asked(stage.windows) }));
  if (stage.bystanders !== undefined) {
    const beside = ledger.balance({ ...options, windows: [], only: stage.bystanders });
    say(`bystanders: ${balanceLine(beside)}`);
    found.push(
      ...findings(beside, { answers: "none" }).map((finding) => `bystanders: ${finding}`),
    );
  }
  for (const { jid, failure } of load.everyone) {
    if (failure !== undefined) found.push(`${jid} gave up: ${failure}`);
  }
  const proofs = Object.fromEntries(stage.proofs);
  say(`seen: ${Object.entries(proofs).map(([what, times]) => `${times} ${what}`).join(", ")}`);
  say(`clients: ${clientsLine(load.everyone)}`);
  if (malice !== undefined) say(`malice: ${malice.count} acts, seed ${malice.seed}`);
  if (stage.proofs.size === 0 || Object.values(proofs).some((times) => !(times > 0))) {
    found.push("the fault was not seen to happen");
  }
  const sideExamples = [
    ...rosters?.examples ?? [],
    ...presence?.examples ?? [],
    ...kept?.examples ?? [],
  ];
  const examples = [...balance.examples, ...sideExamples];
  for (const example of found.length > 0 ? examples : []) say(example);
  return {
    findings: found,
    proofs,
    balance,
    ...(kept && { archives: kept }),
    ...(rosters && presence && { rosters, presence }),
  };
}

/** A fault is one of a cluster that has started: whoever has logged in is known everywhere. */
async function untilEveryoneIsFound({ cluster, load }: TrialStage): Promise<void> {
  const { ledger, side } = load;
  // A client whose message has arrived is available too: its presence came before the message.
  for (const address of ["full", "bare"] as const) {
    load.greet(address);
    await cluster.until(() => ledger.unsettled() === 0, {
      what: `everyone has heard from everyone at the ${address} address`,
      evidence: () => `${ledger.unsettled()} greetings have not come`,
      withinMs: FOUND_WITHIN_MS,
    });
  }
  let greetedMs = -Infinity;
  // A device that was not known yet gets nothing of the greetings: they are repeated for it.
  await cluster.until(() => {
    if (ledger.missingAtDevices(greetedMs) === 0 && greetedMs > 0) return true;
    if (liveMs() - greetedMs < GREET_AGAIN_MS) return false;
    greetedMs = liveMs();
    for (const address of ["full", "bare"] as const) load.greet(address);
    return false;
  }, {
    what: "every device gets what it is due",
    evidence: () => `${ledger.missingAtDevices(greetedMs)} greetings have not come to a device`,
    withinMs: FOUND_WITHIN_MS,
  });
  await cluster.until(() => side === undefined || side.presence.wrong === 0, {
    what: "everyone sees everyone",
    evidence: () => side?.presence.balance().examples.join("\n") ?? "",
    withinMs: FOUND_WITHIN_MS,
  });
  ledger.everyoneIsKnown();
}

function clientsLine(clients: readonly LoadClient[]): string {
  const sum = { logins: 0, lost: 0, resumed: 0, resumeFailures: 0, resent: 0 };
  for (const { counts } of clients) {
    for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += counts[key];
  }
  return Object.entries(sum).map(([what, times]) => `${times} ${what}`).join(", ");
}
