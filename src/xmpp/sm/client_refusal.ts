import { STREAM_ERROR_NAMESPACE } from "../stream/stream_error.ts";
import { findChild, scannedSource } from "../xml/child_elements.ts";
import { STREAM_NAMESPACE } from "../xml/namespaces.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";

/**
 * Conditions of a stream error by which a client says that it cannot read or accept a stanza it was sent
 * (RFC 6120 §4.9.3; the last is RFC 3920's). Others, such as `conflict`, say nothing about a stanza.
 */
const CONDITIONS = [
  "bad-format",
  "bad-namespace-prefix",
  "invalid-namespace",
  "invalid-xml",
  "not-well-formed",
  "restricted-xml",
  "undefined-condition",
  "unsupported-encoding",
  "unsupported-feature",
  "unsupported-stanza-type",
  "xml-not-well-formed",
] as const;

/** True for an element by which a peer ends its stream with an error. */
export function isStreamError({ name, namespace }: ScannedElement): boolean {
  return name === "error" && namespace === STREAM_NAMESPACE;
}

/** True for a stream error that refuses a stanza the client was sent. */
export function isRefusal(error: ScannedElement): boolean {
  const source = scannedSource(error);
  return CONDITIONS.some((each) => findChild(source, each, STREAM_ERROR_NAMESPACE) !== undefined);
}
