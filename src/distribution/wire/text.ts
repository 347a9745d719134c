const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Longest text that is worth reading byte by byte; longer ones go through the decoder. */
const SHORT_TEXT_BYTES = 64;

/** Bytes that `text` can take at most in UTF-8. */
export function maxTextBytes(text: string): number {
  return text.length * 3;
}

/** Bytes that `text` takes in UTF-8. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit <= 0x7f) continue;
    // a surrogate pair is two units and four bytes
    bytes += unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** Writes `text` as UTF-8 at `at`, which must have `maxTextBytes` of room; returns the end. */
export function writeText(target: Uint8Array, at: number, text: string): number {
  const length = text.length;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return at + ENCODER.encodeInto(text, target.subarray(at)).written;
    target[at + i] = unit;
  }
  return at + length;
}

/** Reads UTF-8; undefined when the bytes are not. */
export function readText(bytes: Uint8Array, start: number, end: number): string | undefined {
  if (end - start <= SHORT_TEXT_BYTES) {
    let text = "";
    let at = start;
    for (; at < end; at++) {
      const unit = bytes[at]!;
      if (unit > 0x7f) break;
      text += String.fromCharCode(unit);
    }
    if (at === end) return text;
  }
  try {
    return DECODER.decode(bytes.subarray(start, end));
  } catch {
    return undefined; // not UTF-8: the caller names the field
  }
}
