import type { ResponseHeader } from "../stream/stream_transport.ts";
import { responseAttributes } from "../stream/response_header.ts";
import { FRAMING_NAMESPACE, STREAM_NAMESPACE } from "../xml/namespaces.ts";

/** Subprotocol that a client must request when it opens a WebSocket (RFC 7395 §3.1). */
export const XMPP_SUBPROTOCOL = "xmpp";

/** Returns `<open/>`, the header of a stream (RFC 7395 §3.3.2). */
export function openMessage(header: ResponseHeader): string {
  return `<open xmlns='${FRAMING_NAMESPACE}'${responseAttributes(header)}/>`;
}

/** Returns `<close/>`, the end of a stream. */
export function closeMessage(): string {
  return `<close xmlns='${FRAMING_NAMESPACE}'/>`;
}

/** Returns `<stream:features/>` or `<stream:error/>`, which declare their prefix because no header does. */
export function streamElementMessage(name: "features" | "error", content: string): string {
  const start = `<stream:${name} xmlns:stream='${STREAM_NAMESPACE}'`;
  return content === "" ? `${start}/>` : `${start}>${content}</stream:${name}>`;
}
