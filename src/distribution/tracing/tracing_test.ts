import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { LinkTraffic, OpenLink } from "../mod.ts";
import { frameName, traceFrame, tracingFrame } from "../wire/mod.ts";
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
  /** Returns how many frames of one type it has dropped. */
  dropped(frame: string): Promise<number>;
}

let processes = 0;

/** Makes a node. `nodeName` is that of an earlier process; `furtherHosts` are served there alone. */
function nodeAt(
  dc: string,
  clock: ManualClock,
  options: TracingOptions = {},
  { nodeName, furtherHosts = [] }: {
    readonly nodeName?: string;
    readonly furtherHosts?: readonly string[];
  } = {},
): TestNode {
  const host = `${dc}.example.com`;
  const process = ++processes;
  const log = new MemoryLogger();
  const metrics = new MetricsRegistry(clock);
  const deps = {
    nodeName: nodeName ?? `node${process}@${host}`,
    localHost: host,
    globalHost: "example.com",
    hosts: new Set(["example.com", host, ...furtherHosts]),
    isOtherLocalHost: (domain: string) => domain !== host && /^dc\d\.example\.com$/.test(domain),
    metrics,
    log,
    clock,
  };
  const tracing = new Tracing(options, deps);
  const dropped = async (frame: string) => {
    const name = `causeway_trace_frames_dropped_total{frame="${frame}"} `;
    const line = (await metrics.prometheus()).split("\n").find((each) => each.startsWith(name));
    return Number(line?.slice(name.length));
  };
  return { ...deps, tracing, traffic: tracing.traffic(), host, process, dropped };
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
    /** Sends a frame of `a` to `b`, and one of `b` to `a`. */
    toA,
    toB,
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

Deno.test("Tracing begins no trace after close(), for operators here or for other nodes", () => {
  const clock = new ManualClock();
  const [one, two] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  link(one, two);
  const { pendingTimers } = clock; // those of the metrics
  two.tracing.close();
  const { nodes } = open(one, "alice@example.com");
  assert.deepEqual(nodes.map(([, state]) => state), ["asked", "ended"]);
  assert.equal(two.tracing.isOn, false);
  one.tracing.close();
  assert.equal(open(one, "bob@example.com").trace, undefined);
  assert.equal(clock.pendingTimers, pendingTimers);
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

Deno.test("another datacenter follows no address of a further host, nor of any local host but its own", () => {
  const clock = new ManualClock();
  const furtherHosts = ["staff.example.com", "example.org"];
  const asked = nodeAt("dc2", clock, {}, { furtherHosts });
  const [elsewhere, neighbour] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  for (const node of [elsewhere, neighbour]) link(node, asked);
  const answers = (jid: string) =>
    [elsewhere, neighbour].map((node) => {
      clock.advance(1_000);
      const { nodes, trace } = open(node, jid);
      trace!.stop();
      return nodes.at(-1)![1];
    });
  for (
    const jid of [
      "alice@staff.example.com",
      "staff.example.com",
      "echo.staff.example.com",
      "alice@example.org",
      "echo.example.org",
      "dave@dc2.example.com/phone",
      "echo.dc2.example.com",
      "erin@dc3.example.com",
      "echo.dc3.example.com",
      "example",
    ]
  ) assert.deepEqual(answers(jid), ["forbidden", "watching"], jid);
  for (
    const jid of [
      "alice@example.com",
      "echo.example.com",
      "carol@dc1.example.com",
      "a.dc1.example.com",
    ]
  ) assert.deepEqual(answers(jid), ["watching", "watching"], jid);
});

Deno.test("Tracing follows on at a node that is restarted while its old link lasts", () => {
  const clock = new ManualClock();
  const [here, before] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  const old = link(here, before);
  const { steps, nodes } = open(here, "alice@example.com");
  const after = nodeAt("dc2", clock, {}, { nodeName: before.nodeName });
  link(here, after);
  old.unlink(); // it has timed out
  assert.deepEqual(nodes.map(([, state]) => state), ["asked", "watching", "asked", "watching"]);
  after.tracing.follow(stanza("alice@example.com/a", "bob@example.com"))!
    .note("arrived", { place: "dc1.example.com" });
  assert.deepEqual(steps.map(([node, { step }]) => [node, step]), [[after.nodeName, "arrived"]]);
});

Deno.test("a trace that is asked for again goes on, within its rate and its time", () => {
  const clock = new ManualClock();
  const here = nodeAt("dc1", clock);
  const there = nodeAt("dc2", clock, { maxStepsPerSec: 3, maxForMs: 10_000 });
  const { toB } = link(here, there);
  const { steps, nodes } = open(here, "alice@example.com");
  const again = (address: string, forMs: number) =>
    toB(traceFrame({ trace: 1, forMs, address, who: "ops" }));
  const follow = (from = "alice@example.com/a") =>
    there.tracing.follow(stanza(from, "x@example.com"));
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 2; j++) follow()!.note("arrived", {});
    again("bob@example.com", 5_000);
  }
  assert.equal(steps.length, 3);
  assert.deepEqual(nodes.map(([, , missed]) => missed), [0, 0, 0, 1, 3]);
  assert.equal(follow("bob@example.com/a"), undefined, "it follows the same address");
  assert.equal(there.log.named("trace.asked").length, 1);
  for (let i = 0; i < 4; i++) {
    assert.equal(there.tracing.isOn, true, `after ${i} times 2.5 s`);
    again("alice@example.com", 5_000);
    clock.advance(2_500);
  }
  assert.equal(there.tracing.isOn, false, "10 s after it was asked for first");
});

Deno.test("a node answers few requests of one process in a second, and counts the others", async () => {
  const clock = new ManualClock();
  const [flood, here, there] = [nodeAt("dc1", clock), nodeAt("dc1", clock), nodeAt("dc2", clock)];
  const flooding = link(flood, there);
  const ask = (trace: number, address: string, forMs = 60_000) =>
    flooding.toB(traceFrame({ trace, forMs, address, who: "ops" }));
  const answers = () => flooding.sent.filter((each) => each.startsWith(there.nodeName)).length;
  ask(1, "alice@example.com");
  for (let i = 0; i < 100; i++) ask(2 + i, "dave@dc2.example.com");
  assert.equal(answers(), 8);
  assert.equal(there.log.named("trace.forbidden").length, 7);
  assert.equal(await there.dropped("trace"), 93);
  link(here, there);
  const other = open(here, "bob@example.com");
  assert.equal(other.nodes.at(-1)![1], "watching", "the limit is one for each process");
  other.trace!.stop();
  ask(1, "alice@example.com", 0);
  assert.equal(there.tracing.isOn, false, "an end is always heard");
  clock.advance(1_000);
  for (let i = 0; i < 100; i++) ask(200 + i, "alice@example.com");
  assert.equal(there.log.named("trace.asked").length, 2 + 4);
});

Deno.test("traces of its own datacenter leave a node those for others", () => {
  const clock = new ManualClock();
  const there = nodeAt("dc2", clock, { maxForOthers: 2 });
  const [neighbour, dc1, dc3] = ["dc2", "dc1", "dc3"].map((dc) => nodeAt(dc, clock));
  for (const node of [neighbour!, dc1!, dc3!]) link(node, there);
  const answer = (node: TestNode) => open(node, "alice@example.com").nodes.at(-1)![1];
  assert.deepEqual([neighbour!, neighbour!, dc1!, dc3!, dc1!, neighbour!].map(answer), [
    "watching",
    "watching",
    "watching",
    "watching",
    "busy",
    "watching",
  ]);
});

Deno.test("Tracing takes so many answers and steps of one process in a second, and counts the others", async () => {
  const clock = new ManualClock();
  const here = nodeAt("dc1", clock, { maxTraces: 1, maxStepsPerSec: 5 });
  const [flood, there] = [nodeAt("dc2", clock), nodeAt("dc3", clock)];
  const { toA } = link(here, flood);
  link(here, there);
  const { nodes, steps } = open(here, "alice@example.com");
  for (let missed = 1; missed <= 100; missed++) {
    toA(tracingFrame({ trace: 1, state: "watching", missed }));
  }
  flood.tracing.follow(stanza("alice@example.com/a", "bob@example.com"))!.note("arrived", {});
  const ofFlood = nodes.filter(([node, state]) => node === flood.nodeName && state === "watching");
  assert.equal(ofFlood.length, 10);
  assert.equal(steps.length, 0);
  assert.deepEqual([await here.dropped("tracing"), await here.dropped("traced")], [91, 1]);
  there.tracing.follow(stanza("alice@example.com/a", "bob@example.com"))!.note("arrived", {});
  assert.deepEqual(steps.map(([node]) => node), [there.nodeName]);
});
