import { setTimeout as delay } from "node:timers/promises";
import { RawClient } from "../clients/mod.ts";
import type { CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import { liveMs } from "../live_clock.ts";
import { MiserlyPeer } from "../peers/mod.ts";
import { parsePrometheusText, sumOf } from "../screen/mod.ts";
import type { Trial } from "./trial.ts";
import type { TrialStage } from "./trial_stage.ts";

/** A datacenter whose links stand and let nothing through. */
const MISER = "dc9.example.com";
const LANE_MAX_BYTES = 2 * 1024 * 1024;
/** Bytes that the node may use for everything else. The input would be gigabytes. */
const MAX_GROWTH_BYTES = 128 * 1024 * 1024;
/** As many as there are guests; each writes as fast as it is let. */
const FEEDERS = 4;
const CHUNK_STANZAS = 50;
const STANZA = `<message to='somebody@${MISER}'><body>${"x".repeat(1000)}</body></message>`;
const LOOK_EVERY_MS = 250;
/** A feeder whose bytes nobody has taken for so long is held back. */
const HELD_BACK_MS = 3_000;
const RECEIVED_WITHIN_MS = 60_000;

/** It has to be there before the node is told of it, and that before anybody logs in. */
const misers = new WeakMap<Cluster, MiserlyPeer>();

export const MISERLY_PEER: Trial = {
  name: "miserly-peer",
  summary: "a datacenter keeps its links and grants nothing, clients feed it as fast as they can",
  answers: "none",
  options: (faultMs) => ({
    configure: (configuration) => {
      configuration["limits"] = {
        lane_max_bytes: LANE_MAX_BYTES,
        // within which it has to be asked whether it lives, and to answer
        link_silence_timeout: Math.min(15, Math.max(8, faultMs / 4000)),
      };
    },
  }),
  async prepare(cluster) {
    const certificate = await cluster.authority.issue({ names: [MISER] });
    const miser = await MiserlyPeer.listen(MISER, certificate);
    misers.set(cluster, miser);
    const { node } = cluster.datacenter("dc1");
    node.configuration.global_distrib_addr[MISER] = [miser.address];
    await node.restart();
    return miser;
  },
  async run(stage) {
    const { cluster } = stage;
    const miser = misers.get(cluster)!; // `prepare` has put it there
    const dc1 = cluster.datacenter("dc1");
    await cluster.until(() => miser.links === 1, { what: "dc1 has linked to the miser" });
    const beginning = await costs(dc1, dc1.node);
    await using feeders = new AsyncDisposableStack();
    const feeding: Feeder[] = [];
    for (const user of cluster.users.slice(-FEEDERS)) {
      const client = await RawClient.login({
        ...dc1.clientAddress("none"),
        ...user,
        domain: cluster.globalHost,
      });
      feeding.push(new Feeder(feeders.use(client)));
    }
    const ends = feeding.map((feeder) => feeder.feed());
    for (const end of ends) end.catch(() => {}); // awaited below
    const pings = miser.pings;
    await grantNothing(stage, { beginning, feeding, miser });
    stage.prove("questions whether it lives that it answered", miser.pings - pings);
    miser.grant();
    for (const feeder of feeding) feeder.stop();
    await Promise.all(ends);
    const written = feeding.reduce((sum, { taken }) => sum + taken, 0);
    await cluster.until(() => miser.received >= written, {
      what: "the miser, generous now, has it all",
      evidence: () => `it has ${miser.received} of ${written}`,
      withinMs: RECEIVED_WITHIN_MS,
    });
    stage.say(`fed: ${written} stanzas, of which ${miser.received} came`);
    if (miser.received !== written) throw new Error("the miser was sent more than was written");
    stage.prove("stanzas that came once it granted", miser.received);
  },
};

/** Looks at what the miser costs for as long as the fault lasts. */
async function grantNothing(
  stage: TrialStage,
  { beginning, feeding, miser }: {
    readonly beginning: Costs;
    readonly feeding: readonly Feeder[];
    readonly miser: MiserlyPeer;
  },
): Promise<void> {
  const dc1 = stage.cluster.datacenter("dc1");
  let most = beginning;
  await stage.cluster.until(() => feeding.every(({ isHeldBack }) => isHeldBack), {
    what: "everyone who feeds the miser is held back",
    withinMs: RECEIVED_WITHIN_MS,
  });
  const taken = feeding.map((feeder) => feeder.taken);
  const endMs = liveMs() + stage.faultMs;
  while (liveMs() < endMs || most === beginning) {
    const now = await costs(dc1, dc1.node);
    most = {
      laneBytes: Math.max(most.laneBytes, now.laneBytes),
      rssBytes: Math.max(most.rssBytes, now.rssBytes),
    };
    await delay(LOOK_EVERY_MS);
  }
  const grownBytes = most.rssBytes - beginning.rssBytes;
  stage.say(
    `the miser cost ${most.laneBytes} bytes at most, of ${LANE_MAX_BYTES}; the node ${grownBytes} more`,
  );
  if (most.laneBytes > LANE_MAX_BYTES) throw new Error("the miser cost more than its bound");
  if (grownBytes > MAX_GROWTH_BYTES) throw new Error("the node did not stay in its memory");
  if (miser.received > 0) throw new Error("the miser was sent what it had not granted");
  stage.prove("bytes that waited for it", most.laneBytes);
  const held = feeding.filter(({ taken: now }, index) => now === taken[index]).length;
  if (held < FEEDERS) {
    throw new Error(`only ${held} of ${FEEDERS} feeders were held back all the time`);
  }
  stage.prove("clients that were held back all the time", held);
}

interface Costs {
  readonly laneBytes: number;
  readonly rssBytes: number;
}

async function costs(datacenter: Datacenter, node: CausewayNode): Promise<Costs> {
  const response = await fetch(datacenter.adminUrl("/metrics", node));
  const samples = parsePrometheusText(await response.text());
  return {
    laneBytes: sumOf(samples, "mod_global_distrib_lane_bytes", { host: MISER }),
    rssBytes: sumOf(samples, "process_resident_memory_bytes"),
  };
}

/** A client that writes to the miser without a pause. */
class Feeder {
  readonly #client: RawClient;
  #isStopped = false;
  #taken = 0;
  #takenAtMs = liveMs();

  constructor(client: RawClient) {
    this.#client = client;
  }

  /** Stanzas that could be written. */
  get taken(): number {
    return this.#taken;
  }

  get isHeldBack(): boolean {
    return liveMs() - this.#takenAtMs > HELD_BACK_MS;
  }

  /** Resolves once it was stopped and all that it had begun to write was taken. */
  async feed(): Promise<void> {
    const chunk = STANZA.repeat(CHUNK_STANZAS);
    while (!this.#isStopped) {
      await this.#client.send(chunk);
      this.#taken += CHUNK_STANZAS;
      this.#takenAtMs = liveMs();
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}
