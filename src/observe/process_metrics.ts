import process from "node:process";
import type { Clock } from "../base/mod.ts";
import type { MetricsRegistry } from "./metrics_registry.ts";

/**
 * Registers the metrics that every process shows about itself, under the names that Prometheus' clients
 * use.
 */
export function registerProcessMetrics(metrics: MetricsRegistry, clock: Clock): void {
  const startedAtSec = clock.wallMs() / 1000;
  metrics.gauge(
    { name: "process_start_time_seconds", help: "When did the process start, in Unix time" },
    () => startedAtSec,
  );
  metrics.counterFrom(
    { name: "process_cpu_seconds_total", help: "How much processor time has the process used" },
    () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  );
  const memory = [
    ["process_resident_memory_bytes", "How much memory does the process occupy", "rss"],
    ["process_heap_bytes", "How much of the memory is the engine's heap", "heapTotal"],
    ["process_heap_used_bytes", "How much of the heap is used", "heapUsed"],
    [
      "process_external_memory_bytes",
      "How much memory do buffers outside the heap occupy",
      "external",
    ],
  ] as const;
  for (const [name, help, field] of memory) {
    metrics.gauge({ name, help }, () => Deno.memoryUsage()[field]);
  }
}
