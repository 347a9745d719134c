import type { CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import { parsePrometheusText, type Sample, sumOf } from "../screen/mod.ts";

const CLASSIC = "global.mod_global_distrib.";

/** What a node of a datacenter had counted at one moment, as its admin API tells. */
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

  /** A metric by the end of its classic name, such as `stop_ttl_zero`; 0 if nothing moved it yet. */
  classic(name: string): number {
    const metric = this.#classic[CLASSIC + name];
    return metric === undefined ? 0 : "value" in metric ? metric.value : metric.count;
  }

  /** A metric by its name in Prometheus' text; 0 if nothing moved it yet. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number {
    return sumOf(this.#samples, name, labels);
  }

  /** How far the children of `name` have moved since `before`, by their labels: only those that have. */
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

/**
 * Waits until no lane of any datacenter holds anything: until then what was delivered would be sent again
 * where a node has not heard so.
 */
export async function untilNothingIsHeld(cluster: Cluster): Promise<void> {
  for (const datacenter of cluster.datacenters) {
    await cluster.until(
      async () => (await Figures.read(datacenter)).sum("mod_global_distrib_lane_items") === 0,
      { what: `${datacenter.name} holds nothing any more` },
    );
  }
}

/** Waits until lanes and bounce of the datacenter `at` hold so many stanzas at least. */
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
