import type { TraceContext } from "../mod.ts";
import { FrameReader } from "./frame_reader.ts";
import { FRAME_HEADER_BYTES, FRAME_TYPE } from "./frame_type.ts";
import { checkInteger, writeU32, writeU53 } from "./integers.ts";

/** Lowest minor version of a peer that takes CONTEXT. */
export const CONTEXT_MINOR_VERSION = 5;

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
// Offsets from the start of the frame.
const PROCESS_AT = FRAME_HEADER_BYTES;
const SEQUENCE_AT = PROCESS_AT + 8;
const TRACE_AT = SEQUENCE_AT + 8;
const SPAN_AT = TRACE_AT + TRACE_BYTES;
const FLAGS_AT = SPAN_AT + SPAN_BYTES;
const FRAME_BYTES = FLAGS_AT + 1;

/** Frames that share memory. */
const FRAMES_AT_ONCE = 64;
let slab = new Uint8Array(0);
let used = 0;

/** Flag "sampled" of W3C Trace Context. */
const SAMPLED = 0x01;

/** Place of one stanza in a distributed trace. */
export interface ContextFields extends TraceContext {
  /** Id of the stanza, as in its STANZA frame. */
  readonly process: number;
  readonly sequence: number;
  /** False when nobody records the trace. */
  readonly isSampled: boolean;
}

/**
 * Encodes a CONTEXT frame. Frames that are encoded one after another share memory, as memory for each
 * costs more than the rest.
 * @throws RangeError for a number that the reader would refuse
 */
export function contextFrame(fields: ContextFields): Uint8Array {
  checkInteger(fields.process, Number.MAX_SAFE_INTEGER);
  checkInteger(fields.sequence, Number.MAX_SAFE_INTEGER);
  if (used + FRAME_BYTES > slab.length) {
    slab = new Uint8Array(FRAMES_AT_ONCE * FRAME_BYTES);
    used = 0;
  }
  const frame = slab.subarray(used, used += FRAME_BYTES);
  writeU32(frame, 0, FRAME_BYTES - 4);
  frame[4] = FRAME_TYPE.context;
  writeU53(frame, PROCESS_AT, fields.process);
  writeU53(frame, SEQUENCE_AT, fields.sequence);
  frame.subarray(TRACE_AT, SPAN_AT).setFromHex(fields.traceId);
  frame.subarray(SPAN_AT, FLAGS_AT).setFromHex(fields.spanId);
  frame[FLAGS_AT] = fields.isSampled ? SAMPLED : 0;
  return frame;
}

/**
 * Reads the CONTEXT frame at [`start`, `end`).
 * @throws FrameError when it is cut short, or an id is 0
 */
export function decodeContext(buffer: Uint8Array, start: number, end: number): ContextFields {
  const frame = new FrameReader("CONTEXT", buffer, { start, end });
  const [process, sequence] = [frame.u53(1), frame.u53()];
  const traceId = frame.raw(TRACE_BYTES).toHex();
  const spanId = frame.raw(SPAN_BYTES).toHex();
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) frame.fail("its trace or its span is 0");
  return { process, sequence, traceId, spanId, isSampled: (frame.u8() & SAMPLED) !== 0 };
}
