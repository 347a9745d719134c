import assert from "node:assert/strict";
import type { TraceStepAnswer } from "../../admin/mod.ts";
import { ManualClock } from "../../base/mod.ts";
import { Envelope, TRACE_STEPS } from "../../distribution/mod.ts";
import { Tracing } from "../../distribution/tracing/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { makeTraces } from "./trace_view.ts";

Deno.test("makeTraces() shows each step with a sentence of its own, and never what a stanza says", () => {
  const clock = new ManualClock();
  const tracing = new Tracing({ maxTraces: 1 }, {
    nodeName: "node1@dc1.example.com",
    localHost: "dc1.example.com",
    globalHost: "example.com",
    hosts: new Set(["example.com", "dc1.example.com"]),
    isOtherLocalHost: () => false,
    metrics: new MetricsRegistry(clock),
    clock,
  });
  const traces = makeTraces(tracing);
  assert.equal(traces.addressOf("Alice@EXAMPLE.com/Phone"), "alice@example.com/Phone");
  assert.equal(traces.addressOf("a@b@c"), undefined);
  const steps: TraceStepAnswer[] = [];
  const request = { address: "alice@example.com", forMs: 1_000, who: "ops" };
  const listener = { step: (step: TraceStepAnswer) => steps.push(step), node() {}, ended() {} };
  assert.notEqual(traces.open(request, listener), undefined);
  assert.equal(traces.isFull, true);
  const envelope = new Envelope({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid("alice@example.com/phone"),
      to: parseJid("bob@example.com"),
      bytes: new TextEncoder().encode("<message><body>secret</body></message>"),
    },
    process: 36,
    sequence: 7,
    origin: "dc1.example.com",
    sentAtUs: 1,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  });
  const trace = tracing.follow(envelope)!;
  for (const step of TRACE_STEPS) trace.note(step);
  trace.note("queued", { place: "dc2.example.com", lane: 3, number: 812 });
  assert.equal(new Set(steps.map(({ text }) => text)).size, TRACE_STEPS.length + 1);
  assert.equal(steps.at(-1)!.text, "queued for dc2.example.com, lane 3, number 812");
  assert.equal(steps.at(-1)!.stanza, "10-7");
  assert.doesNotMatch(JSON.stringify(steps), /secret/);
});
