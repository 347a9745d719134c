import { malformed } from "./frame_error.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { readU16, readU32, readU53, writeU16, writeU32, writeU53 } from "./integers.ts";

/** State of one lane as the accepting side reports it. */
export interface Ack {
  /** Every number up to this one has been received. */
  readonly received: number;
  /** Every number up to this one is settled: its fate is final. */
  readonly settled: number;
  /**
   * Bytes of STANZA frames that the dialler may have sent on this connection since it was opened,
   * lengths and types included. Never falls.
   */
  readonly creditBytes: number;
  /**
   * Numbers above `settled` that are settled too: ascending, apart from each other, and including
   * all those that no earlier ACK on this connection has named.
   */
  readonly ranges: readonly SettledRange[];
}

/** `count` numbers from `first` on. */
export interface SettledRange {
  readonly first: number;
  readonly count: number;
}

/** Ranges in one ACK; further ones go into another. */
export const MAX_ACK_RANGES = 1024;

const FIXED_BYTES = 31;
const RANGE_BYTES = 8;

/** Largest ACK frame. */
export const MAX_ACK_BYTES = FIXED_BYTES + MAX_ACK_RANGES * RANGE_BYTES;

/** Encodes an ACK frame; `ranges` begin less than 2^32 above `settled`. */
export function ackFrame(ack: Ack): Uint8Array {
  const { ranges } = ack;
  if (ranges.length > MAX_ACK_RANGES) {
    throw new RangeError(`Cannot encode ACK of ${ranges.length} ranges: the limit is 1024`);
  }
  const frame = new Uint8Array(FIXED_BYTES + ranges.length * RANGE_BYTES);
  writeU32(frame, 0, frame.length - 4);
  frame[4] = FRAME_TYPE.ack;
  writeU53(frame, 5, ack.received);
  writeU53(frame, 13, ack.settled);
  writeU53(frame, 21, ack.creditBytes);
  writeU16(frame, 29, ranges.length);
  let at = FIXED_BYTES;
  for (const { first, count } of ranges) {
    writeU32(frame, at, first - ack.settled);
    writeU32(frame, at + 4, count);
    at += RANGE_BYTES;
  }
  return frame;
}

/**
 * Reads the ACK frame at [`start`, `end`).
 * @throws FrameError, also when a settled number is not received
 */
export function decodeAck(buffer: Uint8Array, start: number, end: number): Ack {
  if (end - start < FIXED_BYTES) throw malformed("ACK", "it is cut short");
  const received = readU53(buffer, start + 5);
  const settled = readU53(buffer, start + 13);
  const creditBytes = readU53(buffer, start + 21);
  if (received === undefined || settled === undefined || creditBytes === undefined) {
    throw malformed("ACK", "an integer is not below 2^53");
  }
  if (settled > received) throw malformed("ACK", "more is settled than received");
  const count = readU16(buffer, start + 29);
  if (count > MAX_ACK_RANGES || end - start < FIXED_BYTES + count * RANGE_BYTES) {
    throw malformed("ACK", `${count} ranges do not fit`);
  }
  const ranges: SettledRange[] = [];
  let last = settled;
  for (let i = 0, at = start + FIXED_BYTES; i < count; i++, at += RANGE_BYTES) {
    const range = { first: settled + readU32(buffer, at), count: readU32(buffer, at + 4) };
    // Ranges in order and apart cost their reader no more than the numbers that they settle.
    if (range.first <= last || range.count === 0) {
      throw malformed("ACK", "a range is empty or not behind the one before it");
    }
    last = range.first + range.count - 1;
    ranges.push(range);
  }
  if (last > received) throw malformed("ACK", "a range settles what is not received");
  return { received, settled, creditBytes, ranges };
}
