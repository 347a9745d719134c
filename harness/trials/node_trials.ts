import type { CausewayNode, ClusterOptions, Datacenter } from "../cluster/mod.ts";
import {
  causewayCommand,
  type Command,
  LAST_RELEASE,
  PROJECT_DIRECTORY,
  releaseCommand,
  runProgram,
  serveCommand,
  skewedCommand,
  unpackRelease,
} from "../process/mod.ts";
import { liveMs } from "../live_clock.ts";
import { FOUND_THROUGH_TABLE } from "./link_trials.ts";
import type { Trial } from "./trial.ts";
import { placesOf, type TrialStage } from "./trial_stage.ts";

/** Everyone who was logged in there is back after this time. */
const RECOVERY_MS = 5_000;
const MAX_PAUSE_MS = 30_000;
const CLOCK_OFF_MS = 300_000;
/** To who has just moved another order is allowed: the fewer these are, the more is held to it. */
const MOVE_EVERY_MS = 2_000;

export const NODE_KILLED: Trial = {
  name: "node-killed",
  summary: "a node is killed (SIGKILL) and started again, then one of another datacenter",
  answers: "some",
  async run(stage) {
    for (const node of [stage.node("dc2"), stage.node("dc3", 1)]) {
      await stage.during(async () => {
        await stage.kill(node);
        await stage.pass(stage.faultMs / 4);
        await stage.start(node);
      }, { afterMs: RECOVERY_MS });
      await stage.untilEveryoneIsOnline();
      await stage.pass(stage.faultMs / 4);
    }
  },
};

export const NODE_STOPPED: Trial = {
  name: "node-stopped",
  summary: "a node is stopped (SIGSTOP) for up to 30 s and goes on",
  answers: "some",
  async run(stage) {
    const node = stage.node("dc2");
    await stage.during(async () => {
      node.pause();
      await stage.pass(500);
      const address = stage.cluster.datacenter("dc2").adminUrl("/health", node);
      const isDeaf = await fetch(address, { signal: AbortSignal.timeout(500) })
        .then(() => false, () => true);
      stage.prove("stopped nodes that answered nothing", isDeaf ? 1 : 0);
      await stage.pass(Math.min(MAX_PAUSE_MS, stage.faultMs / 2));
      node.resume();
    }, { afterMs: RECOVERY_MS });
    await stage.pass(stage.faultMs / 2);
  },
};

export const ENDPOINTS_MOVED: Trial = {
  name: "endpoints-moved",
  summary: "nodes end and come back with their link endpoint at another port",
  answers: "none",
  options: () => FOUND_THROUGH_TABLE,
  async run(stage) {
    for (const datacenter of ["dc2", "dc3"]) {
      const node = stage.node(datacenter);
      const before = linkPort(node);
      await restart(stage, node);
      if (linkPort(node) === before) {
        throw new Error(
          `${node.name} came back with its link endpoint at the same port: ${before}`,
        );
      }
      stage.prove("moved endpoints");
      await stage.pass(stage.faultMs / 2);
    }
  },
};

export const ROLLING_RESTART: Trial = {
  name: "rolling-restart",
  summary: "every node, one after another, is ended with SIGTERM and started again",
  answers: "none",
  async run(stage) {
    const nodes = stage.nodes();
    for (const { node } of nodes) {
      await restart(stage, node);
      await stage.pass(stage.faultMs / nodes.length);
    }
  },
};

/** The database and the accounts are those of the last release, whose nodes run from the start. */
export const ROLLING_UPGRADE: Trial = {
  name: "rolling-upgrade",
  summary: `the database is prepared for this build under load, every node, one after another, ` +
    `goes from ${LAST_RELEASE.version} to this build, and back; archives miss nothing`,
  answers: "none",
  obstacle: releaseObstacle,
  options: () => ({ ...OF_RELEASE, database: "postgresql", archives: true }),
  // At 2 680, the archives of 0.1.0 fall behind on a small machine, and senders are refused.
  mostPerSecond: 600,
  async run(stage) {
    const nodes = stage.nodes();
    await prepareDatabase(stage);
    for (const build of [THIS_BUILD, OLD_BUILD]) {
      for (const each of nodes) {
        await change(stage, each, build);
        await stage.pass(stage.faultMs / (2 * nodes.length));
      }
    }
  },
  async finish(stage) {
    // Nodes of both builds are to find the same in the archives.
    await change(stage, stage.nodes()[0]!, THIS_BUILD);
  },
};

/** Each datacenter has a node of either release for a while. The built-in store has no archives here. */
export const MIXED_RELEASES: Trial = {
  name: "mixed-releases",
  summary: `one node of each datacenter goes from ${LAST_RELEASE.version} to this build, on one ` +
    "built-in store with the others, and back",
  answers: "none",
  obstacle: releaseObstacle,
  options: () => OF_RELEASE,
  async run(stage) {
    const firsts = stage.cluster.datacenters.map((datacenter) => ({
      datacenter,
      node: datacenter.nodes[0]!,
    }));
    for (const build of [THIS_BUILD, OLD_BUILD]) {
      for (const each of firsts) {
        await change(stage, each, build);
        await stage.pass(stage.faultMs / (2 * firsts.length));
      }
    }
  },
};

/** A program of a node, with its name for people. */
interface Build {
  readonly name: string;
  readonly command: (configFile: string) => Command;
}

const THIS_BUILD: Build = { name: "this build", command: serveCommand };
const OLD_BUILD: Build = { name: LAST_RELEASE.version, command: serveRelease };

/** Milliseconds that a stanza may take from its client to a busy node. */
const ON_ITS_WAY_MS = 5_000;

/** Ends a node and starts it with another program. */
async function change(
  stage: TrialStage,
  { datacenter, node }: ReturnType<TrialStage["nodes"]>[number],
  { name, command }: Build,
): Promise<void> {
  const before = await versionOf(datacenter, node);
  const isOld = node.command === OLD_BUILD.command;
  const clients = stage.load.everyone.filter(({ place }) => place?.name === node.name);
  const fromMs = liveMs() - ON_ITS_WAY_MS;
  node.command = command;
  await restart(stage, node);
  // What nodes of 0.1.0 hand on when they stop may miss the archive of its sender.
  if (isOld) stage.allowGaps(clients.map(({ jid }) => jid), { fromMs, toMs: liveMs() });
  if (await versionOf(datacenter, node) !== before) stage.prove(`nodes that went to ${name}`);
}

const OF_RELEASE: ClusterOptions = {
  command: serveRelease,
  administration: (args) => releaseCommand(LAST_RELEASE, args),
};

async function releaseObstacle(): Promise<string | undefined> {
  const { version } = LAST_RELEASE;
  return await unpackRelease(LAST_RELEASE).then(
    () => undefined,
    (thrown) => `there is no release ${version} here: ${thrown}`,
  );
}

/** Brings the database to the schema of this build, as an operator does before an upgrade. */
async function prepareDatabase(stage: TrialStage): Promise<void> {
  const { configFile } = stage.node("dc1");
  const { program, args } = causewayCommand(["backends", "prepare", "--config", configFile]);
  const outcome = await runProgram(program, args, { cwd: PROJECT_DIRECTORY });
  if (outcome?.code !== 0) throw new Error(`Cannot prepare the database: ${outcome?.errors}`);
  stage.say(outcome.output.trim());
  stage.prove("databases prepared under load");
}

export const FAST_CLOCK = wrongClock("fast-clock", "ahead", CLOCK_OFF_MS);
export const SLOW_CLOCK = wrongClock("slow-clock", "behind", -CLOCK_OFF_MS);

function wrongClock(name: string, how: string, aheadMs: number): Trial {
  return {
    name,
    summary:
      `the clock of one node is five minutes ${how}; clients of it and of others come and go`,
    answers: "none",
    options: () => ({
      command: (configFile) => {
        const args = ["serve", "--config", configFile];
        return configFile.endsWith("dc2-node1.toml")
          ? skewedCommand(aheadMs, args)
          : causewayCommand(args);
      },
    }),
    async run(stage) {
      const node = stage.node("dc2");
      const { datacenter } = stage.nodes().find((each) => each.node === node)!;
      const response = await fetch(datacenter.adminUrl("/metrics", node));
      const text = await response.text();
      const started = Number(/^process_start_time_seconds (\S+)$/m.exec(text)?.[1]);
      const offMs = 1000 * started - Date.now();
      const isOff = Math.abs(offMs - aheadMs) < CLOCK_OFF_MS / 2;
      stage.prove(`clocks that are minutes ${how}`, isOff ? 1 : 0);
      const { clients } = stage.load;
      const places = placesOf(stage.cluster);
      await stage.repeatedly(Math.min(MOVE_EVERY_MS, stage.faultMs / 3), async (round) => {
        // somebody else each time goes to where the clock is wrong, or from there to where it is right
        const client = clients[round % clients.length]!;
        const isThere = client.place?.name.startsWith("dc2-") ?? false;
        const others = places.filter(({ name }) => isThere !== name.startsWith("dc2-"));
        await client.move(others);
        stage.prove("moves to another datacenter");
      });
    },
  };
}

function serveRelease(configFile: string): Command {
  return releaseCommand(LAST_RELEASE, ["serve", "--config", configFile]);
}

async function versionOf(datacenter: Datacenter, node: CausewayNode): Promise<string> {
  const response = await fetch(datacenter.adminUrl("/health", node));
  return (await response.json() as { readonly version: string }).version;
}

/**
 * Ends a node and starts it again, and waits until its clients are back, who cannot send meanwhile.
 * @throws when it did not drain and end by itself
 */
export async function restart(stage: TrialStage, node: CausewayNode): Promise<void> {
  await stage.during(async () => {
    const { code, signal } = await stage.stop(node);
    if (code !== 0 || signal !== null) {
      throw new Error(`${node.name} did not end by itself: ${signal ?? `exit code ${code}`}`);
    }
    stage.prove("nodes that drained and ended by themselves");
    await stage.start(node);
    await stage.untilEveryoneIsOnline();
  });
}

function linkPort(node: CausewayNode): number | undefined {
  return node.ready.links[0]?.port;
}
