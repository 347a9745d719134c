import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { memoryConnectionPair } from "../../net/mod.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { MemoryMetrics } from "./testing/memory_metrics.ts";
import { StanzaOutput } from "./stanza_output.ts";
import { resolveStreamLimits } from "./stream_limits.ts";
import { StreamMetrics } from "./stream_metrics.ts";
import { TcpTransport } from "./tcp_transport.ts";

function outputWith(maxPendingBytes: number, maxOwedBytes = 0) {
  const clock = new ManualClock();
  const metrics = new MemoryMetrics();
  const [near, far] = memoryConnectionPair();
  const limits = resolveStreamLimits({ maxPendingBytes, maxOwedBytes });
  const transport = new TcpTransport(near, limits);
  const output = new StanzaOutput(transport, {
    limits,
    clock,
    metrics: new StreamMetrics(metrics, "c2s"),
  });
  return { output, clock, metrics, near, far };
}

function stanzaOf(byteLength: number): Stanza {
  return {
    kind: "message",
    type: "chat",
    from: parseJid("a@example.com/x"),
    to: parseJid("b@example.com/y"),
    bytes: new Uint8Array(byteLength),
  };
}

Deno.test("StanzaOutput.send() queues maxPendingBytes and refuses one more", () => {
  const { output, near, metrics } = outputWith(16_384);
  assert(output.send(stanzaOf(16_383)));
  assert(output.send(stanzaOf(1)));
  assert(!output.send(stanzaOf(1)));
  assert.equal(near.pendingBytes, 16_384);
  assert.equal(metrics.value("xmpp_stanzas_sent_total", { edge: "c2s", kind: "message" }), 2);
  output.close();
});

Deno.test("StanzaOutput.send() queues one stanza of any size for a peer that has read everything", () => {
  const { output } = outputWith(16_384);
  assert(output.send(stanzaOf(100_000)));
  assert(!output.send(stanzaOf(1)));
  output.close();
});

Deno.test("StanzaOutput.send() queues maxOwedBytes more of owed errors, and refuses one more", () => {
  const { output, near, metrics } = outputWith(16_384, 1000);
  const hits = (limit: string) => metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit });
  assert(output.send(stanzaOf(16_384), true));
  assert(!output.send(stanzaOf(1)));
  assert(output.send(stanzaOf(999), true));
  assert(output.send(stanzaOf(1), true));
  assert.equal(hits("owed-bytes"), 0);
  assert(!output.send(stanzaOf(1), true));
  assert.equal(near.pendingBytes, 17_384);
  assert.deepEqual([hits("pending-bytes"), hits("owed-bytes")], [1, 1]);
  output.close();
});

Deno.test("StanzaOutput keeps a peer that reads, however many owed errors wait", async () => {
  const { output, clock, near, far } = outputWith(16_384, 100_000);
  near.start({ data() {}, closed() {} });
  far.start({ data() {}, closed() {} });
  far.pause();
  for (let n = 0; n < 100; n++) assert(output.send(stanzaOf(1000), true));
  far.resume();
  await Promise.resolve();
  await clock.advanceAsync(30_000, 10_000);
  assert.equal(near.isClosed, false);
  far.pause();
  for (let n = 0; n < 100; n++) output.send(stanzaOf(1000), true);
  await clock.advanceAsync(60_000, 10_000);
  assert.equal(near.isClosed, true, "a peer that does not read is still cut off");
  output.close();
});

Deno.test("StanzaOutput keeps no timer once it is drained or closed", () => {
  const { output, clock } = outputWith(16_384);
  output.send(stanzaOf(20_000));
  output.send(stanzaOf(1));
  output.send(stanzaOf(1));
  assert.equal(clock.pendingTimers, 1);
  output.drained();
  assert.equal(clock.pendingTimers, 0);
  output.send(stanzaOf(1));
  assert.equal(clock.pendingTimers, 1);
  output.close();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("StanzaOutput cuts off a watched peer that has read nothing in two intervals", () => {
  const { output, clock, near, metrics } = outputWith(16_384);
  near.start({ data() {}, closed() {} });
  assert(output.send(stanzaOf(10_000)));
  output.watch();
  clock.advance(30_000);
  assert(output.send(stanzaOf(1000)), "a new stanza does not count as a read one");
  assert.equal(near.isClosed, false);
  clock.advance(30_000);
  assert.equal(near.isClosed, true);
  assert.equal(metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit: "slow-reader" }), 1);
  output.close();
});

Deno.test("StanzaOutput keeps a peer that has caught up by half", async () => {
  const { output, clock, near, far } = outputWith(16_384);
  near.start({ data() {}, closed() {} });
  output.send(stanzaOf(16_384));
  assert(!output.send(stanzaOf(1)));
  far.start({ data() {}, closed() {} });
  await clock.advanceAsync(30_000, 10_000);
  assert.equal(near.isClosed, false);
  assert(output.send(stanzaOf(1)));
  near.close();
});
