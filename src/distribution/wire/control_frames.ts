import { malformed } from "./frame_error.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { readU16, readU32, readU53, writeU16, writeU32, writeU53 } from "./integers.ts";
import { maxTextBytes, readText, writeText } from "./text.ts";

/** Largest PING, PONG, GOODBYE, RETIRE, WRITTEN or SLOW frame. */
export const MAX_CONTROL_BYTES = 1024;

const MAX_DETAIL_BYTES = 512;

/** Reason in GOODBYE why a link is closed; an unknown number reads as `other`. */
export type GoodbyeReason =
  | "other"
  | "leaving"
  | "version"
  | "identity"
  | "malformed"
  | "too-large"
  | "timeout"
  | "busy"
  | "host-conflict"
  | "number-gap"
  | "superseded"
  | "endpoint-gone"
  | "overload";

/** The number on the wire is the index; values are part of the protocol and never change. */
const REASONS: readonly GoodbyeReason[] = [
  "other",
  "leaving",
  "version",
  "identity",
  "malformed",
  "too-large",
  "timeout",
  "busy",
  "host-conflict",
  "number-gap",
  "superseded",
  "endpoint-gone",
  "overload",
];

/** The last frame on a link that is closed in order. */
export interface Goodbye {
  readonly reason: GoodbyeReason;
  /** For the log of the other side; at most 512 bytes, cut when longer. */
  readonly detail: string;
}

/**
 * Encodes a PING frame; the PONG that answers it carries the same `token`, an integer below 2^53.
 */
export function pingFrame(token: number): Uint8Array {
  return tokenFrame(FRAME_TYPE.ping, token);
}

export function pongFrame(token: number): Uint8Array {
  return tokenFrame(FRAME_TYPE.pong, token);
}

/** Bytes of a WRITTEN frame. */
export const WRITTEN_BYTES = 13;

/**
 * Encodes a WRITTEN frame into the first `WRITTEN_BYTES` of `target`: the STANZA frames after it
 * were written at `wallUs`, wall-clock microseconds below 2^53. The caller reuses one buffer, so
 * that a write costs no allocation.
 */
export function encodeWritten(target: Uint8Array, wallUs: number): void {
  writeU32(target, 0, WRITTEN_BYTES - 4);
  target[4] = FRAME_TYPE.written;
  writeU53(target, 5, wallUs);
}

/**
 * Reads the time of the WRITTEN frame at [`start`, `end`), in wall-clock microseconds.
 * @throws FrameError when it has no time below 2^53
 */
export function decodeWritten(buffer: Uint8Array, start: number, end: number): number {
  const wallUs = end - start >= WRITTEN_BYTES ? readU53(buffer, start + 5) : undefined;
  if (wallUs === undefined) throw malformed("WRITTEN", "it has no time below 2^53");
  return wallUs;
}

function tokenFrame(type: number, token: number): Uint8Array {
  const frame = new Uint8Array(13);
  writeU32(frame, 0, 9);
  frame[4] = type;
  writeU53(frame, 5, token);
  return frame;
}

/** Reads the token of the PING or PONG frame at [`start`, `end`). */
export function decodeToken(buffer: Uint8Array, start: number, end: number): number {
  const token = end - start >= 13 ? readU53(buffer, start + 5) : undefined;
  if (token === undefined) throw malformed("PING or PONG", "it has no token below 2^53");
  return token;
}

/** Encodes a GOODBYE frame. */
export function goodbyeFrame(goodbye: Goodbye): Uint8Array {
  let { detail } = goodbye;
  if (maxTextBytes(detail) > MAX_DETAIL_BYTES) {
    detail = detail.slice(0, Math.floor(MAX_DETAIL_BYTES / 3)).toWellFormed();
  }
  const frame = new Uint8Array(9 + maxTextBytes(detail));
  frame[4] = FRAME_TYPE.goodbye;
  writeU16(frame, 5, Math.max(0, REASONS.indexOf(goodbye.reason)));
  const end = writeText(frame, 9, detail);
  writeU16(frame, 7, end - 9);
  writeU32(frame, 0, end - 4);
  return frame.subarray(0, end);
}

/** Reads the GOODBYE frame at [`start`, `end`). */
export function decodeGoodbye(buffer: Uint8Array, start: number, end: number): Goodbye {
  const detailEnd = end - start >= 9 ? start + 9 + readU16(buffer, start + 7) : end + 1;
  if (detailEnd > end) throw malformed("GOODBYE", "it is cut short");
  const detail = readText(buffer, start + 9, detailEnd);
  if (detail === undefined) throw malformed("GOODBYE", "its detail is not UTF-8");
  return { reason: REASONS[readU16(buffer, start + 5)] ?? "other", detail };
}

/**
 * Encodes a RETIRE frame: the dialler has moved the stanzas of `lane` to the lane of this frame.
 * Unread stanzas from `lane`'s connection must not be passed on after it.
 */
export function retireFrame(lane: number): Uint8Array {
  const frame = new Uint8Array(9);
  writeU32(frame, 0, 5);
  frame[4] = FRAME_TYPE.retire;
  writeU32(frame, 5, lane);
  return frame;
}

/** Reads the lane of the RETIRE frame at [`start`, `end`). */
export function decodeRetire(buffer: Uint8Array, start: number, end: number): number {
  if (end - start < 9) throw malformed("RETIRE", "it is cut short");
  return readU32(buffer, start + 5);
}

/** Wish of a node that has no room for a stanza. */
export interface Slow {
  /** Number of the stanza, whose sender is to be slowed down. */
  readonly number: number;
  /** True when that is over. */
  readonly isOver: boolean;
}

const SLOW_BYTES = 14;

/** Encodes a SLOW frame. */
export function slowFrame({ number, isOver }: Slow): Uint8Array {
  const frame = new Uint8Array(SLOW_BYTES);
  writeU32(frame, 0, SLOW_BYTES - 4);
  frame[4] = FRAME_TYPE.slow;
  writeU53(frame, 5, number);
  frame[13] = isOver ? 1 : 0;
  return frame;
}

/**
 * Reads the SLOW frame at [`start`, `end`).
 * @throws FrameError when it is cut short, or has no number from 1 to 2^53 - 1
 */
export function decodeSlow(buffer: Uint8Array, start: number, end: number): Slow {
  if (end - start < SLOW_BYTES) throw malformed("SLOW", "it is cut short");
  const number = readU53(buffer, start + 5);
  if (number === undefined || number === 0) throw malformed("SLOW", "it has no number below 2^53");
  return { number, isOver: buffer[start + 13] !== 0 };
}
