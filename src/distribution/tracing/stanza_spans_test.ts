import assert from "node:assert/strict";
import { ManualClock, SeededRandom } from "../../base/mod.ts";
import type { FinishedSpan, ShownAddress } from "../../observe/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { LinkTraffic, OpenLink, StanzaTrace } from "../mod.ts";
import { contextFrame, FrameError } from "../wire/mod.ts";
import { StanzaSpans } from "./stanza_spans.ts";
import { Tracers } from "./tracers.ts";

const CHAT: Stanza = {
  kind: "message",
  type: "chat",
  from: parseJid("alice@example.com/phone"),
  to: parseJid("bob@example.com/laptop"),
  bytes: new TextEncoder().encode("<message/>"),
};

const LINK: OpenLink = {
  host: "dc1.example.com",
  nodeName: "node1@dc1.example.com",
  process: 7,
  send() {},
  refuse() {},
};

/** One node's part of distributed traces, with the spans that it has passed on. */
class Node {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  readonly finished: FinishedSpan[] = [];
  changes = 0;
  readonly spans: StanzaSpans;
  readonly traffic: LinkTraffic;

  constructor(sampleRatio: number, addresses: ShownAddress = "domain", seed = 1) {
    this.spans = new StanzaSpans({ sampleRatio, addresses }, {
      localHost: "dc1.example.com",
      metrics: this.metrics,
      finished: (span) => void this.finished.push(span),
      changed: () => void this.changes++,
      clock: this.clock,
      random: new SeededRandom(seed),
    });
    this.traffic = this.spans.traffic();
  }

  /** Takes the context that another node wrote. */
  hears(frame: Uint8Array, link = LINK): void {
    this.traffic.context!(link, frame, 0, frame.length);
  }

  /** Lets all spans that are over end. */
  sweep(): readonly FinishedSpan[] {
    this.clock.advance(1_000);
    this.clock.advance(1_000);
    return this.finished.splice(0);
  }

  [Symbol.dispose](): void {
    this.spans.close();
    this.metrics.close();
  }
}

function accepted(sequence = 1): Envelope {
  return new Envelope({
    stanza: CHAT,
    process: 7,
    sequence,
    origin: "dc1.example.com",
    sentAtUs: 0,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  });
}

function arrived(sequence = 1): Envelope {
  const envelope = accepted(sequence);
  envelope.arrived("link", "dc1.example.com");
  return envelope;
}

Deno.test("StanzaSpans continues the trace of the node before, as the child of its span", () => {
  using here = new Node(1);
  using there = new Node(0);
  const sent = here.spans.follow(accepted())!;
  sent.note("accepted");
  sent.note("queued", { place: "dc2.example.com", lane: 2, number: 9, reason: undefined });
  assert.equal(there.spans.follow(arrived()), undefined, "nothing is known of it");
  there.hears(sent.carried!);
  const taken = there.spans.follow(arrived())!;
  taken.note("arrived");
  here.clock.advance(3);
  sent.settled();
  taken.settled();
  const [first, ...none] = here.sweep();
  const [second] = there.sweep();
  assert.deepEqual(none, []);
  assert.match(first!.traceId, /^[0-9a-f]{32}$/);
  assert.match(first!.spanId, /^[0-9a-f]{16}$/);
  assert.deepEqual(
    [first!.name, first!.kind, first!.parentSpanId],
    ["send message", "producer", undefined],
  );
  assert.equal(first!.endUs - first!.startUs, 3_000);
  assert.equal(first!.error, undefined);
  assert.deepEqual(first!.events.map(({ name, attributes }) => [name, attributes]), [
    ["accepted", {}],
    ["queued", { "causeway.place": "dc2.example.com", "causeway.lane": 2, "causeway.number": 9 }],
  ]);
  assert.deepEqual(
    [second!.name, second!.kind, second!.traceId, second!.parentSpanId, second!.hasRemoteParent],
    ["process message", "consumer", first!.traceId, first!.spanId, true],
  );
  assert.notEqual(second!.spanId, first!.spanId);
});

Deno.test("StanzaSpans leaves a stanza and a copy of it apart, each with its own context", () => {
  using there = new Node(0);
  const context = (spanId: string) =>
    contextFrame({ process: 7, sequence: 1, isSampled: true, traceId: "ab".repeat(16), spanId });
  there.hears(context("0000000000000001"));
  there.hears(context("0000000000000002"));
  for (const envelope of [arrived(), arrived()]) there.spans.follow(envelope)!.settled();
  assert.equal(there.spans.follow(arrived()), undefined, "a third time it has none");
  assert.deepEqual(there.sweep().map(({ parentSpanId }) => parentSpanId), [
    "0000000000000001",
    "0000000000000002",
  ]);
});

Deno.test("StanzaSpans is off until a context comes, and once its stanza is done", () => {
  using there = new Node(0);
  assert.equal(there.spans.isOn, false);
  const frame = (isSampled: boolean) =>
    contextFrame({
      ...{ process: 7, sequence: 1, isSampled },
      ...{ traceId: "ab".repeat(16), spanId: "cd".repeat(8) },
    });
  there.hears(frame(false));
  assert.equal(there.spans.isOn, false, "nobody records it");
  there.hears(frame(true));
  assert.equal(there.spans.isOn, true);
  there.spans.follow(arrived())!.settled();
  assert.equal(there.sweep().length, 1);
  assert.deepEqual([there.spans.isOn, there.changes], [false, 2]);
});

Deno.test("StanzaSpans forgets the contexts of a link that has ended, and bounds the others", () => {
  using there = new Node(0);
  const frame = (sequence: number) =>
    contextFrame({
      ...{ process: 7, sequence, isSampled: true },
      ...{ traceId: "ab".repeat(16), spanId: "cd".repeat(8) },
    });
  const other = { ...LINK };
  there.hears(frame(1), other);
  there.hears(frame(2));
  there.traffic.ended(other, false);
  assert.equal(there.spans.follow(arrived(1)), undefined);
  assert.notEqual(there.spans.follow(arrived(2)), undefined);
  for (let sequence = 1; sequence <= 4_097; sequence++) there.hears(frame(sequence));
  assert.equal(there.spans.follow(arrived(1)), undefined, "the oldest had to go");
  assert.notEqual(there.spans.follow(arrived(2)), undefined);
  const lost = there.metrics.counter({
    name: "causeway_trace_contexts_dropped_total",
    help:
      "Places in distributed traces that were dropped: too many waited for their stanzas, or came",
  });
  assert.equal(lost.value, 1);
});

Deno.test("StanzaSpans bounds what a process of another datacenter has it trace", () => {
  using there = new Node(0);
  const stranger = { ...LINK, host: "dc9.example.com" };
  let traced = 0;
  for (let sequence = 1; sequence <= 3_000; sequence++) {
    const [traceId, spanId] = ["ab".repeat(16), "cd".repeat(8)];
    there.hears(contextFrame({ process: 7, sequence, isSampled: true, traceId, spanId }), stranger);
    if (there.spans.follow(arrived(sequence)) !== undefined) traced++;
  }
  assert.equal(traced, 2_000);
});

Deno.test("StanzaSpans refuses a context of no trace", () => {
  using there = new Node(0);
  const frame = contextFrame({
    ...{ process: 7, sequence: 1, isSampled: true },
    ...{ traceId: "00".repeat(16), spanId: "cd".repeat(8) },
  });
  assert.throws(() => there.hears(frame), FrameError);
});

Deno.test("StanzaSpans puts an answer into the trace of its request, which ends with it", () => {
  using here = new Node(1);
  const request = here.spans.follow(accepted(1))!;
  request.note("held", { retry: 1 });
  request.note("answered", { reason: "service-unavailable" });
  here.spans.follow(accepted(2), request)!.settled();
  const [failed, answer] = here.sweep();
  assert.equal(failed!.error, "answered: service-unavailable");
  assert.equal(failed!.attributes["causeway.is_open"], undefined);
  assert.deepEqual([answer!.traceId, answer!.parentSpanId], [failed!.traceId, failed!.spanId]);
  assert.equal(answer!.hasRemoteParent, false);
});

Deno.test("StanzaSpans answers a stanza of another node's trace within that trace", () => {
  using there = new Node(0);
  const [traceId, spanId] = ["ab".repeat(16), "cd".repeat(8)];
  there.hears(contextFrame({ process: 7, sequence: 1, isSampled: true, traceId, spanId }));
  const request = there.spans.follow(arrived())!;
  assert.equal(there.spans.isOn, true, "while the request is here, its answer is looked at");
  there.spans.follow(accepted(2), request)!.settled();
  const [, answer] = there.sweep();
  assert.deepEqual([answer!.traceId, answer!.parentSpanId], [traceId, request.context!.spanId]);
});

Deno.test("StanzaSpans traces the share of stanzas that it is told to", () => {
  const traced = (ratio: number) => {
    using node = new Node(ratio);
    let count = 0;
    for (let sequence = 1; sequence <= 20_000; sequence++) {
      const span = node.spans.follow(accepted(sequence));
      if (span !== undefined) count++;
      span?.settled();
    }
    return count;
  };
  assert.equal(traced(0), 0);
  assert.equal(traced(1), 20_000);
  const one = traced(0.01);
  assert.ok(one > 150 && one < 250, `${one} of 20 000 at 1 %`);
  const most = traced(0.75);
  assert.ok(most > 14_700 && most < 15_300, `${most} of 20 000 at 75 %`);
});

Deno.test("StanzaSpans shows of addresses what it may", () => {
  const shown = (addresses: ShownAddress) => {
    using node = new Node(1, addresses);
    node.spans.follow(accepted())!.settled();
    const { attributes } = node.sweep()[0]!;
    assert.equal(attributes["messaging.destination.name"], attributes["xmpp.to"]);
    return [attributes["xmpp.from"], attributes["xmpp.to"]];
  };
  assert.deepEqual(shown("domain"), ["example.com", "example.com"]);
  assert.deepEqual(shown("bare"), ["alice@example.com", "bob@example.com"]);
  assert.deepEqual(shown("full"), ["alice@example.com/phone", "bob@example.com/laptop"]);
});

Deno.test("StanzaSpans waits for late steps of copies, and not for ever for a settlement", () => {
  using here = new Node(1);
  const span = here.spans.follow(accepted())!;
  span.settled();
  here.clock.advance(900);
  span.note("delivered");
  here.clock.advance(100);
  assert.equal(here.finished.length, 0, "a step came since");
  assert.equal(here.sweep()[0]!.events.length, 1);

  here.spans.follow(accepted())!.note("kept");
  here.clock.advance(299_000);
  assert.equal(here.finished.length, 0);
  here.clock.advance(2_000);
  assert.equal(here.finished[0]!.attributes["causeway.is_open"], true);
});

Deno.test("StanzaSpans bounds its spans, their steps, and ends all at a stop", () => {
  using here = new Node(1);
  const first = here.spans.follow(accepted(1))!;
  for (let step = 0; step < 70; step++) first.note("held");
  for (let sequence = 2; sequence <= 4_097; sequence++) here.spans.follow(accepted(sequence));
  assert.equal(here.finished.length, 256, "the oldest end as they are");
  assert.deepEqual([here.finished[0]!.events.length, here.finished[0]!.droppedEvents], [64, 6]);
  here.spans.close();
  assert.equal(here.finished.length, 4_097);
});

Deno.test("Tracers asks both tracers, and is on while one of them is", () => {
  const notes: string[] = [];
  const tracer = (name: string, isOn: boolean, context?: StanzaTrace["context"]) => ({
    isOn,
    follow: (): StanzaTrace => ({
      ...context && { context, carried: new Uint8Array(1) },
      note: (step) => void notes.push(`${name} ${step}`),
      settled: () => void notes.push(`${name} settled`),
    }),
  });
  const context = { traceId: "ab".repeat(16), spanId: "cd".repeat(8) };
  const [first, second] = [tracer("first", false), tracer("second", false, context)];
  const both = new Tracers(first, second);
  assert.equal(both.isOn, false);
  assert.equal(both.follow(accepted()), undefined);
  second.isOn = true;
  both.update();
  assert.equal(both.isOn, true);
  assert.equal(both.follow(accepted())!.context, context);
  first.isOn = true;
  const trace = both.follow(accepted())!;
  assert.deepEqual([trace.context, trace.carried?.length], [context, 1]);
  trace.note("accepted");
  trace.settled();
  assert.deepEqual(notes, ["first accepted", "second accepted", "first settled", "second settled"]);
});
