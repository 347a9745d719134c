/**
 * A lane from append to settled, without a socket; and beside it a bare TLS connection that carries
 * frames of the same size, which is the most that links could reach here.
 */
import { connect, createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import { CertificateAuthority } from "../harness/mod.ts";
import { FairShares } from "../src/base/mod.ts";
import { Envelope } from "../src/distribution/mod.ts";
import { stanzaFrame } from "../src/distribution/wire/mod.ts";
import { parseJid } from "../src/xmpp/mod.ts";
import { Lane } from "../src/distribution/links/lanes/lane.ts";
import { SenderBindings } from "../src/distribution/links/lanes/sender_bindings.ts";

const RAW_BYTES = 65_536;
const PIECES = 8;

const ENVELOPE_FIELDS = {
  stanza: {
    kind: "message",
    type: "chat",
    from: parseJid("alice@example.com/phone"),
    to: parseJid("bob@example.com/desk"),
    bytes: new Uint8Array(300).fill(0x61),
  },
  process: 0xf3a5b7c9d1e2,
  sequence: 1,
  origin: "dc1.example.com",
  sentAtUs: 1_700_000_000_123_456,
  ttl: 4,
  bounces: 0,
  mayBeRepeat: false,
} as const;

const frame = stanzaFrame(ENVELOPE_FIELDS, 1);
const piece = new Uint8Array(frame.length * Math.floor(RAW_BYTES / frame.length));
for (let at = 0; at < piece.length; at += frame.length) piece.set(frame, at);
/** Frames of one batch, as many on either side, so that the times compare. */
const BATCH = PIECES * (piece.length / frame.length);

/** Budget as in a node: stanzas in lanes count towards all waiting stanzas. */
const budget = new FairShares({ within: new FairShares({ maxBytes: 536_870_912 }) });
const lane = new Lane(1, {
  laneMaxBytes: 16_777_216,
  laneMaxItems: 65_536,
  laneHighWater: 0.5,
  laneLowWater: 0.25,
  maxFrameBytes: 524_288,
}, { budget, events: { laneHasWork() {}, laneLevelChanged() {}, laneSlows: () => () => {} } });
lane.resume(1, 0);
const BINDING = new SenderBindings({ maxBindings: 1, idleTicks: 1, budget })
  .bind("alice@example.com/phone", lane);
const ENVELOPES = Array.from({ length: BATCH }, () => new Envelope(ENVELOPE_FIELDS));
let written = 0;
const write = (bytes: Uint8Array) => {
  written += bytes.length;
};

Deno.bench(`lane: append, write and settle ${BATCH} stanzas`, {
  group: "lane",
  baseline: true,
}, () => {
  for (let i = 0; i < BATCH; i++) lane.append(ENVELOPES[i]!, BINDING);
  lane.flush(Infinity, write);
  const { sent } = lane;
  lane.acknowledge({ received: sent, settled: sent, creditBytes: 0, ranges: [] });
});

const authority = await CertificateAuthority.create();
const { certificatePem, privateKeyPem } = await authority.issue({ names: ["localhost"] });
const server = createServer({ cert: certificatePem, key: privateKeyPem });
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
let waiting: (() => void) | undefined;
let due = 0;
server.on("secureConnection", (socket) => {
  socket.on("data", (chunk) => {
    due -= chunk.length;
    if (due <= 0) waiting?.();
  });
});
const client = connect({
  host: "127.0.0.1",
  port: (server.address() as AddressInfo).port,
  ca: authority.certificatePem,
  servername: "localhost",
});
await new Promise<void>((resolve) => client.once("secureConnect", resolve));

Deno.bench(
  `bare TLS: ${BATCH} frames, 64 KB a write, sent and read`,
  { group: "lane" },
  async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting = resolve;
    due = piece.length * PIECES;
    for (let i = 0; i < PIECES; i++) client.write(piece);
    await promise;
  },
);

globalThis.addEventListener("unload", () => {
  client.destroy();
  server.close();
});
