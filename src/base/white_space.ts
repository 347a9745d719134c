/**
 * Bytes of white space that are skipped where a client may write none and some clients do: after
 * `<starttls/>`, and before the header of a stream that follows another. The clients we know write one
 * line break.
 */
export const MAX_SKIPPED_SPACE_BYTES = 16;

/** Counts the bytes of XML white space (space, tab, line feed, carriage return) at the start of `bytes`. */
export function countLeadingSpace(bytes: Uint8Array): number {
  let count = 0;
  while (count < bytes.length && isSpace(bytes[count]!)) count++;
  return count;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}
