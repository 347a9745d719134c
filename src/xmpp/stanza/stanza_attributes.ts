import type { Stanza } from "./stanza.ts";
import { isText } from "../xml/ascii_interner.ts";
import { decodeValue } from "../xml/attribute_value.ts";
import { StreamFailure } from "../xml/scan_failure.ts";
import { ROOT_TAG as TAG, scanRoot } from "../xml/root_tag.ts";
import { SPAN } from "../xml/tag_scanner.ts";

const DECODER = new TextDecoder();

/**
 * Longest `id` in bytes as written. Answers repeat the `id`. A longer one would make an answer as long
 * as the stanza, and all waiting answers would cost as much.
 */
export const MAX_ID_BYTES = 1_024;

/** Returns the stanza's `id`; undefined when it has none. */
export function stanzaId(stanza: Stanza): string | undefined {
  const at = findAttribute(stanza.bytes, "id");
  return at === -1 ? undefined : decodeValue(stanza.bytes, TAG.spans[at + 3]!, TAG.spans[at + 4]!);
}

/** Returns the span of the stanza's `id` as written, without quotes; undefined when it has none. */
export function idSpan({ bytes }: Stanza): readonly [start: number, end: number] | undefined {
  const at = findAttribute(bytes, "id");
  return at === -1 ? undefined : [TAG.spans[at + 3]!, TAG.spans[at + 4]!];
}

/**
 * Returns the stanza's `id` as written, quotes included; undefined when it is too long for an answer to
 * repeat.
 */
export function writtenId(stanza: Stanza): string | undefined {
  const at = findAttribute(stanza.bytes, "id");
  if (at === -1 || TAG.spans[at + 4]! - TAG.spans[at + 3]! > MAX_ID_BYTES) return undefined;
  return DECODER.decode(stanza.bytes.subarray(TAG.spans[at + 3]! - 1, TAG.spans[at + 4]! + 1));
}

/**
 * Returns the span of the root's attribute, with the white space before it. Without the attribute, it
 * returns the place for it after the root's name.
 */
export function attributeSpan(stanza: Stanza, name: string): readonly [start: number, end: number] {
  const { bytes } = stanza;
  const at = findAttribute(bytes, name);
  if (at === -1) return [TAG.nameEnd, TAG.nameEnd];
  let start = TAG.spans[at]!;
  while (bytes[start - 1]! <= 0x20) start--;
  return [start, TAG.spans[at + 4]! + 1];
}

/** Returns the index of the root's attribute in `TAG.spans`, or -1. */
function findAttribute(bytes: Uint8Array, name: string): number {
  try {
    if (scanRoot(bytes) === -1) return -1;
  } catch (thrown) {
    // Bytes from another node may be anything; unreadable bytes have no attribute.
    if (thrown instanceof StreamFailure) return -1;
    throw thrown;
  }
  for (let at = 0; at < TAG.count * SPAN; at += SPAN) {
    if (isText(bytes, TAG.spans[at]!, TAG.spans[at + 1]!, name)) return at;
  }
  return -1;
}
