import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MetricsRegistry } from "./metrics_registry.ts";
import { registerProcessMetrics } from "./process_metrics.ts";

const SENT = {
  name: "mod_global_distrib_outgoing_messages_total",
  help: "How many stanzas were sent to each datacenter",
  classicName: "global.mod_global_distrib.outgoing.messages.<host>",
};
const TRANSFER = {
  name: "mod_global_distrib_incoming_transfer_time_seconds",
  help: "How long did stanzas travel",
  classicName: "global.mod_global_distrib.incoming.transfer_time.<host>[us]",
};

Deno.test("MetricsRegistry gives the same counter for the same name and labels", () => {
  const metrics = new MetricsRegistry(new ManualClock());
  const one = metrics.counter({ ...SENT, labels: { host: "dc2.example.com" } });
  const again = metrics.counter({ ...SENT, labels: { host: "dc2.example.com" } });
  const other = metrics.counter({ ...SENT, labels: { host: "dc3.example.com" } });
  one.inc();
  again.inc(2);
  other.inc(5);
  assert.equal(one, again);
  assert.equal(one.value, 3);
  assert.equal(other.value, 5);
});

Deno.test("MetricsRegistry.classic() shows classic names with the labels filled in", () => {
  const clock = new ManualClock();
  const metrics = new MetricsRegistry(clock);
  metrics.counter({ ...SENT, labels: { host: "dc2.example.com" } }).inc(30);
  metrics.counter({ name: "unclassic_total", help: "Has it no classic name" }).inc();
  const size = metrics.gauge({
    name: "mod_global_distrib_bounce_queue_size",
    help: "How many stanzas bounce",
    classicName: "global.mod_global_distrib.bounce_queue_size",
  });
  size.set(4);
  size.add(-1);
  const transfer = metrics.histogramUs({ ...TRANSFER, labels: { host: "dc2.example.com" } });
  for (let value = 1; value <= 50; value++) transfer.observe(value);
  clock.advance(10_000);
  assert.deepEqual(metrics.classic(), {
    "global.mod_global_distrib.bounce_queue_size": { value: 3 },
    "global.mod_global_distrib.incoming.transfer_time.dc2.example.com[us]": {
      count: 50,
      ratePerSec: 5,
      min: 1,
      mean: 25.5,
      p50: 25,
      p95: 48,
      p99: 50,
      "p99.9": 50,
      max: 50,
    },
    "global.mod_global_distrib.outgoing.messages.dc2.example.com": { count: 30, ratePerSec: 3 },
  });
});

Deno.test("MetricsRegistry.prometheus() renders counters, gauges and histograms in seconds", async () => {
  const metrics = new MetricsRegistry(new ManualClock());
  metrics.counter({ ...SENT, labels: { host: "dc2.example.com" } }).inc(7);
  metrics.gauge({ name: "queue_items", help: 'How "long" is it' }, () => 12.5);
  const transfer = metrics.histogramUs({ ...TRANSFER, labels: { host: "dc2.example.com" } });
  for (const valueUs of [10, 11, 25, 30_000_000, 30_000_001]) transfer.observe(valueUs);
  const hops = metrics.histogram({ name: "hops", help: "How many hops were left" }, [1, 2, 4]);
  for (const value of [1, 3, 4, 9]) hops.observe(value);
  const lines = (await metrics.prometheus()).split("\n");
  const host = 'host="dc2.example.com"';
  const name = TRANSFER.name;
  for (
    const line of [
      `# HELP ${SENT.name} ${SENT.help}`,
      `# TYPE ${SENT.name} counter`,
      `${SENT.name}{${host}} 7`,
      "# TYPE queue_items gauge",
      "queue_items 12.5",
      `# TYPE ${name} histogram`,
      `${name}_bucket{${host},le="0.00001"} 1`,
      `${name}_bucket{${host},le="0.000025"} 3`,
      `${name}_bucket{${host},le="10"} 3`,
      `${name}_bucket{${host},le="30"} 4`,
      `${name}_bucket{${host},le="+Inf"} 5`,
      `${name}_sum{${host}} 60.000047`,
      `${name}_count{${host}} 5`,
      'hops_bucket{le="1"} 1',
      'hops_bucket{le="2"} 1',
      'hops_bucket{le="4"} 3',
      'hops_bucket{le="+Inf"} 4',
      "hops_sum 17",
    ]
  ) {
    assert.ok(lines.includes(line), `${line} is not in\n${lines.join("\n")}`);
  }
  assert.match(metrics.contentType, /^text\/plain/);
});

Deno.test("MetricsRegistry rates cover the last minute and no more", () => {
  const clock = new ManualClock();
  const metrics = new MetricsRegistry(clock);
  const counter = metrics.counter({ ...SENT, labels: { host: "a" } });
  function rate(): number {
    const shown = metrics.classic()["global.mod_global_distrib.outgoing.messages.a"];
    assert.ok(shown !== undefined && "ratePerSec" in shown);
    return shown.ratePerSec;
  }
  assert.equal(rate(), 0);
  clock.advance(1000);
  counter.inc(10);
  assert.equal(rate(), 10, "one second old");
  clock.advance(59_000);
  assert.equal(rate(), 10 / 60);
  clock.advance(5000);
  assert.equal(rate(), 0, "the burst is older than a minute");
  for (let second = 0; second < 200; second++) {
    clock.advance(1000);
    counter.inc(3);
  }
  assert.ok(Math.abs(rate() - 3) < 0.1, String(rate()));
  assert.equal(clock.pendingTimers, 1, "one timer for all");
  metrics.close();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("MetricsRegistry refuses one name with two meanings", () => {
  const metrics = new MetricsRegistry(new ManualClock());
  metrics.counter({ ...SENT, labels: { host: "a" } });
  metrics.histogram({ name: "hops", help: "?" }, [1, 2]);
  const { name, help, classicName } = SENT;
  assert.throws(
    () => metrics.counter({ name, help: "other", classicName, labels: { host: "a" } }),
    {
      message: /with help "other"/,
    },
  );
  assert.throws(() => metrics.counter({ ...SENT, labels: { peer: "a" } }), { message: /labels/ });
  assert.throws(() => metrics.counter(SENT), { message: /labels/ });
  assert.throws(() => metrics.gauge({ ...SENT, labels: { host: "a" } }), { message: /kind/ });
  assert.throws(() => metrics.counter({ name, help, labels: { host: "a" } }), {
    message: /classicName/,
  });
  assert.throws(() => metrics.histogram({ name: "hops", help: "?" }, [1, 3]), {
    message: /bounds 1,3/,
  });
  assert.throws(() => metrics.histogram({ name: "x", help: "?" }, [2, 1]), RangeError);
});

Deno.test("registerProcessMetrics() shows memory and processor time", async () => {
  const clock = new ManualClock(1_700_000_000_000);
  const metrics = new MetricsRegistry(clock);
  registerProcessMetrics(metrics, clock);
  const text = await metrics.prometheus();
  assert.match(text, /^process_start_time_seconds 1700000000$/m);
  assert.match(text, /^# TYPE process_cpu_seconds_total counter$/m);
  const rss = Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]);
  assert.ok(rss > 1e6, String(rss));
  const cpu = Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
  assert.ok(cpu > 0, String(cpu));
});

Deno.test("MetricsRegistry.remove() removes a metric from every output", async () => {
  const metrics = new MetricsRegistry(new ManualClock());
  const gone = { host: "dc9.example.com" };
  const left = { host: "dc2.example.com" };
  for (const labels of [gone, left]) {
    metrics.counter({ ...SENT, labels }).inc(3);
    metrics.histogramUs({ ...TRANSFER, labels }).observe(5);
    metrics.gauge({ name: "lag", help: "How far behind is it", labels }, () => 7);
  }
  for (const name of [SENT.name, TRANSFER.name, "lag", "unknown"]) metrics.remove(name, gone);
  metrics.remove("lag", { host: "dc8.example.com" });
  const text = await metrics.prometheus();
  assert.ok(!text.includes("dc9"), text);
  assert.equal(
    text.match(/^[^#].*dc2/gm)?.length,
    2 + 20 + 3,
    "the remaining metrics are complete",
  );
  assert.deepEqual(Object.keys(metrics.classic()).filter((name) => name.includes("dc9")), []);
  assert.equal(metrics.counter({ ...SENT, labels: gone }).value, 0, "it begins anew");
});
