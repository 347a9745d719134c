import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { LinkMetrics } from "./link_metrics.ts";

Deno.test("LinkMetrics of links within a datacenter stay out of the classic figures", async () => {
  const registry = new MetricsRegistry(new ManualClock());
  const metrics = new LinkMetrics(registry, "datacenter");
  metrics.incomingEstablished.inc();
  metrics.host("node2@dc1").outgoingMessages.inc(3);
  metrics.bindLevels("node2@dc1", { items: () => 7, bytes: () => 8, open: () => 9 });
  assert.deepEqual(registry.classic(), {});
  const text = await registry.prometheus();
  for (
    const line of [
      "causeway_cluster_incoming_established_total 1",
      'causeway_cluster_outgoing_messages_total{node="node2@dc1"} 3',
      'causeway_cluster_links_open{node="node2@dc1"} 9',
    ]
  ) assert.ok(text.includes(line), line);
  assert.ok(!text.includes("mod_global_distrib_"));
  registry.close();
});

Deno.test("LinkMetrics has the names that operators of MongooseIM know", async () => {
  const registry = new MetricsRegistry(new ManualClock());
  const metrics = new LinkMetrics(registry);
  metrics.incomingEstablished.inc();
  const host = metrics.host("dc2.example.com");
  host.outgoingMessages.inc(3);
  host.incomingTransferTime.observe(1500);
  metrics.refused("identity").inc();
  metrics.bindLevels("dc2.example.com", { items: () => 7, bytes: () => 8, open: () => 9 });
  assert.equal(metrics.host("dc2.example.com"), host, "bound once");
  const prefix = "global.mod_global_distrib.";
  assert.deepEqual(
    Object.keys(registry.classic()).map((name) => name.slice(prefix.length)).sort(),
    [
      "incoming.closed.dc2.example.com",
      "incoming.errored.dc2.example.com",
      "incoming.established",
      "incoming.first_packet.dc2.example.com",
      "incoming.messages.dc2.example.com",
      "incoming.transfer_time.dc2.example.com[us]",
      "outgoing.closed.dc2.example.com",
      "outgoing.errored.dc2.example.com",
      "outgoing.established.dc2.example.com",
      "outgoing.messages.dc2.example.com",
      "outgoing.queue_time.dc2.example.com[us]",
    ],
  );
  const text = await registry.prometheus();
  for (
    const line of [
      'mod_global_distrib_outgoing_messages_total{host="dc2.example.com"} 3',
      'mod_global_distrib_links_refused_total{reason="identity"} 1',
      'mod_global_distrib_lane_items{host="dc2.example.com"} 7',
      'mod_global_distrib_incoming_transfer_time_seconds_count{host="dc2.example.com"} 1',
    ]
  ) assert.ok(text.includes(line), line);
  registry.close();
});

Deno.test("LinkMetrics.forget() removes all metrics of a destination, and none of others", async () => {
  const registry = new MetricsRegistry(new ManualClock());
  const metrics = new LinkMetrics(registry);
  for (const name of ["dc2.example.com", "dc9.example.com"]) {
    metrics.host(name).outgoingMessages.inc();
    metrics.bindLevels(name, { items: () => 7, bytes: () => 8, open: () => 9 });
  }
  const linesOf = async (name: string) =>
    (await registry.prometheus()).split("\n").filter((line) => line.includes(name)).length;
  const before = await linesOf("dc2");
  assert.equal(await linesOf("dc9"), before);
  metrics.forget("dc9.example.com");
  assert.equal(await linesOf("dc9"), 0);
  assert.equal(await linesOf("dc2"), before);
  assert.ok(Object.keys(registry.classic()).every((name) => !name.includes("dc9")));
  registry.close();
});
