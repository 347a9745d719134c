import { escapeText } from "../xml/escape.ts";
import { STREAM_NAMESPACE } from "../xml/namespaces.ts";

/** The defined conditions of a stream error (RFC 6120 §4.9.3). */
export type StreamErrorCondition =
  | "bad-format"
  | "bad-namespace-prefix"
  | "conflict"
  | "connection-timeout"
  | "host-gone"
  | "host-unknown"
  | "improper-addressing"
  | "internal-server-error"
  | "invalid-from"
  | "invalid-namespace"
  | "invalid-xml"
  | "not-authorized"
  | "not-well-formed"
  | "policy-violation"
  | "remote-connection-failed"
  | "reset"
  | "resource-constraint"
  | "restricted-xml"
  | "see-other-host"
  | "system-shutdown"
  | "undefined-condition"
  | "unsupported-encoding"
  | "unsupported-feature"
  | "unsupported-stanza-type"
  | "unsupported-version";

/** RFC 6120 §4.9.3. */
export const STREAM_ERROR_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-streams";

const ENCODER = new TextEncoder();

/**
 * Returns the content of `<stream:error/>` for `condition`. `text` is for people, in English; never
 * input of the peer.
 */
export function streamErrorContent(condition: StreamErrorCondition, text?: string): string {
  const explanation = text === undefined
    ? ""
    : `<text xmlns='${STREAM_ERROR_NAMESPACE}' xml:lang='en'>${escapeText(text)}</text>`;
  return `<${condition} xmlns='${STREAM_ERROR_NAMESPACE}'/>${explanation}`;
}

/**
 * Returns the whole stream error (RFC 6120 §4.9.2), for a stream whose header was sent. It declares the
 * prefix itself, so that it is also a valid message of RFC 7395.
 */
export function streamError(condition: StreamErrorCondition, text?: string): Uint8Array {
  return ENCODER.encode(
    `<stream:error xmlns:stream='${STREAM_NAMESPACE}'>${
      streamErrorContent(condition, text)
    }</stream:error>`,
  );
}
