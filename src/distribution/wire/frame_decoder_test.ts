import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJid } from "../../xmpp/mod.ts";
import type { EnvelopeFields } from "../mod.ts";
import {
  decodeStanza,
  encodeStanzaFrame,
  FrameDecoder,
  FrameError,
  goodbyeFrame,
  helloFrame,
  MAX_ACK_BYTES,
  MAX_CONTROL_BYTES,
  MAX_HELLO_BYTES,
  maxStanzaFrameBytes,
  OUR_VERSIONS,
  patchCarbon,
  patchMayBeRepeat,
  patchNumber,
  patchTtl,
  pingFrame,
  readNumber,
  stanzaFrame,
  takeCarbon,
} from "./mod.ts";

const LIMITS = { maxFrameBytes: 20_000 };

const HELLO = helloFrame({
  ...OUR_VERSIONS,
  process: 5,
  lane: 1,
  lastNumber: 0,
  datacenterId: "d1",
  localHost: "dc1.example.com",
  nodeName: "node1",
});

function envelope(bytes: Uint8Array): EnvelopeFields {
  return {
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid("alice@example.com/a"),
      to: parseJid("bob@example.com"),
      bytes,
    },
    process: 7,
    sequence: 1,
    origin: "dc1.example.com",
    sentAtUs: 5,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
    isCopy: false,
    entry: "ordinary",
    isRerouted: false,
    isSpread: false,
    isCarbon: false,
  };
}

/** Makes a decoder that collects its frames in hexadecimal. */
function collecting(limits = LIMITS): { decoder: FrameDecoder; frames: string[] } {
  const frames: string[] = [];
  const decoder = new FrameDecoder(limits, {
    frame: (_type, buffer, start, end) => frames.push(buffer.subarray(start, end).toHex()),
  });
  return { decoder, frames };
}

function join(...pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(pieces.flatMap((piece) => [...piece]));
}

function header(frameBytes: number, type: number): Uint8Array<ArrayBuffer> {
  const length = frameBytes - 4;
  return Uint8Array.of(length >>> 24, length >>> 16, length >>> 8, length, type);
}

function code(run: () => void): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof FrameError, String(error));
    return error.code;
  }
  return "accepted";
}

const FRAMES = [
  HELLO,
  stanzaFrame(envelope(new Uint8Array(300).fill(0x41)), 1),
  pingFrame(9),
  stanzaFrame(envelope(new Uint8Array(9000).fill(0x42)), 2),
  goodbyeFrame({ reason: "leaving", detail: "bye" }),
];

Deno.test("FrameDecoder.push() gives the same frames at every split point", () => {
  const stream = join(...FRAMES.filter((frame) => frame.length < 1000));
  const expected = FRAMES.filter((frame) => frame.length < 1000).map((frame) => frame.toHex());
  for (let split = 0; split <= stream.length; split++) {
    const { decoder, frames } = collecting();
    decoder.push(stream.subarray(0, split));
    decoder.push(stream.subarray(split));
    assert.deepEqual(frames, expected, `split at ${split}`);
  }
});

Deno.test("FrameDecoder.push() gives the same frames one byte at a time and in random pieces", () => {
  const stream = join(...FRAMES);
  const expected = FRAMES.map((frame) => frame.toHex());
  const single = collecting();
  for (let i = 0; i < stream.length; i++) single.decoder.push(stream.subarray(i, i + 1));
  assert.deepEqual(single.frames, expected);
  fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: 3000 })), (sizes) => {
    const { decoder, frames } = collecting();
    let at = 0;
    for (const size of [...sizes, stream.length]) {
      decoder.push(stream.subarray(at, at + size));
      at += size;
    }
    assert.deepEqual(frames, expected);
    assert.equal(decoder.assemblyBytes, 0);
  }));
});

Deno.test("FrameDecoder.push() passes a frame within one chunk on in place", () => {
  const stream = join(...FRAMES);
  const buffers: Uint8Array[] = [];
  const decoder = new FrameDecoder(LIMITS, { frame: (_type, buffer) => buffers.push(buffer) });
  decoder.push(stream);
  assert.equal(buffers.length, FRAMES.length);
  assert.ok(buffers.every((buffer) => buffer === stream));
});

Deno.test("FrameDecoder.push() skips unknown optional frames, whole, split and in the last byte", () => {
  const optional = join(header(12_000, 0xf0), new Uint8Array(11_995));
  const stream = join(HELLO, optional, pingFrame(1), optional, optional, pingFrame(2));
  const expected = [HELLO, pingFrame(1), pingFrame(2)].map((frame) => frame.toHex());
  for (const size of [1, 7, 4099, stream.length]) {
    const { decoder, frames } = collecting();
    for (let at = 0; at < stream.length; at += size) decoder.push(stream.subarray(at, at + size));
    assert.deepEqual(frames, expected, `in pieces of ${size}`);
    assert.equal(decoder.skippedFrames, 3);
  }
});

Deno.test("FrameDecoder.push() accepts each frame at its limit and refuses one byte more", () => {
  const sizes: readonly (readonly [number, number])[] = [
    [2, LIMITS.maxFrameBytes],
    [0xf0, LIMITS.maxFrameBytes],
    [3, MAX_ACK_BYTES],
    [4, MAX_CONTROL_BYTES],
    [5, MAX_CONTROL_BYTES],
    [6, MAX_CONTROL_BYTES],
    [7, MAX_CONTROL_BYTES],
  ];
  for (const [type, limit] of sizes) {
    const { decoder } = collecting();
    decoder.push(HELLO);
    assert.equal(code(() => decoder.push(header(limit, type))), "accepted", `type ${type}`);
    const other = collecting().decoder;
    other.push(HELLO);
    assert.equal(
      code(() => other.push(header(limit + 1, type))),
      "link/frame-too-large",
      `type ${type}`,
    );
  }
});

Deno.test("FrameDecoder.push() takes no frame larger than a HELLO before HELLO", () => {
  const { decoder } = collecting();
  assert.equal(code(() => decoder.push(header(MAX_HELLO_BYTES, 1))), "accepted");
  assert.equal(
    code(() => collecting().decoder.push(header(MAX_HELLO_BYTES + 1, 1))),
    "link/frame-too-large",
  );
});

Deno.test("FrameDecoder.push() refuses a frame of 4 GB by its length without allocating", () => {
  for (const withType of [true, false]) {
    const { decoder } = collecting();
    decoder.push(HELLO);
    const claim = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 2).subarray(0, withType ? 5 : 4);
    assert.equal(code(() => decoder.push(claim)), "link/frame-too-large");
    assert.equal(decoder.assemblyBytes, 0);
  }
});

Deno.test("FrameDecoder.push() keeps memory for the bytes that arrived, not for the claimed length", () => {
  const { decoder } = collecting({ maxFrameBytes: 1 << 30 });
  decoder.push(HELLO);
  decoder.push(header(1 << 30, 2));
  decoder.push(new Uint8Array(100));
  assert.ok(decoder.assemblyBytes <= 4096);
});

Deno.test("FrameDecoder.push() names the error, and then takes no more", () => {
  const cases: readonly (readonly [Uint8Array, string])[] = [
    [pingFrame(1), "link/hello-expected"],
    [new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"), "link/hello-expected"],
    [Uint8Array.of(22, 3, 1, 2, 0, 1), "link/hello-expected"],
    [join(HELLO, HELLO), "link/hello-repeated"],
    [join(HELLO, header(9, 0x7f)), "link/frame-unknown"],
    [join(HELLO, header(9, 0)), "link/frame-unknown"],
    [join(HELLO, Uint8Array.of(0, 0, 0, 0)), "link/frame-malformed"],
    [join(HELLO, Uint8Array.of(0, 0, 0, 0, 2)), "link/frame-malformed"],
  ];
  for (const [bytes, expected] of cases) {
    const { decoder, frames } = collecting();
    assert.equal(code(() => decoder.push(bytes)), expected);
    const before = frames.length;
    decoder.push(join(HELLO, pingFrame(3)));
    assert.equal(frames.length, before);
  }
});

Deno.test("FrameDecoder.push() lets a peer say GOODBYE instead of HELLO", () => {
  const { decoder, frames } = collecting();
  const goodbye = goodbyeFrame({ reason: "busy", detail: "" });
  decoder.push(goodbye);
  assert.deepEqual(frames, [goodbye.toHex()]);
});

Deno.test("FrameDecoder.stop() inside a sink ends the chunk", () => {
  let seen = 0;
  const decoder: FrameDecoder = new FrameDecoder(LIMITS, {
    frame() {
      seen++;
      decoder.stop();
    },
  });
  decoder.push(join(HELLO, pingFrame(1)));
  assert.equal(seen, 1);
});

Deno.test("patchNumber(), patchTtl() and patchMayBeRepeat() change only their field", () => {
  const fields = envelope(Uint8Array.of(1, 2, 3));
  const frame = new Uint8Array(500);
  const end = encodeStanzaFrame(frame, 7, fields, 1);
  patchNumber(frame, 7, 2 ** 40 + 5);
  patchTtl(frame, 7, 70_000);
  patchMayBeRepeat(frame, 7);
  assert.equal(readNumber(frame, 7), 2 ** 40 + 5);
  assert.deepEqual(decodeStanza(frame, 7, end), {
    ...fields,
    stanza: { ...fields.stanza, bytes: frame.subarray(end - 3, end) },
    ttl: 65_535,
    mayBeRepeat: true,
    bringsCarbon: false,
  });
});

Deno.test("patchCarbon() marks messages that have carbons, and takeCarbon() takes the mark off", () => {
  const fields = envelope(Uint8Array.of(1));
  const { process, sequence } = fields;
  const kinds = [
    ["message", "normal", true],
    ["message", "chat", true],
    ["message", "groupchat", false],
    ["message", "headline", false],
    ["message", "error", false],
    ["presence", "available", false],
    ["iq", "error", false],
  ] as const;
  for (const [kind, type, hasCarbons] of kinds) {
    const stanza = { ...fields.stanza, kind, type };
    const frame = stanzaFrame({ ...fields, stanza }, 9);
    const before = frame.slice();
    assert.equal(patchCarbon(frame, 0, { process, sequence: sequence + 1 }), false);
    assert.equal(patchCarbon(frame, 0, { process: process + 1, sequence }), false);
    assert.equal(patchCarbon(frame, 0, { process, sequence }), hasCarbons, `${kind} ${type}`);
    const decoded = decodeStanza(frame, 0, frame.length);
    assert.equal(decoded.bringsCarbon, hasCarbons);
    assert.deepEqual([decoded.stanza.kind, decoded.stanza.type], [kind, type]);
    assert.equal(takeCarbon(frame, 0), hasCarbons);
    assert.deepEqual(frame, before);
    assert.equal(takeCarbon(frame, 0), false);
  }
});

Deno.test("maxStanzaFrameBytes() is room enough for texts beyond ASCII", () => {
  const fields = envelope(Uint8Array.of(1));
  const wide = {
    ...fields,
    stanza: { ...fields.stanza, to: parseJid("жжж@example.com/☃☃") },
  };
  assert.ok(stanzaFrame(wide, 1).length <= maxStanzaFrameBytes(wide));
});
