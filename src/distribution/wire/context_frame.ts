import type { TraceContext } from "../mod.ts";
import { FrameReader } from "./frame_reader.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { FrameWriter } from "./frame_writer.ts";

/** Lowest minor version of a peer that takes CONTEXT. */
export const CONTEXT_MINOR_VERSION = 5;

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
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

/** Encodes a CONTEXT frame. */
export function contextFrame(fields: ContextFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.context, 64);
  frame.u53(fields.process);
  frame.u53(fields.sequence);
  frame.raw(Uint8Array.fromHex(fields.traceId));
  frame.raw(Uint8Array.fromHex(fields.spanId));
  frame.u8(fields.isSampled ? SAMPLED : 0);
  return frame.finish();
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
