import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import { STANZA_ERROR_NAMESPACE } from "../stanza/stanza_error.ts";
import { streamErrorContent } from "../stream/stream_error.ts";
import { escapeValue } from "../xml/escape.ts";

/** XEP-0198 §2. */
export const SM_NAMESPACE = "urn:xmpp:sm:3";

/** The stream feature. */
export const SM_FEATURE_XML = `<sm xmlns='${SM_NAMESPACE}'/>`;

/** `<r/>`: asks for an acknowledgement. */
export const REQUEST_XML = `<r xmlns='${SM_NAMESPACE}'/>`;

/** `<a/>`. */
export function ackXml(h: number): string {
  return `<a xmlns='${SM_NAMESPACE}' h='${h}'/>`;
}

/** `<enabled/>`; without `resumption` the stream cannot be resumed. */
export function enabledXml(
  resumption: { readonly id: string; readonly maxSeconds: number } | undefined,
): string {
  if (resumption === undefined) return `<enabled xmlns='${SM_NAMESPACE}'/>`;
  const { id, maxSeconds } = resumption;
  return `<enabled xmlns='${SM_NAMESPACE}' id='${id}' resume='true' max='${maxSeconds}'/>`;
}

export function resumedXml(previd: string, h: number): string {
  return `<resumed xmlns='${SM_NAMESPACE}' previd='${escapeValue(previd)}' h='${h}'/>`;
}

/** `<failed/>`; `h` is the handled count of a stream that can no longer be resumed (§5). */
export function failedXml(condition: StanzaErrorCondition, h?: number): string {
  const handled = h === undefined ? "" : ` h='${h}'`;
  return `<failed xmlns='${SM_NAMESPACE}'${handled}>` +
    `<${condition} xmlns='${STANZA_ERROR_NAMESPACE}'/></failed>`;
}

/** Content of `<stream:error/>` for a client that acknowledges more than it was sent (§4). */
export function handledTooHighContent(h: number, sentCount: number): string {
  return streamErrorContent("undefined-condition") +
    `<handled-count-too-high xmlns='${SM_NAMESPACE}' h='${h}' send-count='${sentCount}'/>`;
}
