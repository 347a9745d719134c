import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { LinkTraffic, OpenLink } from "../mod.ts";
import { FrameError, frameName, surveyedFrame, surveyFrame } from "../wire/mod.ts";
import type { OwnFlow } from "./surveys.ts";
import { Surveys } from "./surveys.ts";

interface TestNode {
  /** Frames that the node has dropped. */
  readonly dropped: (frame: string) => Promise<number>;
  readonly surveys: Surveys;
  readonly traffic: LinkTraffic;
  readonly host: string;
  readonly nodeName: string;
  readonly process: number;
  readonly flows: OwnFlow[];
  isRedisAway: boolean;
}

let processes = 0;

const WELL = { isRedisAway: false, isStopping: false };

function flowTo(host: string, changed: Partial<OwnFlow> = {}): OwnFlow {
  const idle = { isPaused: false, roundTripMs: undefined, sent: 0, received: 0 };
  return { host, links: 2, openLinks: 2, ...idle, ...changed };
}

function nodeAt(dc: string, clock: ManualClock, ...flows: OwnFlow[]): TestNode {
  const host = `${dc}.example.com`;
  const process = ++processes;
  const nodeName = `node${process}@${host}`;
  const metrics = new MetricsRegistry(clock);
  const state = { isRedisAway: false };
  const surveys = new Surveys({
    localHost: host,
    nodeName,
    flows: () => flows,
    isRedisAway: () => state.isRedisAway,
    metrics,
    clock,
  });
  const dropped = async (frame: string) => {
    const name = `causeway_survey_frames_dropped_total{frame="${frame}"} `;
    const line = (await metrics.prometheus()).split("\n").find((each) => each.startsWith(name));
    return Number(line?.slice(name.length));
  };
  const traffic = surveys.traffic();
  return Object.assign(state, { surveys, traffic, host, nodeName, process, flows, dropped });
}

/** Links `a` to `b`. Frames to `b` arrive at once, unless `b` is deaf. */
function link(a: TestNode, b: TestNode, { isDeaf = false } = {}) {
  const sent: string[] = [];
  const refuse = (detail: string) => assert.fail(detail);
  const take = (to: TestNode, from: OpenLink, frame: Uint8Array) => {
    sent.push(`${frameName(frame[4]!)} to ${to.host}`);
    if (to !== b || !isDeaf) to.traffic.frame(from, frame[4]!, frame, 0, frame.length);
  };
  const atA: OpenLink = { ...b, refuse, send: (frame) => take(b, atB, frame) };
  const atB: OpenLink = { ...a, refuse, send: (frame) => take(a, atA, frame) };
  b.traffic.accepted(atB);
  a.traffic.dialled(atA);
  return {
    sent,
    toA: (frame: Uint8Array) => a.traffic.frame(atA, frame[4]!, frame, 0, frame.length),
    toB: (frame: Uint8Array) => b.traffic.frame(atB, frame[4]!, frame, 0, frame.length),
    unlink: () => a.traffic.ended(atA, false),
  };
}

Deno.test("Surveys tells of the links of every linked node, and of rates from the second time on", async () => {
  const clock = new ManualClock();
  const [toDc3, toDc1] = [
    flowTo("dc3.example.com", { openLinks: 1, roundTripMs: 12.5, sent: 100, received: 10 }),
    flowTo("dc1.example.com", { isPaused: true, openLinks: 0 }),
  ];
  const asker = nodeAt("dc1", clock, flowTo("dc2.example.com"));
  const other = nodeAt("dc2", clock, toDc3, toDc1);
  link(asker, other);
  await asker.surveys.look();
  const noRates = { sentPerSec: undefined, receivedPerSec: undefined };
  const counted = ({ host, links, openLinks, isPaused, roundTripMs }: OwnFlow) => ({
    ...{ host, links, openLinks, isPaused, roundTripMs },
  });
  assert.deepEqual(asker.surveys.reports(), [
    {
      host: "dc1.example.com",
      node: asker.nodeName,
      ageMs: 0,
      links: [{ ...counted(flowTo("dc2.example.com")), ...noRates }],
      ...WELL,
    },
    {
      host: "dc2.example.com",
      node: other.nodeName,
      ageMs: 0,
      links: [{ ...counted(toDc3), ...noRates }, { ...counted(toDc1), ...noRates }],
      ...WELL,
    },
  ]);
  clock.advance(4_000);
  other.flows[0] = { ...toDc3, sent: 500, received: 30 };
  await asker.surveys.look();
  const [{ sentPerSec, receivedPerSec }] = asker.surveys.reports()[1]!.links as [
    OwnFlow & {
      readonly sentPerSec: number;
      readonly receivedPerSec: number;
    },
  ];
  assert.deepEqual([sentPerSec, receivedPerSec], [100, 5]);
});

Deno.test("Surveys shares one survey in two seconds, and asks nothing on its own", async () => {
  const clock = new ManualClock();
  const asker = nodeAt("dc1", clock);
  const { sent } = link(asker, nodeAt("dc2", clock));
  clock.advance(60_000);
  assert.deepEqual(sent, []);
  const once = ["survey to dc2.example.com", "surveyed to dc1.example.com"];
  await Promise.all([asker.surveys.look(), asker.surveys.look()]);
  clock.advance(1_999);
  await asker.surveys.look();
  assert.deepEqual(sent, once);
  clock.advance(1);
  await asker.surveys.look();
  assert.deepEqual(sent, [...once, ...once]);
});

Deno.test("Surveys knows nothing of a node that does not answer, such as one of an older minor version", async () => {
  const clock = new ManualClock();
  const asker = nodeAt("dc1", clock);
  const old = nodeAt("dc2", clock, flowTo("dc3.example.com"));
  const { sent } = link(asker, old, { isDeaf: true });
  const looked = asker.surveys.look();
  clock.advance(1_000);
  await looked;
  assert.deepEqual(sent, ["survey to dc2.example.com"]);
  assert.deepEqual(asker.surveys.reports()[1], {
    ...{ host: "dc2.example.com", node: old.nodeName, ageMs: undefined, links: [], ...WELL },
  });
});

Deno.test("Surveys forgets an answer after 15 seconds, and with the last link", async () => {
  const clock = new ManualClock();
  const asker = nodeAt("dc1", clock);
  const { unlink } = link(asker, nodeAt("dc2", clock, flowTo("dc3.example.com")));
  await asker.surveys.look();
  clock.advance(15_000);
  assert.equal(asker.surveys.reports()[1]!.ageMs, 15_000);
  clock.advance(1);
  assert.deepEqual(asker.surveys.reports().map(({ ageMs, links }) => [ageMs, links]), [
    [undefined, []],
    [undefined, []],
  ]);
  unlink();
  assert.equal(asker.surveys.reports().length, 1);
});

Deno.test("Surveys takes one answer to each question, and none that nobody asked for", async () => {
  const clock = new ManualClock();
  const asker = nodeAt("dc1", clock);
  const { toA } = link(asker, nodeAt("dc2", clock), { isDeaf: true });
  const tell = (survey: number, links: number) => {
    const { roundTripMs: _, ...flow } = flowTo("dc3.example.com", { links });
    toA(surveyedFrame({ survey, atMs: 1, hosts: [{ ...flow, roundTripUs: 0 }] }));
  };
  const told = () => asker.surveys.reports()[1]!.links.map(({ links }) => links);
  tell(1, 9);
  assert.deepEqual(told(), []);
  const looked = asker.surveys.look();
  tell(2, 8);
  assert.deepEqual(told(), []);
  tell(1, 3);
  await looked;
  tell(1, 7);
  assert.deepEqual(told(), [3]);
});

Deno.test("Surveys drops answers that nobody waits for unread, and counts them", async () => {
  const clock = new ManualClock();
  const asker = nodeAt("dc1", clock);
  const { toA } = link(asker, nodeAt("dc2", clock), { isDeaf: true });
  // Whoever reads this frame finds fewer hosts than it says, and ends the link.
  const broken = (survey: number) => {
    const frame = surveyedFrame({ survey, atMs: 1, hosts: [] });
    new DataView(frame.buffer).setUint16(frame.length - 2, 9);
    return frame;
  };
  for (let times = 0; times < 1_000; times++) toA(broken(1));
  assert.equal(await asker.dropped("surveyed"), 1_000);
  const looked = asker.surveys.look();
  toA(broken(2));
  assert.equal(await asker.dropped("surveyed"), 1_001);
  assert.throws(() => toA(broken(1)), FrameError);
  toA(broken(1));
  assert.equal(await asker.dropped("surveyed"), 1_002, "one answer is read, whatever it holds");
  clock.advance(1_000);
  await looked;
});

Deno.test("Surveys answers four surveys of a process at once, then one in a second", async () => {
  const clock = new ManualClock();
  const other = nodeAt("dc2", clock);
  const { sent, toB } = link(nodeAt("dc1", clock), other);
  for (let survey = 1; survey <= 6; survey++) toB(surveyFrame(survey));
  assert.equal(sent.length, 4);
  clock.advance(1_000);
  toB(surveyFrame(7));
  toB(surveyFrame(8));
  assert.equal(sent.length, 5);
  assert.equal(await other.dropped("survey"), 3);
});

Deno.test("Surveys tells of a node whose Redis is away, and of one that stops", async () => {
  const clock = new ManualClock();
  const [asker, other] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  link(asker, other);
  const told = async () => {
    await asker.surveys.look();
    clock.advance(2_000);
    return asker.surveys.reports().map(({ isRedisAway, isStopping }) => [isRedisAway, isStopping]);
  };
  assert.deepEqual(await told(), [[false, false], [false, false]]);
  other.isRedisAway = true;
  assert.deepEqual(await told(), [[false, false], [true, false]]);
  other.isRedisAway = false;
  other.surveys.stopping();
  assert.deepEqual(await told(), [[false, false], [false, true]]);
});

Deno.test("Surveys.look() asks nobody once the surveys are closed, and leaves no timer", async () => {
  const clock = new ManualClock();
  const [asker, other] = [nodeAt("dc1", clock), nodeAt("dc2", clock)];
  const { sent } = link(asker, other, { isDeaf: true });
  const underWay = asker.surveys.look();
  asker.surveys.close();
  await underWay;
  clock.advance(2_000);
  sent.length = 0;
  const { pendingTimers } = clock;
  await asker.surveys.look();
  assert.deepEqual(sent, []);
  assert.equal(clock.pendingTimers, pendingTimers);
});
