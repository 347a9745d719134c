import type { CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import { parsePrometheusText, type Sample, sumOf } from "../screen/mod.ts";

const CLASSIC = "global.mod_global_distrib.";

/** Snapshot of the metrics of a datacenter's node, from its admin API. */
export class Figures {
  readonly #classic: Readonly<Record<string, ClassicMetric>>;
  readonly #samples: readonly Sample[];

  private constructor(
    classic: Readonly<Record<string, ClassicMetric>>,
    samples: readonly Sample[],
  ) {
    this.#classic = classic;
    this.#samples = samples;
  }

  /** @param node default: the first */
  static async read(datacenter: Datacenter, node?: CausewayNode): Promise<Figures> {
    const [classic, text] = await Promise.all([
      get(datacenter.adminUrl("/api/metrics", node)).then((response) => response.json()),
      get(datacenter.adminUrl("/metrics", node)).then((response) => response.text()),
    ]);
    return new Figures(classic, parsePrometheusText(text));
  }

  /**
   * Returns a metric by the end of its classic name, such as `stop_ttl_zero`; 0 if nothing moved it
   * yet.
   */
  classic(name: string): number {
    const metric = this.#classic[CLASSIC + name];
    return metric === undefined ? 0 : "value" in metric ? metric.value : metric.count;
  }

  /** A metric by its name in Prometheus' text; 0 if nothing moved it yet. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number {
    return sumOf(this.#samples, name, labels);
  }

  /**
   * Returns the increases of the children of `name` since `before`, by their labels. Children that
   * did not move are left out.
   */
  movedSince(before: Figures, name: string): Readonly<Record<string, number>> {
    const moved: Record<string, number> = {};
    for (const { name: own, labels, value } of this.#samples) {
      const by = own === name ? value - before.sum(name, labels) : 0;
      const child = Object.entries(labels).map(([key, text]) => `${key}=${text}`).join(" ");
      if (by !== 0) moved[child] = by;
    }
    return moved;
  }
}

/** Counters and histograms have a count, gauges a value. */
type ClassicMetric = { readonly count: number } | { readonly value: number };

async function get(url: URL): Promise<Response> {
  const response = await fetch(url);
  if (response.ok) return response;
  throw new Error(`${url} answers ${response.status}`);
}

/** Metrics of what the lanes hold, to other datacenters and to other nodes. */
const LANE_ITEMS = ["mod_global_distrib_lane_items", "causeway_cluster_lane_items"];

/**
 * Waits until no lane of any running node holds a stanza. Until then a node may not know that a
 * stanza was delivered, and would send it again.
 */
export async function untilNothingIsHeld(cluster: Cluster): Promise<void> {
  for (const datacenter of cluster.datacenters) {
    for (const node of datacenter.nodes.filter(({ state }) => state !== "stopped")) {
      await cluster.until(async () => {
        const figures = await Figures.read(datacenter, node);
        return LANE_ITEMS.every((name) => figures.sum(name) === 0);
      }, { what: `${datacenter.name} holds nothing any more` });
    }
  }
}

/**
 * Waits until the lanes and the bounce store of the datacenter `at` hold at least `stanzas`
 * stanzas.
 */
export async function untilHeld(cluster: Cluster, at: string, stanzas: number): Promise<void> {
  let held = 0;
  await cluster.until(
    async () => {
      const figures = await Figures.read(cluster.datacenter(at));
      held = figures.sum("mod_global_distrib_lane_items") +
        figures.sum("mod_global_distrib_bounce_queue_size");
      return held >= stanzas;
    },
    { what: `${at} holds ${stanzas} stanzas`, evidence: () => `it holds ${held}` },
  );
}
