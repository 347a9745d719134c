/** Longer texts are decoded anew each time. */
const MAX_INTERNED_BYTES = 64;
/** Number of remembered texts; a power of two. */
const SLOTS = 512;

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

const slots: string[] = new Array<string>(SLOTS).fill("");

/**
 * Returns the text of valid UTF-8 bytes. Names, namespaces and small values come again and again, so a
 * short ASCII text that was seen lately is returned without making a new string.
 */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  if (length === 0) return "";
  if (length > MAX_INTERNED_BYTES) return UTF8.decode(bytes.subarray(start, end));
  let hash = length;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
  const slot = (hash ^ (hash >>> 12)) & (SLOTS - 1);
  const known = slots[slot]!;
  if (known.length === length && isSame(known, bytes, start)) return known;
  const text = UTF8.decode(bytes.subarray(start, end));
  if (text.length === length) slots[slot] = text;
  return text;
}

/** True when the bytes [`start`, `end`) are the ASCII text `text`. */
export function isText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  return end - start === text.length && isSame(text, bytes, start);
}

/** Compares with `text`, which is ASCII, so that one byte is one character of it. */
function isSame(text: string, bytes: Uint8Array, start: number): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== bytes[start + i]) return false;
  }
  return true;
}
