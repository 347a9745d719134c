import type { CausewayNode, Datacenter } from "../cluster/mod.ts";
import {
  causewayCommand,
  type Command,
  LAST_RELEASE,
  releaseCommand,
  serveCommand,
  skewedCommand,
  unpackRelease,
} from "../process/mod.ts";
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

/** The databases were prepared by this build, as an operator does before an upgrade. */
export const ROLLING_UPGRADE: Trial = {
  name: "rolling-upgrade",
  summary:
    `every node, one after another, goes from ${LAST_RELEASE.version} to this build, and back`,
  answers: "none",
  obstacle: () =>
    unpackRelease(LAST_RELEASE).then(
      () => undefined,
      (thrown) => `there is no release ${LAST_RELEASE.version} here: ${thrown}`,
    ),
  options: () => ({ command: serveRelease }),
  async run(stage) {
    const nodes = stage.nodes();
    const commands = { "this build": serveCommand, [LAST_RELEASE.version]: serveRelease };
    for (const [build, command] of Object.entries(commands)) {
      for (const { datacenter, node } of nodes) {
        const before = await versionOf(datacenter, node);
        node.command = command;
        await restart(stage, node);
        if (await versionOf(datacenter, node) !== before) {
          stage.prove(`nodes that went to ${build}`);
        }
        await stage.pass(stage.faultMs / (2 * nodes.length));
      }
    }
  },
};

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
async function restart(stage: TrialStage, node: CausewayNode): Promise<void> {
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
