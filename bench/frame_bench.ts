/** Frames between nodes: the cost of encoding and decoding one 300-byte stanza. */
import { Envelope } from "../src/distribution/mod.ts";
import {
  decodeStanza,
  encodeStanzaFrame,
  FRAME_TYPE,
  FrameDecoder,
  helloFrame,
  OUR_VERSIONS,
  readNumber,
  stanzaFrame,
} from "../src/distribution/wire/mod.ts";
import { parseJid } from "../src/xmpp/mod.ts";

const FRAMES_PER_CHUNK = 150;

const ENVELOPES = Array.from({ length: 64 }, (_, i) =>
  new Envelope({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid(`sender${i}@example.com/phone-${i}`),
      to: parseJid(`recipient${i}@example.com`),
      bytes: new Uint8Array(300).fill(0x61),
    },
    process: 0xf3a5b7c9d1e2,
    sequence: i + 1,
    origin: "dc1.example.com",
    sentAtUs: 1_700_000_000_123_456,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
  }));

const HELLO = helloFrame({
  ...OUR_VERSIONS,
  process: 1,
  lane: 1,
  lastNumber: 0,
  datacenterId: "d1",
  localHost: "dc1.example.com",
  nodeName: "node1@dc1.example.com",
});

const TARGET = new Uint8Array(FRAMES_PER_CHUNK * 600);
const CHUNK = Uint8Array.from(
  Array.from({ length: FRAMES_PER_CHUNK }, (_, i) => [...stanzaFrame(ENVELOPES[i % 64]!, i + 1)])
    .flat(),
);

let seen = 0;
const scanner = new FrameDecoder({ maxFrameBytes: 1 << 20 }, { frame: () => seen++ });
const reader = new FrameDecoder({ maxFrameBytes: 1 << 20 }, {
  frame(type, buffer, start, end) {
    if (type !== FRAME_TYPE.stanza) return;
    seen += readNumber(buffer, start) + decodeStanza(buffer, start, end).ttl;
  },
});
scanner.push(HELLO);
reader.push(HELLO);

Deno.bench(
  `encode ${FRAMES_PER_CHUNK} frames of 300 B`,
  { group: "frames", baseline: true },
  () => {
    let at = 0;
    for (let i = 0; i < FRAMES_PER_CHUNK; i++) {
      at = encodeStanzaFrame(TARGET, at, ENVELOPES[i & 63]!, i + 1);
    }
  },
);

Deno.bench(`find ${FRAMES_PER_CHUNK} frames in a chunk`, { group: "frames" }, () => {
  scanner.push(CHUNK);
});

Deno.bench(`find and decode ${FRAMES_PER_CHUNK} frames`, { group: "frames" }, () => {
  reader.push(CHUNK);
});
