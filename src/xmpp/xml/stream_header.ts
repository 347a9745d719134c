import { textOf } from "./ascii_interner.ts";
import { decodeValue } from "./attribute_value.ts";
import { defaultNamespace, type NamespaceScope } from "./namespace_scope.ts";
import { failScan } from "./scan_failure.ts";
import type { StreamHeader } from "./scanner_types.ts";
import { SPAN, type TagScanner } from "./tag_scanner.ts";

/**
 * Largest stream header in bytes; an honest one has about 200. Its declarations go into every stanza
 * that uses them.
 */
export const MAX_HEADER_BYTES = 4096;

/** Reads a stream header (RFC 6120 §4.7) and brings its namespaces into force. */
export function readStreamHeader(
  bytes: Uint8Array,
  tag: TagScanner,
  scope: NamespaceScope,
): StreamHeader {
  scope.reset();
  if (tag.hasPrefixes) scope.enter(bytes, tag);
  const contentNamespace = tag.xmlnsIndex === -1 ? "" : defaultNamespace(bytes, tag);
  const values = new Map<string, string>();
  for (let at = 0; at < tag.count * SPAN; at += SPAN) {
    const name = textOf(bytes, tag.spans[at]!, tag.spans[at + 1]!);
    values.set(name, decodeValue(bytes, tag.spans[at + 3]!, tag.spans[at + 4]!));
  }
  const { colon } = tag;
  const prefix = colon === -1 ? "" : textOf(bytes, tag.nameStart, colon);
  return {
    name: textOf(bytes, colon === -1 ? tag.nameStart : colon + 1, tag.nameEnd),
    namespace: prefix === "" ? contentNamespace : scope.resolve(prefix),
    contentNamespace,
    to: values.get("to"),
    from: values.get("from"),
    id: values.get("id"),
    version: values.get("version"),
    lang: values.get("xml:lang"),
    prefixes: scope.adoptHeader(contentNamespace),
  };
}

/** Throws for a stream header, or the beginning of one, that is too long. */
export function refuseLongHeader(bytes: number): void {
  if (bytes <= MAX_HEADER_BYTES) return;
  failScan("policy-violation", `a stream header of more than ${MAX_HEADER_BYTES} bytes`);
}
