import {
  ackFrame,
  changesFrame,
  contextFrame,
  decodeAck,
  decodeChanges,
  decodeContext,
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeGoodbye,
  decodeHave,
  decodeHello,
  decodeInvalidate,
  decodeLease,
  decodeMesh,
  decodePosition,
  decodeQueue,
  decodeResume,
  decodeRetire,
  decodeSession,
  decodeSlow,
  decodeSnapshot,
  decodeStanza,
  decodeSurvey,
  decodeSurveyed,
  decodeToken,
  decodeTrace,
  decodeTraced,
  decodeTracing,
  decodeWritten,
  detailsFrames,
  encodeWritten,
  endFrame,
  FrameDecoder,
  FrameError,
  frameName,
  givenFrame,
  goodbyeFrame,
  haveFrame,
  helloFrame,
  invalidateFrames,
  leaseFrame,
  meshFrame,
  patchCarbon,
  pingFrame,
  pongFrame,
  positionFrame,
  queueFrame,
  readNumber,
  resumeFrame,
  retireFrame,
  sessionFrame,
  slowFrame,
  snapshotFrame,
  stanzaFrame,
  surveyedFrame,
  surveyFrame,
  tracedFrame,
  traceFrame,
  tracingFrame,
  WRITTEN_BYTES,
} from "../../../src/distribution/wire/mod.ts";
import type { FrameName } from "../../../src/distribution/wire/mod.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { FuzzTarget } from "../fuzz_target.ts";
import { joinBytes } from "../../net/join_bytes.ts";

const MAX_FRAME_BYTES = 65_536;

/** Every vector of a golden file, as bytes. */
function golden(name: string): Uint8Array[] {
  const url = new URL(`../../../fixtures/frames/${name}.json`, import.meta.url);
  const text = Deno.readTextFileSync(url);
  return [...text.matchAll(/"hex":\s*"([0-9a-f\s]+)"/g)].map((match) =>
    Uint8Array.fromHex(match[1]!.replace(/\s/g, ""))
  );
}

/**
 * The frame decoder: whatever comes, it hands on frames that decode or throws a `FrameError`, keeps no
 * more than a frame may have, and what a frame says survives being written again.
 */
export const FRAMES_TARGET: FuzzTarget = {
  name: "frames",
  tokens: [
    ...bytesOf(["example.com", "@", "/", "dc2.example.com", "\u00e9", "<message/>"]),
    Uint8Array.of(0, 0, 0, 1),
    Uint8Array.of(0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0),
    Uint8Array.of(0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0, 0x20, 0, 0, 0, 0, 0, 0),
  ],
  seeds() {
    const hellos = golden("hello");
    const others = [...golden("stanza"), ...golden("ack"), ...golden("control")];
    others.push(...golden("table"), ...golden("resume"), ...golden("trace"), ...golden("survey"));
    return others.map((frame) => joinBytes(hellos[0]!, frame, frame));
  },
  run(input, chance) {
    const decoder = new FrameDecoder({ maxFrameBytes: MAX_FRAME_BYTES }, { frame: decodeFrame });
    try {
      for (let at = 0; at < input.length;) {
        const end = Math.min(input.length, at + 1 + chance(chance(2) === 0 ? 6 : input.length + 1));
        decoder.push(input.subarray(at, end));
        if (decoder.assemblyBytes > 2 * MAX_FRAME_BYTES) {
          throw new Error(`the decoder keeps ${decoder.assemblyBytes} bytes`);
        }
        at = end;
      }
    } catch (thrown) {
      if (!(thrown instanceof FrameError)) throw thrown;
    }
  },
};

/** Decoder and encoder of one type of frame. */
interface Codec<Value> {
  decode(buffer: Uint8Array, start: number, end: number): Value;
  encode(value: Value): Uint8Array | undefined;
}

/** Keeps `Value` between the two functions; the table needs no more of it. */
function codec<Value>(
  decode: Codec<Value>["decode"],
  encode: Codec<Value>["encode"],
): (buffer: Uint8Array, start: number, end: number) => void {
  return (buffer, start, end) => {
    const value = decode(buffer, start, end);
    if (end - start > MAX_REWRITTEN_BYTES) return;
    const again = encode(value);
    if (again === undefined) return;
    // Flags that this version does not know are not carried on; all the rest is.
    const before = JSON.stringify(value, readable);
    const after = JSON.stringify(decode(again, 0, again.length), readable);
    if (before !== after) {
      throw new Error(`a frame changes when written again: ${before} to ${after}`);
    }
  };
}

/** Bytes up to which a frame is written again as one. A longer frame is written as two. */
const MAX_REWRITTEN_BYTES = 50_000;

const CODECS: Readonly<Record<FrameName, ReturnType<typeof codec>>> = {
  hello: codec(decodeHello, helloFrame),
  stanza: codec(
    (buffer, start, end) => ({
      fields: decodeStanza(buffer, start, end),
      number: readNumber(buffer, start),
    }),
    ({ fields, number }) => {
      const frame = stanzaFrame(fields, number);
      if (fields.bringsCarbon === true) patchCarbon(frame, 0, fields);
      return frame;
    },
  ),
  ack: codec(decodeAck, ackFrame),
  ping: codec(decodeToken, pingFrame),
  pong: codec(decodeToken, pongFrame),
  // A long detail is cut.
  goodbye: codec(decodeGoodbye, (bye) => bye.detail.length > 150 ? undefined : goodbyeFrame(bye)),
  retire: codec(decodeRetire, retireFrame),
  written: codec(decodeWritten, (wallUs) => {
    const frame = new Uint8Array(WRITTEN_BYTES);
    encodeWritten(frame, wallUs);
    return frame;
  }),
  lease: codec(decodeLease, leaseFrame),
  changes: codec(decodeChanges, (changes) => changesFrame(changes, changes.records).frame),
  snapshot: codec(decodeSnapshot, snapshotFrame),
  position: codec(decodePosition, positionFrame),
  // Only eight endpoints of each datacenter are passed on.
  mesh: codec(
    decodeMesh,
    (hints) => hints.every(({ endpoints }) => endpoints.length <= 8) ? meshFrame(hints) : undefined,
  ),
  invalidate: codec(decodeInvalidate, (keys) => invalidateFrames(keys)[0]),
  resume: codec(decodeResume, resumeFrame),
  session: codec(decodeSession, sessionFrame),
  details: codec(decodeDetails, ({ transfer, details }) => detailsFrames(transfer, details)[0]),
  queue: codec(
    (buffer, start, end) => {
      const { stanzas, ...others } = decodeQueue(buffer, start, end);
      // Nobody asks whether a stanza of a queue brings its carbon, and none is written with one.
      const plain = stanzas.map(({ number, fields }) => ({
        number,
        fields: { ...fields, bringsCarbon: undefined },
      }));
      return { ...others, stanzas: plain };
    },
    queueFrame,
  ),
  have: codec(decodeHave, haveFrame),
  given: codec(decodeGiven, givenFrame),
  end: codec(decodeEnd, endFrame),
  // Long words are cut.
  survey: codec(decodeSurvey, surveyFrame),
  surveyed: codec(decodeSurveyed, surveyedFrame),
  trace: codec(decodeTrace, (trace) => trace.who.length > 40 ? undefined : traceFrame(trace)),
  tracing: codec(decodeTracing, tracingFrame),
  traced: codec(decodeTraced, (traced) => {
    const words = [traced.source, traced.reason];
    return words.some((each) => (each?.length ?? 0) > 40) ? undefined : tracedFrame(traced);
  }),
  context: codec(decodeContext, contextFrame),
  slow: codec(decodeSlow, slowFrame),
};

function decodeFrame(type: number, buffer: Uint8Array, start: number, end: number): void {
  const name = frameName(type);
  if (name !== undefined) CODECS[name](buffer, start, end);
}

function readable(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return value.toHex();
  // An address says all that it is by its text.
  if (typeof value === "object" && value !== null && "text" in value) return value.text;
  return value;
}
