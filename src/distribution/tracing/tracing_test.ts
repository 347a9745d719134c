import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { LinkTraffic, OpenLink } from "../mod.ts";
import { frameName } from "../wire/mod.ts";
import type { NodeTracing, Trace } from "./tracing.ts";
import { Tracing } from "./tracing.ts";
import type { TracingOptions } from "./tracing_options.ts";
import type { Step } from "./watch.ts";

interface TestNode {
  readonly tracing: Tracing;
  readonly traffic: LinkTraffic;
  readonly log: MemoryLogger;
  readonly host: string;
  readonly nodeName: string;
  readonly process: number;
}

let processes = 0;

function nodeAt(dc: string, clock: ManualClock, options: TracingOptions = {}): TestNode {
  const host = `${dc}.example.com`;
  const nodeName = `node${++processes}@${host}`;
  const log = new MemoryLogger();
  const metrics = new MetricsRegistry(clock);
  const deps = { nodeName, localHost: host, globalHost: "example.com", metrics, log, clock };
  const tracing = new Tracing(options, deps);
  return { tracing, traffic: tracing.traffic(), log, host, nodeName, process: processes };
}

/** Links two nodes. Frames arrive at once. Returns the frames of each, and a function that unlinks. */
function link(a: TestNode, b: TestNode) {
  const sent: string[] = [];
  const refuse = (detail: string) => assert.fail(detail);
  const fromB: OpenLink = { ...b, send: (frame) => pass(frame, b, () => toA(frame)), refuse };
  const fromA: OpenLink = { ...a, send: (frame) => pass(frame, a, () => toB(frame)), refuse };
  // `fromB` is how `a` sees `b`: what `a` sends there arrives at `b`.
  const atA: OpenLink = { ...fromB, send: fromA.send };
  const atB: OpenLink = { ...fromA, send: fromB.send };
  const toB = (frame: Uint8Array) => b.traffic.frame(atB, frame[4]!, frame, 0, frame.length);
  const toA = (frame: Uint8Array) => a.traffic.frame(atA, frame[4]!, frame, 0, frame.length);
  const pass = (frame: Uint8Array, from: TestNode, deliver: () => void) => {
    sent.push(`${from.nodeName} ${frameName(frame[4]!)}`);
    deliver();
  };
  b.traffic.accepted(atB); // the acceptor is ready when the dialler hears of it
  a.traffic.dialled(atA);
  return {
    sent,
    atB,
    unlink: () => {
      a.traffic.ended(atA, false);
      b.traffic.ended(atB, false);
    },
  };
}

function stanza(from: string, to: string, sequence = 1): Envelope {
  return new Envelope({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid(from),
      to: parseJid(to),
      bytes: new TextEncoder().encode("<message/>"),
    },
    process: 5,
    sequence,
    origin: "dc1.example.com",
    sentAtUs: 1,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  });
}

interface Seen {
  readonly steps: [node: string, step: Step][];
  readonly nodes: [node: string, state: NodeTracing, missed: number][];
  readonly ended: number[];
}

function open(
  { tracing }: TestNode,
  jid: string,
  forMs = 600_000,
): Seen & { readonly trace: Trace | undefined } {
  const seen: Seen = { steps: [], nodes: [], ended: [] };
  const trace = tracing.open({ jid: parseJid(jid), forMs, who: "ops" }, {
    step: ({ node }, step) => seen.steps.push([node, step]),
    node: ({ node }, state, missed) => seen.nodes.push([node, state, missed]),
    ended: (missed) => seen.ended.push(missed),
  });
  return { ...seen, trace };
}

Deno.test("Tracing tells of stanzas from and to the address, here and at linked nodes, and of no others", () => {
  const clock = new ManualClock();
  const [here, there] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  link(here, there);
  const { steps, nodes, trace } = open(here, "alice@example.com");
  assert.deepEqual(nodes, [[there.nodeName, "asked", 0], [there.nodeName, "watching", 0]]);
  assert.equal(here.tracing.isOn && there.tracing.isOn, true);

  assert.equal(here.tracing.follow(stanza("carol@example.com/a", "bob@example.com")), undefined);
  here.tracing.follow(stanza("alice@example.com/a", "bob@example.com"))!.note("accepted");
  there.tracing.follow(stanza("bob@example.com/a", "alice@example.com"))!
    .note("queued", { place: "dc1.example.com", lane: 3, number: 7 });
  assert.deepEqual(steps.map(([node, { step, from, lane }]) => [node, step, from, lane]), [
    [here.nodeName, "accepted", "alice@example.com/a", undefined],
    [there.nodeName, "queued", "bob@example.com/a", 3],
  ]);

  trace!.stop();
  assert.equal(here.tracing.isOn || there.tracing.isOn, false);
  assert.equal(there.log.named("trace.asked")[0]?.fields["who"], "ops");
});

Deno.test("Tracing of a full JID leaves out other resources", () => {
  const clock = new ManualClock();
  const node = nodeAt("dc1", clock);
  open(node, "alice@example.com/phone");
  const to = (jid: string) => node.tracing.follow(stanza("bob@example.com/x", jid)) !== undefined;
  assert.deepEqual(
    ["alice@example.com/phone", "alice@example.com/laptop", "alice@example.com"].map(to),
    [true, false, false],
  );
});

Deno.test("Tracing ends by itself, here and there, and follows stanzas under way no more", () => {
  const clock = new ManualClock();
  const [here, there] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  link(here, there);
  const { steps, ended } = open(here, "alice@example.com", 5_000);
  const trace = there.tracing.follow(stanza("alice@example.com/a", "bob@example.com"))!;
  clock.advance(4_999);
  trace.note("arrived", { place: "dc1.example.com" });
  assert.equal(steps.length, 1);
  clock.advance(1);
  trace.note("delivered");
  assert.deepEqual(ended, [0]);
  assert.equal(steps.length, 1);
  assert.equal(here.tracing.isOn || there.tracing.isOn, false);
});

Deno.test("a node ends a trace whose asker is gone, and one that is linked later is asked too", () => {
  const clock = new ManualClock();
  const [here, there] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  const first = link(here, there);
  const { nodes } = open(here, "alice@example.com");
  first.unlink();
  assert.equal(there.tracing.isOn, false);
  clock.advance(60_000);
  link(here, there);
  assert.equal(there.tracing.isOn, true);
  assert.deepEqual(nodes.map(([, state]) => state), [
    "asked",
    "watching",
    "ended",
    "asked",
    "watching",
  ]);
  clock.advance(540_000); // the ten minutes of the trace
  assert.equal(there.tracing.isOn, false);
});

Deno.test("another datacenter follows no address of this one alone, and none where that is forbidden", () => {
  const clock = new ManualClock();
  const open2 = nodeAt("dc2", clock);
  const shut = nodeAt("dc3", clock, { forOthers: false });
  const neighbour = nodeAt("dc1", clock, { forOthers: false });
  const here = nodeAt("dc1", clock);
  for (const node of [open2, shut, neighbour]) link(here, node);
  const answers = (jid: string) => {
    const { nodes, trace } = open(here, jid);
    trace!.stop();
    return [open2, shut, neighbour].map(({ nodeName }) =>
      nodes.findLast(([node, state]) => node === nodeName && state !== "ended")?.[1]
    );
  };
  const shared = ["watching", "forbidden", "watching"];
  assert.deepEqual(answers("alice@example.com"), shared);
  assert.deepEqual(answers("echo.example.com"), shared);
  assert.deepEqual(answers("carol@dc1.example.com"), shared);
  assert.deepEqual(answers("dave@dc2.example.com"), ["forbidden", "forbidden", "watching"]);
  assert.deepEqual(answers("dc2.example.com"), ["forbidden", "forbidden", "watching"]);
  assert.equal(shut.log.named("trace.forbidden").length, 5);
});

Deno.test("Tracing begins no more traces than it may, for operators here and for each datacenter", () => {
  const clock = new ManualClock();
  const [here, there] = [nodeAt("dc1", clock), nodeAt("dc2", clock, { maxForDatacenter: 2 })];
  link(here, there);
  const traces = ["a", "b", "c", "d"].map((name) => open(here, `${name}@example.com`));
  assert.deepEqual(traces.map(({ nodes }) => nodes.at(-1)![1]), [
    "watching",
    "watching",
    "busy",
    "busy",
  ]);
  assert.equal(open(here, "e@example.com").trace, undefined);
  traces[0]!.trace!.stop();
  assert.notEqual(open(here, "e@example.com").trace, undefined);
});

Deno.test("Tracing tells of no more steps in a second than it may, and counts the others", async () => {
  const clock = new ManualClock();
  const [here, there] = [nodeAt("dc1", clock), nodeAt("dc2", clock, { maxStepsPerSec: 3 })];
  link(here, there);
  const { steps, nodes } = open(here, "alice@example.com", 10_000);
  const follow = (sequence: number) =>
    there.tracing.follow(stanza("alice@example.com/a", "bob@example.com", sequence))!;
  for (let i = 1; i <= 5; i++) follow(i).note("arrived", { place: "dc1.example.com" });
  assert.equal(steps.length, 3);
  clock.advance(1_000);
  const last = follow(6);
  last.settled();
  last.note("delivered");
  await Promise.resolve();
  assert.deepEqual(steps.slice(3).map(([, { step }]) => step), ["delivered", "settled"]);
  assert.deepEqual(nodes.map(([, , missed]) => missed), [0, 0, 2]);
});

Deno.test("a stanza that goes to and fro is told of 64 times at most", () => {
  const node = nodeAt("dc1", new ManualClock());
  const { steps } = open(node, "alice@example.com");
  const trace = node.tracing.follow(stanza("alice@example.com/a", "bob@example.com"))!;
  for (let i = 0; i < 100; i++) trace.note("held", { retry: 1 });
  assert.equal(steps.length, 64);
});

Deno.test("Tracing ignores steps and answers of nodes that it has not asked", () => {
  const clock = new ManualClock();
  const [here, there] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  link(here, there);
  open(here, "alice@example.com").trace!.stop();
  const late = open(here, "bob@example.com");
  // A trace that `there` asks for is its own: its number is not one of `here`.
  const asked = open(there, "carol@example.com");
  here.tracing.follow(stanza("carol@example.com/a", "x@example.com"))!.note("accepted");
  assert.equal(late.steps.length, 0);
  assert.equal(asked.steps.length, 1);
});
