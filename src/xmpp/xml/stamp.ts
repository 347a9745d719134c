import type { SlabAllocator } from "../../base/mod.ts";
import { rewriteContent } from "./content_rewriter.ts";
import { encodeAttribute } from "./escape.ts";
import { CLIENT_NAMESPACE, STREAM_NAMESPACE } from "./namespaces.ts";
import { failScan } from "./scan_failure.ts";
import type { ScannedElement } from "./scanner_types.ts";
import { scanSelfContained } from "./self_contained.ts";

/**
 * Bytes by which a stanza may outgrow its received form, for the stamped attributes and its namespace
 * declarations. A link's frame has room for them.
 */
export const MAX_GROWTH_BYTES = 16_384;

/** Up to this many bytes a loop is faster than a view. */
const LOOPED_BYTES = 16;

const FRAMED_XMLNS = encodeAttribute("xmlns", CLIENT_NAMESPACE);

/** Additions of the server to a stanza; each attribute is made by `encodeAttribute`. */
export interface StampOptions {
  /** Memory for the result. */
  readonly slab: SlabAllocator;
  /** Replaces the peer's `from`; without it the peer's stays. */
  readonly from?: Uint8Array | undefined;
  /** Added to a stanza that has no `to`. */
  readonly to?: Uint8Array | undefined;
  /** Lets `to` replace any `to` of the peer's. @default false */
  readonly replacesTo?: boolean;
  /** `xml:lang` of the stream, added to a stanza that has none (RFC 6120 §8.1.5). */
  readonly lang?: Uint8Array | undefined;
}

/**
 * Returns the self-contained bytes of a stanza (see `Stanza`): without the content namespace, with the
 * server's stamps, and with a declaration for every prefix that only the stream header knew.
 *
 * @throws StreamFailure `bad-namespace-prefix` where the stanza uses the stream's own prefix,
 *   `policy-violation` where it would grow by more than `MAX_GROWTH_BYTES`
 */
export function stampStanza(element: ScannedElement, options: StampOptions): Uint8Array {
  for (const binding of element.inheritedPrefixes) {
    if (binding.namespace === STREAM_NAMESPACE) {
      failScan("bad-namespace-prefix", "the stream's own namespace inside a stanza");
    }
  }
  if (element.prefix !== "" || element.namesContentNamespace) {
    return stampRewritten(element, options);
  }

  const inserted = insertions(element, options);
  for (const { prefix, namespace } of element.inheritedPrefixes) {
    inserted.push(encodeAttribute(`xmlns:${prefix}`, namespace));
  }
  const removedFrom = options.from === undefined ? -1 : element.attributeIndex("from");
  const removedTo = options.replacesTo === true ? element.attributeIndex("to") : -1;
  const removedXmlns = element.attributeIndex("xmlns");
  let length = element.end - element.start;
  for (const piece of inserted) length += piece.length;
  for (let i = 0; i < element.attributeCount; i++) {
    if (i !== removedFrom && i !== removedXmlns && i !== removedTo) continue;
    length -= removedEnd(element, i) - removedStart(element, i);
  }
  refuseGrowth(element, length);

  const out = options.slab.allocate(length);
  const { buffer } = element;
  let at = copy(out, 0, buffer, element.start, element.nameEnd);
  for (const piece of inserted) {
    out.set(piece, at);
    at += piece.length;
  }
  let from = element.nameEnd;
  for (let i = 0; i < element.attributeCount; i++) {
    if (i !== removedFrom && i !== removedXmlns && i !== removedTo) continue;
    at = copy(out, at, buffer, from, removedStart(element, i));
    from = removedEnd(element, i);
  }
  copy(out, at, buffer, from, element.end);
  return element.inheritedPrefixes.length === 0 ? out : checked(out);
}

/** Returns a self-contained stanza as an RFC 7395 message, with its namespace declared (§3.3.3). */
export function frameStanza(bytes: Uint8Array): Uint8Array {
  let nameEnd = 1;
  while (bytes[nameEnd]! > 0x60 && bytes[nameEnd]! < 0x7b) nameEnd++;
  const framed = new Uint8Array(bytes.length + FRAMED_XMLNS.length);
  copy(framed, 0, bytes, 0, nameEnd);
  framed.set(FRAMED_XMLNS, nameEnd);
  copy(framed, nameEnd + FRAMED_XMLNS.length, bytes, nameEnd, bytes.length);
  return framed;
}

function refuseGrowth(element: ScannedElement, length: number): void {
  if (length <= element.end - element.start + MAX_GROWTH_BYTES) return;
  failScan("policy-violation", `a stanza that grows by more than ${MAX_GROWTH_BYTES} bytes`);
}

/** Returns the bytes to insert after the root's name; mostly one piece. */
function insertions(element: ScannedElement, options: StampOptions): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  if (options.from !== undefined) pieces.push(options.from);
  if (
    options.to !== undefined &&
    (options.replacesTo === true || element.attributeIndex("to") === -1)
  ) {
    pieces.push(options.to);
  }
  if (options.lang !== undefined && element.attributeIndex("xml:lang") === -1) {
    pieces.push(options.lang);
  }
  return pieces;
}

/** Returns the start of an attribute to remove, including the white space before it. */
function removedStart(element: ScannedElement, index: number): number {
  let start = element.attributeStart(index);
  while (element.buffer[start - 1]! <= 0x20) start--;
  return start;
}

function removedEnd(element: ScannedElement, index: number): number {
  return element.valueEnd(index) + 1;
}

function copy(
  to: Uint8Array,
  at: number,
  from: Uint8Array,
  start: number,
  end: number,
): number {
  const length = end - start;
  if (length > LOOPED_BYTES) to.set(from.subarray(start, end), at);
  else for (let i = 0; i < length; i++) to[at + i] = from[start + i]!;
  return at + length;
}

/** Stamps a stanza that names the content namespace by a prefix or below its root, which costs more. */
function stampRewritten(element: ScannedElement, options: StampOptions): Uint8Array {
  const removed = new Set<string>();
  if (options.from !== undefined) removed.add("from");
  if (options.replacesTo === true) removed.add("to");
  const bytes = rewriteContent(element, {
    inserted: insertions(element, options),
    removed,
    maxBytes: element.end - element.start + MAX_GROWTH_BYTES,
  });
  return options.slab.copy(checked(bytes));
}

/** Returns the bytes of a rewritten stanza after checking that a link would accept them. */
function checked(bytes: Uint8Array): Uint8Array {
  if (scanSelfContained(bytes) !== undefined) return bytes;
  failScan("not-well-formed", "a stanza whose namespaces cannot be made explicit");
}
