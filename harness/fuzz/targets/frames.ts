import {
  decodeAck,
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeGoodbye,
  decodeHave,
  decodeHello,
  decodeQueue,
  decodeResume,
  decodeRetire,
  decodeSession,
  decodeStanza,
  decodeToken,
  encodeStanzaFrame,
  FRAME_TYPE,
  FrameDecoder,
  FrameError,
  maxStanzaFrameBytes,
  readNumber,
} from "../../../src/distribution/wire/mod.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { FuzzTarget } from "../fuzz_target.ts";

const MAX_FRAME_BYTES = 65_536;

/** Every vector of a golden file, as bytes. */
function golden(name: string): Uint8Array[] {
  const url = new URL(`../../../fixtures/frames/${name}.json`, import.meta.url);
  const text = Deno.readTextFileSync(url);
  return [...text.matchAll(/"hex":\s*"([0-9a-f\s]+)"/g)].map((match) =>
    Uint8Array.fromHex(match[1]!.replace(/\s/g, ""))
  );
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * The frame decoder: whatever comes, it hands on frames that decode or throws a `FrameError`, keeps no
 * more than a frame may have, and what a STANZA frame says survives being written again.
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
    others.push(...golden("resume"));
    return others.map((frame) => concat([hellos[0]!, frame, frame]));
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

function decodeFrame(type: number, buffer: Uint8Array, start: number, end: number): void {
  switch (type) {
    case FRAME_TYPE.hello:
      return void decodeHello(buffer, start, end);
    case FRAME_TYPE.ack:
      return void decodeAck(buffer, start, end);
    case FRAME_TYPE.ping:
    case FRAME_TYPE.pong:
      return void decodeToken(buffer, start, end);
    case FRAME_TYPE.goodbye:
      return void decodeGoodbye(buffer, start, end);
    case FRAME_TYPE.retire:
      return void decodeRetire(buffer, start, end);
    case FRAME_TYPE.stanza:
      return checkStanza(buffer, start, end);
    case FRAME_TYPE.resume:
      return void decodeResume(buffer, start, end);
    case FRAME_TYPE.session:
      return void decodeSession(buffer, start, end);
    case FRAME_TYPE.details:
      return void decodeDetails(buffer, start, end);
    case FRAME_TYPE.queue:
      return void decodeQueue(buffer, start, end);
    case FRAME_TYPE.have:
      return void decodeHave(buffer, start, end);
    case FRAME_TYPE.given:
      return void decodeGiven(buffer, start, end);
    case FRAME_TYPE.end:
      return void decodeEnd(buffer, start, end);
    default:
      return; // of the session table: its own tests mutate those
  }
}

function checkStanza(buffer: Uint8Array, start: number, end: number): void {
  const fields = decodeStanza(buffer, start, end);
  const number = readNumber(buffer, start);
  const again = new Uint8Array(maxStanzaFrameBytes(fields));
  const length = encodeStanzaFrame(again, 0, fields, number);
  // Flags that this version does not know are not carried on; all the rest is.
  const before = describeStanza(fields, number);
  const after = describeStanza(decodeStanza(again, 0, length), readNumber(again, 0));
  if (before !== after) {
    throw new Error(`a frame changes when written again: ${before} to ${after}`);
  }
}

function describeStanza(fields: ReturnType<typeof decodeStanza>, number: number): string {
  const { kind, type, from, to, bytes } = fields.stanza;
  const stanza = [kind, type, from.text, to.text, bytes.toHex()];
  return JSON.stringify({ ...fields, stanza, number });
}
