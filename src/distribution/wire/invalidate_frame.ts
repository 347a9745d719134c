import { FrameReader } from "./frame_reader.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { FrameWriter } from "./frame_writer.ts";

/** Largest INVALIDATE frame. */
export const MAX_INVALIDATE_BYTES = 65_536;

/** Bytes of the longest full JID: three parts of 1023 bytes and two separators. */
const MAX_KEY_BYTES = 3071;
/** Bytes of a frame up to which the longest key still fits. */
const FULL_BYTES = MAX_INVALIDATE_BYTES - MAX_KEY_BYTES - 2;
const COUNT_AT = 5;

/**
 * Encodes INVALIDATE frames with `keys` of the session table (JIDs, domains), whose entries caches
 * must drop; as many as the limit of one frame requires.
 */
export function invalidateFrames(keys: readonly string[]): readonly Uint8Array[] {
  const frames: Uint8Array[] = [];
  let next = 0;
  while (next < keys.length) {
    const frame = new FrameWriter(FRAME_TYPE.invalidate);
    const first = next;
    frame.u16(0);
    while (next < keys.length && frame.length <= FULL_BYTES) {
      frame.text(keys[next++]!, MAX_KEY_BYTES);
    }
    frame.patchU16(COUNT_AT, next - first);
    frames.push(frame.finish());
  }
  return frames;
}

/**
 * Reads the keys of the INVALIDATE frame at [`start`, `end`).
 * @throws FrameError
 */
export function decodeInvalidate(
  buffer: Uint8Array,
  start: number,
  end: number,
): readonly string[] {
  const frame = new FrameReader("INVALIDATE", buffer, { start, end });
  const keys: string[] = [];
  for (let left = frame.u16(); left > 0; left--) keys.push(frame.text(MAX_KEY_BYTES, 1));
  return keys;
}
