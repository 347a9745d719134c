import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { Direction, LinkProxy } from "../faults/mod.ts";
import type { Trial } from "./trial.ts";

/** Length of a partition, relative to `expire_after`. */
const PARTITION_FACTOR = 1.6;
/** A request and its result may be on their way for so long when the partition begins. */
const ON_THE_WAY_MS = 500;
/** Bytes after which a link is cut: now in a handshake, now in a frame. */
const MAX_CUT_AFTER_BYTES = 20_000;

/** Links that break, one after another or all at once. */
export const LINK_CUT: Trial = {
  name: "link-cut-mid-frame",
  summary: "one link after another is cut in the middle of what is sent on it",
  answers: "none",
  async run(stage) {
    const proxies = stage.proxies();
    const counts = () => proxies.map((proxy) => proxy.counts);
    const before = counts();
    await stage.repeatedly(250, (round) => {
      proxies[(5 * round) % proxies.length]!.cutAfter(
        1 + Math.floor(Math.random() * MAX_CUT_AFTER_BYTES),
      );
    });
    for (const proxy of proxies) proxy.heal();
    const after = counts();
    for (const [index, { cuts, partings }] of after.entries()) {
      stage.prove("links cut", cuts - before[index]!.cuts);
      stage.prove("of them in the middle of a piece", partings - before[index]!.partings);
    }
  },
};

export const ALL_LINKS_CUT: Trial = {
  name: "all-links-cut",
  summary: "every link between datacenters is cut, every second",
  answers: "none",
  async run(stage) {
    const proxies = stage.proxies();
    await stage.repeatedly(1000, () => {
      for (const proxy of proxies) {
        const before = proxy.counts.cuts;
        proxy.cut();
        stage.prove("links cut", proxy.counts.cuts - before);
      }
    });
  },
};

/** A proxy, and what it swallows. */
interface Hole {
  readonly proxy: LinkProxy;
  readonly direction: Direction;
}

/** A direction in which nothing arrives, unnoticed by either side. */
export const BLACK_HOLE: Trial = {
  name: "black-hole",
  summary: "what dc1 sends to dc2 vanishes without a reset, then what dc2 sends to dc1",
  answers: "none",
  options: (faultMs) => ({
    // so that links are closed and reconnected within a short fault too
    configure: (configuration) => {
      configuration["limits"] = { link_silence_timeout: Math.min(15, Math.max(1, faultMs / 5000)) };
    },
  }),
  async run(stage) {
    for (const direction of ["forward", "backward"] as const) {
      // every link between the two, whoever dialled it
      const opposite = direction === "forward" ? "backward" : "forward";
      const holes: readonly Hole[] = [
        ...stage.cluster.links("dc1", "dc2").map((proxy): Hole => ({ proxy, direction })),
        ...stage.cluster.links("dc2", "dc1").map((proxy): Hole => ({ proxy, direction: opposite })),
      ];
      const passed = () =>
        holes.map(({ proxy, direction }) =>
          direction === "forward" ? proxy.counts.forwardBytes : proxy.counts.backwardBytes
        );
      // A link that stands is asked whether it lives: without a hole something comes through these.
      const linked = () => holes.filter(({ proxy }) => proxy.connections > 0).length;
      await stage.cluster.until(() => linked() > 0, { what: "dc1 and dc2 are linked" });
      for (const { proxy, direction } of holes) proxy.blackHole(direction);
      const found = linked();
      const before = passed();
      await stage.pass(stage.faultMs / 2);
      const after = passed();
      for (const { proxy } of holes) proxy.heal();
      for (const [index, { proxy }] of holes.entries()) {
        const bytes = after[index]! - before[index]!;
        if (bytes > 0) throw new Error(`${bytes} bytes came through the black hole ${proxy.name}`);
      }
      const way = direction === "forward" ? "from dc1 to dc2" : "from dc2 to dc1";
      stage.prove(`black holes ${way}`, found);
      await stage.pass(stage.faultMs / 8);
    }
  },
};

/** A datacenter that nobody reaches for longer than anything is remembered. */
export const PARTITION: Trial = {
  name: "partition",
  summary: "dc1 is parted from the others for longer than expire_after, and healed",
  answers: "some",
  options: (faultMs) => ({
    configure: (configuration) => {
      const seconds = expireAfterSeconds(faultMs);
      const { redis } = configuration.modules.mod_global_distrib;
      Object.assign(redis, { expire_after: seconds, refresh_after: Math.max(1, seconds / 2 | 0) });
      configuration["limits"] = { link_silence_timeout: Math.max(1, seconds / 4) };
    },
  }),
  outlivedExpiryMs: (faultMs) => 1000 * expireAfterSeconds(faultMs),
  async run(stage) {
    const { cluster } = stage;
    const passed = () => bytesBetween(cluster, "dc1");
    await stage.during(async () => {
      cluster.isolate("dc1");
      await stage.pass(100);
      const before = passed();
      await stage.pass(stage.faultMs);
      stage.prove("partitions", passed() === before ? 1 : 0);
      cluster.rejoin("dc1");
    }, { beforeMs: ON_THE_WAY_MS, afterMs: 1000 * expireAfterSeconds(stage.faultMs) });
    await stage.pass(1000 * expireAfterSeconds(stage.faultMs));
  },
};

function expireAfterSeconds(faultMs: number): number {
  return Math.max(2, Math.round(faultMs / 1000 / PARTITION_FACTOR));
}

/** Bytes on all links that cross the border of datacenter `name`. */
function bytesBetween(cluster: Cluster, name: string): number {
  let bytes = 0;
  for (const other of cluster.datacenters) {
    if (other.name === name) continue;
    for (const pair of [[name, other.name], [other.name, name]] as const) {
      for (const { counts } of cluster.links(...pair)) {
        bytes += counts.forwardBytes + counts.backwardBytes;
      }
    }
  }
  return bytes;
}

/** Options that every trial about endpoints shares: links find each other through the table. */
export const FOUND_THROUGH_TABLE: ClusterOptions = { links: "direct" };
