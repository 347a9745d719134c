import { TagScanner } from "./tag_scanner.ts";

/** The start tag that `scanRoot` has read last. Nothing in it is read after the next call of that. */
export const ROOT_TAG = new TagScanner();

let scanned: Uint8Array | undefined;
let after = -1;

/**
 * Reads the start tag of the element that `bytes` are, into `ROOT_TAG`. The same array costs nothing when
 * it is asked for again: several readers in a row look at one stanza. Nobody changes a stanza's bytes.
 *
 * @returns the position after the tag, or -1 when the tag is cut off
 * @throws StreamFailure
 */
export function scanRoot(bytes: Uint8Array): number {
  if (bytes === scanned) return after;
  scanned = undefined;
  ROOT_TAG.nameEnd = bytes.length; // stays if not even a name can be read
  after = ROOT_TAG.scan(bytes, 1, bytes.length, Number.MAX_SAFE_INTEGER);
  scanned = bytes;
  return after;
}
