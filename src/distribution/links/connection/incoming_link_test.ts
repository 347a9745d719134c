import assert from "node:assert/strict";
import { ManualClock, SeededRandom } from "../../../base/mod.ts";
import { memoryConnectionPair } from "../../../net/mod.ts";
import { PacedLog, SILENT_LOGGER } from "../../../observe/mod.ts";
import { carbonEnvelope } from "../../mod.ts";
import type { Envelope } from "../../mod.ts";
import type { Ack, Goodbye } from "../../wire/mod.ts";
import {
  decodeAck,
  decodeGoodbye,
  FRAME_TYPE,
  FrameDecoder,
  patchCarbon,
  pingFrame,
  pongFrame,
  retireFrame,
  stanzaFrame,
} from "../../wire/mod.ts";
import { testEnvelope, TestMetrics } from "../testing/kit.ts";
import { testHello } from "../testing/peers.ts";
import { CallPace } from "./call_pace.ts";
import { IncomingLink } from "./incoming_link.ts";
import { InboundLanes } from "../lanes/inbound_lanes.ts";
import { LinkMetrics } from "../link_metrics.ts";
import type { LinkDeps } from "./link_deps.ts";
import type { LinksOptions } from "../links_options.ts";
import { resolveLinksOptions } from "../links_options.ts";
import { MeshHosts } from "./mesh_hosts.ts";

const DC2 = "dc2.example.com";

/** One accepted link in memory, with a manual clock, and the peer's side of it. */
class Scene {
  readonly clock = new ManualClock();
  readonly metrics = new TestMetrics();
  readonly received: Envelope[] = [];
  readonly acks: Ack[] = [];
  readonly types: number[] = [];
  goodbye: Goodbye | undefined;
  isEnded = false;
  readonly link: IncomingLink;
  readonly send: (...frames: readonly Uint8Array[]) => Promise<void>;

  constructor(options: LinksOptions = {}) {
    const resolved = resolveLinksOptions(options);
    const shared: LinkDeps = {
      scope: "mesh",
      traffic: undefined,
      identity: {
        globalHost: "example.com",
        localHost: "dc1.example.com",
        hosts: new Set(["example.com", "dc1.example.com"]),
        nodeName: "node1@dc1.example.com",
        process: 11,
        datacenterId: () => "d1",
      },
      options: resolved,
      tls: undefined,
      events: {
        received: (envelope) => this.received.push(envelope),
        returned() {},
        pressure() {},
      },
      endpoints: { endpoints: () => Promise.resolve([]) },
      calls: new CallPace(this.clock),
      inbound: new InboundLanes(resolved),
      mesh: new MeshHosts({
        globalHost: "example.com",
        localHost: "dc1.example.com",
        hosts: [],
        isComponentDomain: () => false,
        isOwnProcess: () => false,
      }),
      unproven: undefined,
      metrics: new LinkMetrics(this.metrics),
      clock: this.clock,
      random: new SeededRandom(1),
      log: SILENT_LOGGER,
      lives: new PacedLog(SILENT_LOGGER, this.clock),
      nextLane: () => 1,
      carbonOf: (message) => carbonEnvelope(message, message.stanza),
    };
    const [near, far] = memoryConnectionPair();
    this.link = new IncomingLink(near, shared, {
      mayOpen: () => true,
      authenticated() {},
      ended: () => this.isEnded = true,
    });
    const decoder = new FrameDecoder({ maxFrameBytes: 1 << 20 }, {
      frame: (type, buffer, start, end) => {
        this.types.push(type);
        if (type === FRAME_TYPE.ack) this.acks.push(decodeAck(buffer, start, end));
        if (type === FRAME_TYPE.goodbye) this.goodbye = decodeGoodbye(buffer, start, end);
      },
    });
    far.start({ data: (chunk) => decoder.push(chunk), closed() {} });
    this.send = async (...frames) => {
      far.send(Uint8Array.from(frames.flatMap((frame) => [...frame])));
      await this.settleDown();
    };
  }

  /** Lets all pending microtasks run. */
  async settleDown(): Promise<void> {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }
}

function stanzas(from: number, to: number, padding = 0): Uint8Array[] {
  return Array.from(
    { length: to - from + 1 },
    (_, i) => stanzaFrame(testEnvelope(from + i, { origin: DC2, padding }), from + i),
  );
}

Deno.test("IncomingLink answers HELLO and grants credit, then takes stanzas", async () => {
  const scene = new Scene({ creditBytes: 100_000 });
  await scene.send(testHello());
  assert.deepEqual(scene.types, [FRAME_TYPE.hello, FRAME_TYPE.ack]);
  assert.deepEqual(scene.acks, [{ received: 0, settled: 0, creditBytes: 100_000, ranges: [] }]);
  await scene.send(...stanzas(1, 3));
  assert.deepEqual(scene.received.map((envelope) => envelope.sequence), [1, 2, 3]);
});

Deno.test("IncomingLink gathers acknowledgements for ackDelayMs", async () => {
  const scene = new Scene({ ackDelayMs: 5 });
  await scene.send(testHello());
  await scene.send(...stanzas(1, 9));
  for (const index of [0, 1, 3, 4, 7]) scene.received[index]!.settle();
  scene.clock.advance(4);
  await scene.settleDown();
  assert.equal(scene.acks.length, 1);
  scene.clock.advance(1);
  await scene.settleDown();
  assert.equal(scene.acks.length, 2);
  const { received, settled, ranges } = scene.acks[1]!;
  assert.deepEqual({ received, settled, ranges }, {
    received: 9,
    settled: 2,
    ranges: [{ first: 4, count: 2 }, { first: 8, count: 1 }],
  });
  scene.clock.advance(1000);
  await scene.settleDown();
  assert.equal(scene.acks.length, 2, "no news, no ACK");
});

Deno.test("IncomingLink grants more as soon as half of the credit is used", async () => {
  const scene = new Scene({ creditBytes: 16_384, ackDelayMs: 1000 });
  await scene.send(testHello());
  const frames = stanzas(1, 8, 1000);
  const bytes = frames.reduce((sum, frame) => sum + frame.length, 0);
  assert.ok(bytes > 8192 && bytes < 16_384);
  await scene.send(...frames);
  assert.deepEqual(scene.acks.map((ack) => ack.creditBytes), [16_384, bytes + 16_384]);
});

Deno.test("IncomingLink takes a frame that begins within the credit, and none after it", async () => {
  const frames = stanzas(1, 40, 1000);
  const size = frames[0]!.length;
  const last = Math.ceil(16_384 / size); // begins below the credit and goes over
  const within = new Scene({ creditBytes: 16_384, ackDelayMs: 1000 });
  await within.send(testHello());
  await within.send(...frames.slice(0, last));
  assert.equal(within.goodbye, undefined);
  assert.equal(within.received.length, last);
  const past = new Scene({ creditBytes: 16_384, ackDelayMs: 1000 });
  await past.send(testHello());
  await past.send(...frames.slice(0, last + 1));
  assert.equal(past.goodbye?.reason, "overload");
  assert.equal(past.received.length, last);
});

Deno.test("IncomingLink.freeze() grants no more credit, but goes on acknowledging", async () => {
  const scene = new Scene({ creditBytes: 16_384 });
  await scene.send(testHello());
  scene.link.freeze();
  await scene.send(...stanzas(1, 8, 1000));
  for (const envelope of scene.received) envelope.settle();
  scene.clock.advance(5);
  await scene.settleDown();
  assert.equal(scene.acks.at(-1)!.settled, 8);
  assert.equal(scene.acks.at(-1)!.creditBytes, 16_384);
});

Deno.test("IncomingLink counts on from HELLO's last number", async () => {
  const scene = new Scene();
  await scene.send(testHello({ lastNumber: 41 }), ...stanzas(42, 42));
  assert.equal(scene.received.length, 1);
  assert.equal(scene.acks[0]!.settled, 41);
});

Deno.test("IncomingLink.leave() acknowledges all settled stanzas before GOODBYE", async () => {
  const scene = new Scene();
  await scene.send(testHello(), ...stanzas(1, 2));
  for (const envelope of scene.received) envelope.settle();
  scene.link.leave("leaving", "test");
  await scene.settleDown();
  assert.equal(scene.acks.at(-1)!.settled, 2);
  assert.equal(scene.types.at(-1), FRAME_TYPE.goodbye);
});

Deno.test("IncomingLink takes the carbon of a message that brings one, unless it refuses the message", async () => {
  const scene = new Scene();
  const frames = ["alice@example.com/phone", "eve@dc9.example.org/x", "alice@example.com/phone"]
    .map((from, i) => {
      const envelope = testEnvelope(i + 1, { from, origin: DC2 });
      const frame = stanzaFrame(envelope, i + 1);
      assert.ok(i === 2 || patchCarbon(frame, 0, envelope));
      return frame;
    });
  await scene.send(testHello(), ...frames, frames[0]!);
  assert.deepEqual(
    scene.received.map(({ sequence, isCarbon }) => [sequence, isCarbon]),
    [[1, false], [1, true], [3, false]],
  );
  assert.equal(scene.metrics.value(`incoming_refused_total ${DC2}`), 1);
});

Deno.test("IncomingLink refuses RETIRE of its own lane, and takes RETIRE of another", async () => {
  for (const [lane, last] of [[1, FRAME_TYPE.goodbye], [2, FRAME_TYPE.pong]] as const) {
    const scene = new Scene();
    await scene.send(testHello({ lane: 1 }), retireFrame(lane), pingFrame(9));
    assert.equal(scene.types.at(-1), last);
    assert.equal(scene.goodbye?.reason, lane === 1 ? "malformed" : undefined);
  }
});

Deno.test("IncomingLink refuses PONG to a PING that it has not sent", async () => {
  const scene = new Scene();
  await scene.send(testHello(), pongFrame(0));
  assert.ok(!scene.types.includes(FRAME_TYPE.goodbye), "as many as it has sent");
  await scene.send(pongFrame(1));
  assert.equal(scene.goodbye?.reason, "malformed");
});

Deno.test("IncomingLink ends one unsettled stanza over its bound, not at it", async () => {
  const scene = new Scene({ maxUnsettled: 3 });
  await scene.send(testHello(), ...stanzas(1, 3));
  assert.ok(!scene.types.includes(FRAME_TYPE.goodbye));
  await scene.send(...stanzas(4, 4));
  assert.equal(scene.goodbye?.reason, "overload");
});

Deno.test("IncomingLink is dropped after 15 s of silence, and kept by a PING before", async () => {
  const scene = new Scene();
  await scene.send(testHello());
  scene.clock.advance(14_999);
  scene.link.tick(scene.clock.monotonicMs());
  await scene.send(pingFrame(1));
  assert.equal(scene.types.at(-1), FRAME_TYPE.pong);
  scene.clock.advance(14_999);
  scene.link.tick(scene.clock.monotonicMs());
  await scene.settleDown();
  assert.equal(scene.isEnded, false);
  scene.clock.advance(1);
  scene.link.tick(scene.clock.monotonicMs());
  await scene.settleDown();
  assert.equal(scene.isEnded, true);
  assert.equal(scene.metrics.value(`incoming_errored_total ${DC2}`), 1);
});

Deno.test("IncomingLink takes nothing that has waited for longer than silenceTimeoutMs, as a suspended process does", async () => {
  const scene = new Scene({ silenceTimeoutMs: 1_000, pingIntervalMs: 300, tickMs: 100 });
  await scene.send(testHello());
  scene.clock.advance(1_099); // a tick may just be due
  await scene.send(...stanzas(1, 2));
  assert.equal(scene.received.length, 2);
  scene.clock.advance(1_100); // there was no tick in this time
  await scene.send(...stanzas(3, 4));
  assert.equal(
    scene.received.length,
    2,
    "the peer has sent them elsewhere meanwhile, or given them back",
  );
  assert.equal(scene.isEnded, true);
});
