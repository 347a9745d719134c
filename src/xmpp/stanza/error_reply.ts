import type { Jid } from "../jid/jid.ts";
import { isReply, type Stanza } from "./stanza.ts";
import { writtenId } from "./stanza_attributes.ts";
import {
  STANZA_ERROR_NAMESPACE,
  STANZA_ERROR_TYPES,
  type StanzaErrorCondition,
} from "./stanza_error.ts";
import { escapeText, escapeValue } from "../xml/escape.ts";
import { serialize } from "../xml/serialize.ts";
import type { XmlElement } from "../xml/xml_element.ts";

const ENCODER = new TextEncoder();

export interface ErrorReplyOptions {
  /** Text for people, in English; never content of the stanza. */
  readonly text?: string;
  /** Entity that found the error, if it is not the stanza's recipient (RFC 6120 §8.3.2). */
  readonly by?: Jid;
  /** Condition that the application adds (RFC 6120 §8.3.4). */
  readonly detail?: XmlElement;
}

/**
 * Returns the error stanza that answers `stanza` (RFC 6120 §8.3.1): addresses swapped, the same `id`
 * unless it is longer than `MAX_ID_BYTES`, without the payload. Returns undefined where no error is
 * allowed: for an error or result, and for presence that only fails to find a recipient (RFC 6121 §8.5).
 */
export function errorReply(
  stanza: Stanza,
  condition: StanzaErrorCondition,
  options: ErrorReplyOptions = {},
): Stanza | undefined {
  if (isReply(stanza) || isSilentPresence(stanza, condition)) return undefined;
  const id = writtenId(stanza);
  const by = options.by === undefined ? "" : ` by='${escapeValue(options.by.text)}'`;
  const text = options.text === undefined
    ? ""
    : `<text xmlns='${STANZA_ERROR_NAMESPACE}' xml:lang='en'>${escapeText(options.text)}</text>`;
  const detail = options.detail === undefined ? "" : serialize(options.detail);
  const bytes = ENCODER.encode(
    `<${stanza.kind} from='${escapeValue(stanza.to.text)}' to='${escapeValue(stanza.from.text)}'` +
      `${id === undefined ? "" : ` id=${id}`} type='error'>` +
      `<error type='${STANZA_ERROR_TYPES[condition]}'${by}>` +
      `<${condition} xmlns='${STANZA_ERROR_NAMESPACE}'/>${text}${detail}</error></${stanza.kind}>`,
  );
  return { kind: stanza.kind, type: "error", from: stanza.to, to: stanza.from, bytes };
}

/**
 * True for presence that is no request. Nobody expects an answer when it goes to a place without
 * sessions (RFC 6121 §8.5.1, §8.5.2.2, §8.5.3.2) or says goodbye.
 */
function isSilentPresence(stanza: Stanza, condition: StanzaErrorCondition): boolean {
  if (stanza.kind !== "presence") return false;
  switch (stanza.type) {
    case "unavailable":
    case "probe":
      return true;
    case "available":
      return condition === "service-unavailable" || condition === "recipient-unavailable";
    default:
      return false;
  }
}
