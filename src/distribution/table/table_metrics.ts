import type { Counter, Histogram, MetricDeclaration, Metrics } from "../../observe/mod.ts";

const FETCHES: MetricDeclaration = {
  name: "mod_global_distrib_mapping_fetches_total",
  help: "How many lookups of a JID or domain were there, from the cache or not?",
  classicName: "global.mod_global_distrib.mapping_fetches",
};
const MISSES: MetricDeclaration = {
  name: "mod_global_distrib_mapping_cache_misses_total",
  help: "How many lookups had to ask Redis?",
  classicName: "global.mod_global_distrib.mapping_cache_misses",
};
const FETCH_TIME: MetricDeclaration = {
  name: "mod_global_distrib_mapping_fetch_time_seconds",
  help: "How long did a lookup take, from the cache (0) or by asking Redis?",
  classicName: "global.mod_global_distrib.mapping_fetch_time[us]",
};

/** Metrics of the session table. */
export class TableMetrics {
  readonly fetches: Counter;
  readonly misses: Counter;
  readonly fetchTimeUs: Histogram;
  readonly errors: Counter;
  readonly garbage: Counter;
  readonly repairs: Counter;

  constructor(
    metrics: Metrics,
    read: { isUp(): boolean; entries(): number; cached(): number; readBacks(): number },
  ) {
    this.fetches = metrics.counter(FETCHES);
    this.misses = metrics.counter(MISSES);
    this.fetchTimeUs = metrics.histogramUs(FETCH_TIME);
    this.errors = metrics.counter({
      name: "causeway_redis_errors_total",
      help: "How many commands did Redis refuse, and how many calls failed with the connection?",
    });
    this.garbage = metrics.counter({
      name: "causeway_table_garbage_total",
      help: "How many values in Redis were not what the session table writes, and were ignored?",
    });
    this.repairs = metrics.counter({
      name: "causeway_table_repairs_total",
      help: "How many keys named the wrong datacenter when looked at again, and were put right?",
    });
    metrics.gauge({
      name: "causeway_redis_up",
      help: "Is Redis connected and taking writes (1), or is the session table degraded (0)?",
    }, () => read.isUp() ? 1 : 0);
    metrics.gauge({
      name: "causeway_table_own_entries",
      help: "How many sessions and component domains does this node keep in the session table?",
    }, read.entries);
    metrics.gauge({
      name: "causeway_table_cached_entries",
      help: "How many JIDs and domains are in the cache?",
    }, read.cached);
    metrics.gauge({
      name: "causeway_table_read_backs_waiting",
      help: "How many read-backs of recently written entries are still to come?",
    }, read.readBacks);
  }

  /** Counts a lookup that the cache has answered, which took no measurable time. */
  fetchedFromCache(): void {
    this.fetches.inc();
    this.fetchTimeUs.observe(0);
  }
}
