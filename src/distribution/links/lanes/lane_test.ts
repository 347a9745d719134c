import assert from "node:assert/strict";
import { Envelope } from "../../mod.ts";
import {
  contextFrame,
  decodeContext,
  FRAME_TYPE,
  FrameDecoder,
  helloFrame,
} from "../../wire/mod.ts";
import { testEnvelope } from "../testing/kit.ts";
import { Lane } from "./lane.ts";
import { ack, bindingOf, flush, newLane, PEER } from "./testing/lanes.ts";

Deno.test("Lane.append() refuses a stanza whose frame the peer would not take, and goes on", () => {
  const maxFrameBytes = 20_000;
  const lane = newLane({ maxFrameBytes, laneMaxBytes: 1 << 23 });
  const binding = bindingOf(lane);
  lane.resume(PEER, 0);
  assert.equal(lane.append(testEnvelope(1, { padding: maxFrameBytes }), binding), false);
  // At both ends of the room that a frame takes besides its stanza.
  for (let padding = maxFrameBytes - 1000; padding < maxFrameBytes; padding += 10) {
    lane.append(testEnvelope(2, { padding }), binding);
  }
  const frames: number[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes }, {
    frame: (type) => void frames.push(type),
  });
  decoder.push(HELLO);
  lane.flush(Infinity, (bytes) => decoder.push(bytes.slice()));
  assert.ok(frames.length > 10);
  assert.equal(frames.length - 1, lane.items);
  assert.ok(lane.append(testEnvelope(3), binding));
});

Deno.test("Lane.flush() writes each numbered frame once, as far as the credit allows", () => {
  const lane = newLane();
  const binding = bindingOf(lane);
  assert.equal(lane.resume(PEER, 0), "resumed");
  for (let i = 1; i <= 5; i++) assert.ok(lane.append(testEnvelope(i), binding));
  assert.deepEqual(flush(lane, 1).map((frame) => frame.number), [1], "begun below the credit");
  assert.deepEqual(flush(lane, 0), []);
  assert.deepEqual(flush(lane).map((frame) => frame.sequence), [2, 3, 4, 5]);
  assert.deepEqual(flush(lane), []);
  assert.equal(lane.items, 5);
  assert.equal(binding.held, 5);
});

Deno.test("Lane.flush() gives pieces that the frame decoder reads whole", () => {
  const lane = newLane({ laneMaxItems: 2000 });
  lane.resume(PEER, 0);
  for (let i = 1; i <= 700; i++) lane.append(testEnvelope(i, { padding: 100 }), bindingOf(lane));
  const pieces: Uint8Array[] = [];
  lane.flush(Infinity, (bytes) => pieces.push(bytes));
  assert.ok(pieces.length <= 4, `${pieces.length} writes for 700 frames`);
  let frames = 0;
  const decoder = new FrameDecoder({ maxFrameBytes: 1 << 20 }, { frame: () => frames++ });
  decoder.push(HELLO);
  for (const piece of pieces) decoder.push(piece);
  assert.equal(frames, 701);
});

const HELLO = helloFrame({
  lowestVersion: 1,
  highestVersion: 1,
  minorVersion: 0,
  process: 1,
  lane: 1,
  lastNumber: 0,
  datacenterId: "a",
  localHost: "dc1.example.com",
  nodeName: "n",
});

Deno.test("Lane reports once that the peer has received a stanza with a waiting settler", () => {
  const lane = newLane();
  const binding = bindingOf(lane);
  const told: string[] = [];
  const settler = {
    settle: (number: number) => void told.push(`settled ${number}`),
    held: (number: number) => void told.push(`held ${number}`),
  };
  lane.resume(PEER, 0);
  lane.append(testEnvelope(1), binding); // this settler does not wait for `held`
  for (const number of [2, 3, 4]) {
    lane.append(new Envelope(testEnvelope(number), settler, number), binding);
  }
  flush(lane);
  assert.ok(lane.acknowledge(ack(3, 1)));
  assert.deepEqual(told, ["held 2", "held 3"]);
  assert.ok(lane.acknowledge(ack(3, 2)));
  // On a new connection the peer says that it has the rest too.
  assert.equal(lane.resume(PEER, 4), "resumed");
  assert.deepEqual(told, ["held 2", "held 3", "settled 2", "held 4"]);
});

Deno.test("Lane notes when a followed stanza is written, received, moved and settled", () => {
  const lane = newLane({}, 3);
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  const steps: string[] = [];
  const followed = (sequence: number) => {
    const envelope = testEnvelope(sequence);
    envelope.trace = {
      note: (step, { lane, number } = {}) => steps.push(`${step} ${sequence}: ${lane}/${number}`),
      settled: () => steps.push(`settled ${sequence}`),
    };
    return envelope;
  };
  lane.append(testEnvelope(1), binding);
  lane.append(followed(2), binding);
  lane.append(testEnvelope(3), binding);
  lane.append(followed(4), binding);
  flush(lane, 1); // one frame
  assert.deepEqual(steps, []);
  flush(lane);
  assert.deepEqual(steps.splice(0), ["written 2: 3/2", "written 4: 3/4"]);
  lane.acknowledge(ack(3, 2));
  assert.deepEqual(steps.splice(0), ["received 2: 3/2", "settled 2"]);

  const heir = newLane({}, 5);
  heir.resume(PEER + 1, 0);
  for (const { entry, wasSent } of lane.takeAll()) heir.adopt(entry, wasSent);
  flush(heir);
  assert.deepEqual(steps.splice(0), ["moved 4: 5/2", "written 4: 5/2"]);
  const [, back] = heir.takeAll();
  back!.entry.toEnvelope(true).settle();
  assert.deepEqual(steps, ["settled 4"]);
});

Deno.test("Lane.flush() writes the context of each traced stanza before the stanza, each time", () => {
  const lane = newLane();
  lane.takesContexts = true;
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  const traced = (sequence: number) => {
    const envelope = testEnvelope(sequence);
    envelope.trace = { carried: contextOf(sequence), note() {}, settled() {} };
    return envelope;
  };
  for (const envelope of [testEnvelope(1), traced(2), testEnvelope(3), traced(4)]) {
    lane.append(envelope, binding);
  }
  assert.deepEqual(framesOf(lane, 1), ["stanza"], "no context before its stanza has credit");
  assert.deepEqual(framesOf(lane, 1), ["context 2", "stanza"]);
  assert.deepEqual(framesOf(lane), ["context 4", "stanza", "stanza"]);
  lane.append(testEnvelope(5), binding);
  assert.deepEqual(framesOf(lane), ["stanza"]);
  assert.equal(lane.resume(PEER, 2), "resumed");
  assert.deepEqual(framesOf(lane), ["context 4", "stanza", "stanza", "stanza"]);
  lane.takesContexts = false;
  assert.equal(lane.resume(PEER, 2), "resumed");
  assert.deepEqual(framesOf(lane), ["stanza", "stanza", "stanza"], "a peer of an older version");
});

function contextOf(sequence: number): Uint8Array {
  const [traceId, spanId] = ["ab".repeat(16), "cd".repeat(8)];
  return contextFrame({ process: 77, sequence, isSampled: true, traceId, spanId });
}

/** Returns the frames that a flush writes: stanzas, and contexts with the stanza's sequence. */
function framesOf(lane: Lane, creditBytes = Infinity): string[] {
  const frames: string[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes: 20_000 }, {
    frame: (type, buffer, start, end) => {
      if (type === FRAME_TYPE.stanza) frames.push("stanza");
      if (type === FRAME_TYPE.context) {
        frames.push(`context ${decodeContext(buffer, start, end).sequence}`);
      }
    },
  });
  decoder.push(HELLO);
  lane.flush(creditBytes, (bytes) => decoder.push(bytes.slice()));
  return frames;
}
