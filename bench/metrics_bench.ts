import { SystemClock } from "../src/base/mod.ts";
import { MetricsRegistry } from "../src/observe/mod.ts";

// Each iteration moves a metric this often, so that the cost of calling the bench disappears.
// Below 50 µs an iteration means below 50 ns each.
const MOVES = 1000;

const metrics = new MetricsRegistry(new SystemClock());
const labels = { host: "dc2.example.com" };
const counter = metrics.counter({
  name: "sent_total",
  classicName: "sent.<host>",
  help: "How many were sent",
  labels,
});
const gauge = metrics.gauge({
  name: "queue_items",
  classicName: "queue.<host>",
  help: "How many wait",
  labels,
});
const histogram = metrics.histogramUs({
  name: "travel_seconds",
  classicName: "travel.<host>[us]",
  help: "How long",
  labels,
});
let seed = 12345;
const values = Float64Array.from({ length: MOVES }, () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return 2 ** (seed / 4294967296 * 24);
});

Deno.bench("Counter.inc ×1000", { group: "move", baseline: true }, () => {
  for (let i = 0; i < MOVES; i++) counter.inc();
});

Deno.bench("Gauge.set ×1000", { group: "move" }, () => {
  for (let i = 0; i < MOVES; i++) gauge.set(i);
});

Deno.bench("Histogram.observe ×1000, 1 µs to 16 s", { group: "move" }, () => {
  for (let i = 0; i < MOVES; i++) histogram.observe(values[i]!);
});

if (Object.keys(metrics.classic()).length !== 3) throw new Error("Expected 3 metrics to be shown");

Deno.bench("MetricsRegistry.classic, 3 metrics", { group: "show" }, () => {
  metrics.classic();
});

Deno.bench("MetricsRegistry.prometheus, 3 metrics", { group: "show" }, async () => {
  await metrics.prometheus();
});
