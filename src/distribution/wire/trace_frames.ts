import type { StanzaKind, StanzaType } from "../../xmpp/mod.ts";
import type { TraceDetails, TraceStep } from "../mod.ts";
import { TRACE_STEPS } from "../mod.ts";
import { FrameReader } from "./frame_reader.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { FrameWriter } from "./frame_writer.ts";
import { decodeStanzaClass, encodeStanzaClass } from "./stanza_code.ts";

/** Largest TRACE, TRACING or TRACED frame. */
export const MAX_TRACE_BYTES = 8_192;

const MAX_JID_BYTES = 3_071;
const MAX_PLACE_BYTES = 1_023;
const MAX_WORDS_BYTES = 128;

/** Request to follow the stanzas from and to an address, or to follow them no longer. */
export interface TraceFields {
  /** The asking process's number for the trace, from 1. */
  readonly trace: number;
  /** Milliseconds for which the trace is wanted; 0 ends it. */
  readonly forMs: number;
  /** Bare JID, full JID or domain. */
  readonly address: string;
  /** Name of the operator who asks, for the log of the other side. */
  readonly who: string;
}

/** State of a trace at the node that was asked. The number on the wire is the index. */
export const TRACING_STATES = ["ended", "watching", "forbidden", "busy"] as const;

export type TracingState = typeof TRACING_STATES[number];

/** Answer to `TraceFields`. */
export interface TracingFields {
  readonly trace: number;
  readonly state: TracingState;
  /** Steps that were not told so far, as there were too many. */
  readonly missed: number;
}

/** One step of one stanza, as the node saw it that tells of it. */
export interface TracedFields extends TraceDetails {
  readonly trace: number;
  /** Wall-clock microseconds. */
  readonly atUs: number;
  /** Id of the stanza, as in its STANZA frame. */
  readonly process: number;
  readonly sequence: number;
  readonly kind: StanzaKind;
  readonly type: StanzaType;
  readonly from: string;
  readonly to: string;
  /** Length of the stanza. */
  readonly stanzaBytes: number;
  readonly step: TraceStep;
}

/** Encodes a TRACE frame. */
export function traceFrame(fields: TraceFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.trace);
  frame.u53(fields.trace);
  frame.u32(fields.forMs);
  frame.text(fields.address, MAX_JID_BYTES);
  frame.text(shortened(fields.who), MAX_WORDS_BYTES);
  return frame.finish();
}

/**
 * Reads the TRACE frame at [`start`, `end`).
 * @throws FrameError
 */
export function decodeTrace(buffer: Uint8Array, start: number, end: number): TraceFields {
  const frame = new FrameReader("TRACE", buffer, { start, end });
  return {
    trace: frame.u53(1),
    forMs: frame.u32(),
    address: frame.text(MAX_JID_BYTES, 1),
    who: frame.text(MAX_WORDS_BYTES),
  };
}

/** Encodes a TRACING frame. */
export function tracingFrame({ trace, state, missed }: TracingFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.tracing);
  frame.u53(trace);
  frame.u8(TRACING_STATES.indexOf(state));
  frame.u53(missed);
  return frame.finish();
}

/**
 * Reads the TRACING frame at [`start`, `end`). An unknown state reads as `ended`.
 * @throws FrameError
 */
export function decodeTracing(buffer: Uint8Array, start: number, end: number): TracingFields {
  const frame = new FrameReader("TRACING", buffer, { start, end });
  return {
    trace: frame.u53(1),
    state: TRACING_STATES[frame.u8()] ?? "ended",
    missed: frame.u53(),
  };
}

/** Encodes a TRACED frame. A reason that is too long is cut. */
export function tracedFrame(fields: TracedFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.traced);
  frame.u53(fields.trace);
  frame.u53(fields.atUs);
  frame.u53(fields.process);
  frame.u53(fields.sequence);
  frame.u8(encodeStanzaClass(fields.kind, fields.type));
  frame.u32(fields.stanzaBytes);
  frame.text(fields.from, MAX_JID_BYTES);
  frame.text(fields.to, MAX_JID_BYTES);
  frame.u8(TRACE_STEPS.indexOf(fields.step));
  frame.text(fields.place ?? "", MAX_PLACE_BYTES);
  frame.text(shortened(fields.source ?? ""), MAX_WORDS_BYTES);
  frame.text(shortened(fields.reason ?? ""), MAX_WORDS_BYTES);
  frame.u53(fields.lane ?? 0);
  frame.u53(fields.number ?? 0);
  frame.u32(fields.retry ?? 0);
  frame.u53(fields.waitMs ?? 0);
  return frame.finish();
}

/**
 * Reads the TRACED frame at [`start`, `end`). An unknown step reads as `other`.
 * @throws FrameError
 */
export function decodeTraced(buffer: Uint8Array, start: number, end: number): TracedFields {
  const frame = new FrameReader("TRACED", buffer, { start, end });
  const [trace, atUs, process, sequence] = [frame.u53(1), frame.u53(), frame.u53(1), frame.u53()];
  const known = decodeStanzaClass(frame.u8()) ?? frame.fail("its kind is not assigned");
  const stanzaBytes = frame.u32();
  const [from, to] = [frame.text(MAX_JID_BYTES, 1), frame.text(MAX_JID_BYTES, 1)];
  const step = TRACE_STEPS[frame.u8()] ?? "other";
  const place = frame.text(MAX_PLACE_BYTES) || undefined;
  const source = frame.text(MAX_WORDS_BYTES) || undefined;
  const reason = frame.text(MAX_WORDS_BYTES) || undefined;
  const lane = frame.u53() || undefined;
  const number = frame.u53() || undefined;
  const retry = frame.u32() || undefined;
  const waitMs = frame.u53() || undefined;
  return {
    trace,
    atUs,
    process,
    sequence,
    ...known,
    stanzaBytes,
    from,
    to,
    step,
    place,
    source,
    reason,
    lane,
    number,
    retry,
    waitMs,
  };
}

/** Cuts words so that they fit, whatever their characters. */
function shortened(words: string): string {
  const most = Math.floor(MAX_WORDS_BYTES / 3);
  return words.length <= most ? words : words.slice(0, most).toWellFormed();
}
