import assert from "node:assert/strict";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { parsePrometheusText, type Sample, sumOf } from "../screen/mod.ts";

/**
 * A metric with its classic name, as operators of the reference know it, and its Prometheus name.
 */
interface ClassicName {
  /** `<host>` stands for a remote local host. */
  readonly classic: string;
  readonly prometheus: string;
  readonly kind: "counter" | "gauge" | "histogram";
}

/** Every name of the contract, in its order. */
export const CLASSIC_NAMES: readonly ClassicName[] = [
  counter("outgoing.messages.<host>"),
  counter("incoming.messages.<host>"),
  durations("incoming.transfer_time.<host>[us]"),
  durations("outgoing.queue_time.<host>[us]"),
  durations("incoming.queue_time[us]"),
  counter("incoming.established"),
  counter("incoming.first_packet.<host>"),
  counter("incoming.closed.<host>"),
  counter("incoming.errored.<host>"),
  counter("outgoing.established.<host>"),
  counter("outgoing.closed.<host>"),
  counter("outgoing.errored.<host>"),
  durations("mapping_fetch_time[us]"),
  counter("mapping_fetches"),
  counter("mapping_cache_misses"),
  {
    ...counter("delivered_with_ttl"),
    prometheus: prometheusName("delivered_with_ttl", ""),
    kind: "histogram",
  },
  counter("stop_ttl_zero"),
  {
    ...counter("bounce_queue_size"),
    prometheus: prometheusName("bounce_queue_size", ""),
    kind: "gauge",
  },
];

const PREFIX = "global.mod_global_distrib.";

function prometheusName(classic: string, suffix: string): string {
  const name = classic.replace(/\.<host>/, "").replace(/\[us\]$/, "").replaceAll(".", "_");
  return `mod_global_distrib_${name}${suffix}`;
}

function counter(classic: string): ClassicName {
  return { classic, prometheus: prometheusName(classic, "_total"), kind: "counter" };
}

function durations(classic: string): ClassicName {
  return { classic, prometheus: prometheusName(classic, "_seconds"), kind: "histogram" };
}

/**
 * Increases of metrics, by datacenter and the end of their classic names. All other metrics stood
 * still.
 */
export type Counted = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A histogram by its classic name. */
export interface Summary {
  readonly count: number;
  readonly ratePerSec: number;
  readonly min: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly "p99.9": number;
  readonly max: number;
}

/** Snapshot of every metric of the contract on one node, in both forms. */
class Page {
  readonly #hosts: readonly string[];
  readonly #classic: Readonly<Record<string, Record<string, number>>>;
  readonly #samples: readonly Sample[];

  constructor(
    hosts: readonly string[],
    classic: Readonly<Record<string, Record<string, number>>>,
    samples: readonly Sample[],
  ) {
    this.#hosts = hosts;
    this.#classic = classic;
    this.#samples = samples;
  }

  static async read(datacenter: Datacenter, hosts: readonly string[]): Promise<Page> {
    const [classic, text] = await Promise.all([
      get(datacenter, "/api/metrics").then((response) => response.json()),
      get(datacenter, "/metrics").then((response) => response.text()),
    ]);
    return new Page(hosts, classic, parsePrometheusText(text));
  }

  /**
   * Counts by classic name, one for each host if the name contains a host.
   * @throws when one is missing
   */
  get classicCounts(): Readonly<Record<string, number>> {
    return this.#counts((name) => {
      const metric = this.#classic[PREFIX + name];
      if (metric === undefined) throw new Error(`/api/metrics has no ${PREFIX}${name}`);
      return (metric["count"] ?? metric["value"])!;
    });
  }

  /** The same counts from the Prometheus text. @throws when one is missing */
  get prometheusCounts(): Readonly<Record<string, number>> {
    return this.#counts((_name, { prometheus, kind }, labels) => {
      const name = kind === "histogram" ? `${prometheus}_count` : prometheus;
      if (!this.#samples.some((sample) => sample.name === name)) {
        throw new Error(`/metrics has no ${name}`);
      }
      return sumOf(this.#samples, name, labels);
    });
  }

  summary(name: string): Summary {
    return this.#classic[PREFIX + name] as unknown as Summary; // as the admin API documents it
  }

  /** Upper bounds of a histogram's buckets, in Prometheus' unit. */
  bounds(prometheus: string): readonly number[] {
    const bounds = this.#samples.filter(({ name }) => name === `${prometheus}_bucket`)
      .map(({ labels }) => Number(labels["le"]!.replace("+Inf", "Infinity")));
    return [...new Set(bounds)].toSorted((one, other) => one - other);
  }

  #counts(
    read: (name: string, metric: ClassicName, labels: Readonly<Record<string, string>>) => number,
  ): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const metric of CLASSIC_NAMES) {
      if (!metric.classic.includes("<host>")) {
        counts[metric.classic] = read(metric.classic, metric, {});
        continue;
      }
      for (const host of this.#hosts) {
        const name = metric.classic.replace("<host>", host);
        counts[name] = read(name, metric, { host });
      }
    }
    return counts;
  }
}

/** Watches every metric of the contract on every node of a cluster, from one step to the next. */
export class ClassicMetrics {
  readonly #cluster: Cluster;
  #before: ReadonlyMap<string, Page>;

  private constructor(cluster: Cluster, before: ReadonlyMap<string, Page>) {
    this.#cluster = cluster;
    this.#before = before;
  }

  /** Resolves when earlier activity has ended. */
  static async of(cluster: Cluster): Promise<ClassicMetrics> {
    const metrics = new ClassicMetrics(cluster, await readAll(cluster));
    await metrics.settle();
    return metrics;
  }

  /** Page of one datacenter as last seen. */
  page(name: string): Page {
    return this.#before.get(name)!; // there is one for each
  }

  /** Takes a new starting point as soon as two snapshots in a row are equal. */
  async settle(): Promise<void> {
    await this.#cluster.until(async () => {
      const before = this.#before;
      this.#before = await readAll(this.#cluster);
      return [...before].every(([name, { classicCounts }]) =>
        Object.keys(moved(classicCounts, this.page(name).classicCounts)).length === 0
      );
    }, { what: "all metrics stand still", everyMs: 100 });
  }

  /**
   * Waits until the metrics have moved by exactly `counted` since the last step, in both forms, on
   * every node. Metrics not named must not have moved. The next step begins there.
   */
  async expect(counted: Counted): Promise<void> {
    const wanted = this.#cluster.datacenters.map(({ name }) =>
      [name, counted[name] ?? {}] as const
    );
    let seen: unknown;
    await this.#cluster.until(async () => {
      const now = await readAll(this.#cluster);
      const forms = (["classicCounts", "prometheusCounts"] as const).map((form) =>
        wanted.map(([name]) => [
          name,
          moved(this.#before.get(name)![form], now.get(name)![form]),
        ])
      );
      seen = forms;
      for (const form of forms) assert.deepEqual(form, wanted);
      this.#before = now;
      return true;
    }, {
      what: `exactly this has moved: ${Deno.inspect(wanted, { depth: 4 })}`,
      evidence: () => `this has moved: ${Deno.inspect(seen, { depth: 6 })}`,
    });
  }
}

function moved(
  before: Readonly<Record<string, number>>,
  now: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(now)
      .map(([name, count]) => [name, count - before[name]!] as const)
      .filter(([, by]) => by !== 0),
  );
}

async function readAll(cluster: Cluster): Promise<ReadonlyMap<string, Page>> {
  const pages = await Promise.all(cluster.datacenters.map(async (datacenter) => {
    const hosts = cluster.datacenters.map(({ localHost }) => localHost)
      .filter((host) => host !== datacenter.localHost);
    return [datacenter.name, await Page.read(datacenter, hosts)] as const;
  }));
  return new Map(pages);
}

async function get(datacenter: Datacenter, path: string): Promise<Response> {
  const response = await fetch(datacenter.adminUrl(path));
  if (response.ok) return response;
  throw new Error(`${datacenter.name} answers ${response.status} for ${path}`);
}
