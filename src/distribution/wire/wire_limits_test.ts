import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import {
  ackFrame,
  changesFrame,
  decodeAck,
  decodeChanges,
  decodeGoodbye,
  decodeHello,
  decodeInvalidate,
  decodeStanza,
  FRAME_TYPE,
  FrameDecoder,
  FrameError,
  goodbyeFrame,
  helloFrame,
  invalidateFrames,
  isRecordWritable,
  leaseFrame,
  OUR_VERSIONS,
  positionFrame,
  stanzaFrame,
} from "./mod.ts";
import type { FrameName, TableRecord } from "./mod.ts";

// The numbers here are those of docs/protocol.md, which peers rely on: none is taken from the code.

const HELLO = {
  ...OUR_VERSIONS,
  process: 5,
  lane: 1,
  lastNumber: 0,
  datacenterId: "d1",
  localHost: "dc1.example.com",
  nodeName: "node1",
};

for (
  const [name, limitBytes] of [
    ["ack", 8_223],
    ["ping", 1_024],
    ["pong", 1_024],
    ["goodbye", 1_024],
    ["retire", 1_024],
    ["written", 1_024],
    ["lease", 65_536],
    ["changes", 65_536],
    ["snapshot", 65_536],
    ["position", 65_536],
    ["mesh", 65_536],
    ["invalidate", 65_536],
    ["resume", 4_096],
    ["details", 65_536],
    ["have", 4_096],
    ["given", 4_096],
    ["end", 4_096],
    ["trace", 8_192],
    ["tracing", 8_192],
    ["traced", 8_192],
    ["context", 1_024],
    ["slow", 1_024],
    ["survey", 65_536],
    ["surveyed", 65_536],
  ] as const satisfies readonly (readonly [FrameName, number])[]
) {
  Deno.test(`FrameDecoder takes a frame of type ${name} of ${limitBytes} bytes, and none longer`, () => {
    const taken: number[] = [];
    const take = (frameBytes: number) => {
      const sink = {
        frame: (type: number, _: Uint8Array, start: number, end: number) => {
          if (type === FRAME_TYPE[name]) taken.push(end - start);
        },
      };
      const decoder = new FrameDecoder({ maxFrameBytes: 1_000_000 }, sink);
      decoder.push(helloFrame(HELLO));
      const frame = new Uint8Array(frameBytes);
      new DataView(frame.buffer).setUint32(0, frameBytes - 4);
      frame[4] = FRAME_TYPE[name];
      decoder.push(frame);
    };
    take(limitBytes);
    assert.throws(() => take(limitBytes + 1), { code: "link/frame-too-large" });
    assert.deepEqual(taken, [limitBytes]);
  });
}

Deno.test("ackFrame() and decodeAck() take 1024 ranges, and not one more", () => {
  const ranges = Array.from({ length: 1_024 }, (_, i) => ({ first: 2 * i + 2, count: 1 }));
  const ack = { received: 9_999, settled: 0, creditBytes: 0, ranges };
  const frame = ackFrame(ack);
  assert.deepEqual(decodeAck(frame, 0, frame.length), ack);
  const more = [...ranges, { first: 4_000, count: 1 }];
  assert.throws(() => ackFrame({ ...ack, ranges: more }), RangeError);
  const longer = new Uint8Array(frame.length + 8);
  longer.set(frame);
  const view = new DataView(longer.buffer);
  view.setUint32(0, longer.length - 4);
  view.setUint16(29, 1_025);
  view.setUint32(frame.length, 4_000);
  view.setUint32(frame.length + 4, 1);
  assert.throws(() => decodeAck(longer, 0, longer.length), FrameError);
});

Deno.test("invalidateFrames() fills frames up to 65536 bytes, and then begins another one", () => {
  const key = (i: number) => `${String(i).padStart(3, "0")}${"k".repeat(3_068)}`;
  const keys = Array.from({ length: 100 }, (_, i) => key(i));
  const frames = invalidateFrames(keys);
  const found = frames.flatMap((frame) => [...decodeInvalidate(frame, 0, frame.length)]);
  assert.deepEqual(found, keys);
  assert.deepEqual(frames.map(({ length }) => length <= 65_536), frames.map(() => true));
  assert.equal(frames.length, Math.ceil(100 / 21), "21 of the longest keys are in each");
});

Deno.test("helloFrame() takes texts of 1023 bytes, and not one byte more", () => {
  let at = 34;
  for (const field of ["datacenterId", "localHost", "nodeName"] as const) {
    const longest = { ...HELLO, [field]: "x".repeat(1_023) };
    const frame = helloFrame(longest);
    assert.deepEqual(decodeHello(frame, 0, frame.length), longest);
    assert.throws(() => helloFrame({ ...HELLO, [field]: "x".repeat(1_024) }), RangeError);
    const longer = Uint8Array.from([...frame.subarray(0, at + 2), 0x78, ...frame.subarray(at + 2)]);
    const view = new DataView(longer.buffer);
    view.setUint32(0, longer.length - 4);
    view.setUint16(at, 1_024);
    assert.throws(() => decodeHello(longer, 0, longer.length), FrameError, field);
    at += 2 + HELLO[field].length;
  }
});

Deno.test("goodbyeFrame() carries 170 characters of a detail, and cuts a longer one", () => {
  for (const [given, kept] of [[170, 170], [171, 170], [5_000, 170]] as const) {
    const frame = goodbyeFrame({ reason: "other", detail: "€".repeat(given) });
    assert.equal(decodeGoodbye(frame, 0, frame.length).detail.length, kept);
    assert.ok(frame.length <= 1_024);
  }
});

Deno.test("stanzaFrame() counts 255 bounces, and no more", () => {
  for (const [bounces, counted] of [[254, 254], [255, 255], [256, 255], [1_000, 255]] as const) {
    const frame = stanzaFrame({
      stanza: {
        kind: "message",
        type: "chat",
        from: parseJid("alice@example.com/a"),
        to: parseJid("bob@example.com"),
        bytes: new TextEncoder().encode("<message/>"),
      },
      process: 7,
      sequence: 1,
      origin: "dc1.example.com",
      sentAtUs: 5,
      ttl: 4,
      bounces,
      mayBeRepeat: false,
      isCopy: false,
      entry: "ordinary",
      isRerouted: false,
      isSpread: false,
      isCarbon: false,
    }, 1);
    assert.equal(decodeStanza(frame, 0, frame.length).bounces, counted);
  }
});

const POSITION = {
  process: 1,
  round: 1,
  applied: 1,
  chunk: 1,
  isRestart: false,
  wantsSnapshot: false,
};
const LEASE = {
  process: 1,
  startedUs: 1,
  nowUs: 1,
  lastNumber: 1,
  lifeMs: 1,
  localHost: "dc1.example.com",
  nodeName: "node1",
  endpoints: [],
};
const RECORD: TableRecord = {
  kind: "claim",
  isHidden: false,
  sequence: 1,
  epoch: 1,
  name: "bob@example.com",
  resourcepart: "phone",
};

for (const value of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
  Deno.test(`encoders refuse ${value} for a number, as readers would`, () => {
    const refused = { name: "RangeError" };
    assert.throws(() => positionFrame({ ...POSITION, applied: value }), refused);
    assert.throws(() => positionFrame({ ...POSITION, round: value }), refused);
    assert.throws(() => leaseFrame({ ...LEASE, startedUs: value }), refused);
    assert.throws(() => leaseFrame({ ...LEASE, lifeMs: value }), refused);
    assert.throws(() => helloFrame({ ...HELLO, lastNumber: value }), refused);
    const changes = { process: 1, round: 1, first: 1 };
    assert.throws(() => changesFrame(changes, [{ ...RECORD, epoch: value }]), refused);
    assert.ok(!isRecordWritable({ ...RECORD, epoch: value }));
    assert.ok(!isRecordWritable({ ...RECORD, sequence: value }));
  });
}

Deno.test("isRecordWritable() agrees with CHANGES frames, to the byte", () => {
  for (
    const [record, isWritable] of [
      [RECORD, true],
      [{ ...RECORD, name: "" }, false],
      [{ ...RECORD, name: "é".repeat(1_023) + "n" }, true],
      [{ ...RECORD, name: "é".repeat(1_024) }, false],
      [{ ...RECORD, resourcepart: "" }, true],
      [{ ...RECORD, resourcepart: "😀".repeat(255) + "abc" }, true],
      [{ ...RECORD, resourcepart: "😀".repeat(256) }, false],
      [{ ...RECORD, resourcepart: "中".repeat(341) }, true],
      [{ ...RECORD, resourcepart: "中".repeat(342) }, false],
      [{ ...RECORD, sequence: 0 }, false],
      [{ ...RECORD, epoch: Number.MAX_SAFE_INTEGER }, true],
    ] as const
  ) {
    assert.equal(isRecordWritable(record), isWritable, JSON.stringify(record).slice(0, 80));
    let isRead = true;
    try {
      const { frame } = changesFrame({ process: 1, round: 1, first: 1 }, [record]);
      assert.deepEqual(decodeChanges(frame, 0, frame.length).records, [record]);
    } catch {
      isRead = false; // refused by the writer, or by the reader
    }
    assert.equal(isRead, isWritable);
  }
});

Deno.test("decodeChanges() refuses changes whose numbers would not stay below 2^53", () => {
  const fields = { process: 1, round: 1 };
  const first = Number.MAX_SAFE_INTEGER - 1;
  const { frame: one } = changesFrame({ ...fields, first }, [RECORD]);
  assert.equal(decodeChanges(one, 0, one.length).first, first);
  const { frame: two } = changesFrame({ ...fields, first }, [RECORD, RECORD]);
  assert.throws(() => decodeChanges(two, 0, two.length), { name: "FrameError" });
});

Deno.test("stanzaFrame() of a node whose clock is set before 1970 can be read", () => {
  const frame = stanzaFrame({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid("alice@example.com/a"),
      to: parseJid("bob@example.com"),
      bytes: new TextEncoder().encode("<message/>"),
    },
    process: 7,
    sequence: 1,
    origin: "dc1.example.com",
    sentAtUs: -5,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  }, 1);
  assert.equal(decodeStanza(frame, 0, frame.length).sentAtUs, 0);
});
