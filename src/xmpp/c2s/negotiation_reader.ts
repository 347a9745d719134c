import { parseHandled } from "../sm/counter.ts";
import { SM_NAMESPACE } from "../sm/sm_xml.ts";
import { MAX_ID_BYTES } from "../stanza/stanza_attributes.ts";
import { stanzaKind } from "../stanza/stanza_parser.ts";
import { directText, findChild, scannedSource } from "../xml/child_elements.ts";
import { plainTextOf } from "../xml/plain_text.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import {
  BIND_NAMESPACE,
  CLIENT_NAMESPACE,
  SASL_NAMESPACE,
  TLS_NAMESPACE,
} from "../stream/namespaces.ts";
import type { NegotiationEvent } from "./negotiation_events.ts";

/**
 * Largest `<resource/>` in bytes: room for 1023 bytes written as references, and more. The server may
 * choose another resource (§7.7.1).
 */
const MAX_RESOURCE_BYTES = 16_384;

/** Returns the meaning of an element that came before a resource was bound. */
export function readNegotiationEvent(element: ScannedElement): NegotiationEvent {
  switch (element.namespace) {
    case TLS_NAMESPACE:
      return element.name === "starttls" ? { kind: "starttls" } : { kind: "foreign" };
    case SASL_NAMESPACE:
      return readSasl(element);
    case SM_NAMESPACE:
      return element.name !== "resume" ? { kind: "management" } : {
        kind: "resume",
        previd: element.attribute("previd"),
        h: parseHandled(element.attribute("h")),
      };
    case CLIENT_NAMESPACE:
      return element.name === "iq" && element.attribute("type") === "set"
        ? readBind(element)
        : { kind: stanzaKind(element) === undefined ? "foreign" : "stanza" };
    default:
      return { kind: "foreign" };
  }
}

function readSasl(element: ScannedElement): NegotiationEvent {
  switch (element.name) {
    case "auth": {
      const text = plainTextOf(element);
      // RFC 6120 §6.4.2: no text means no initial response; an empty one is written "=".
      return {
        kind: "auth",
        mechanism: element.attribute("mechanism"),
        text: text === "" ? undefined : text,
      };
    }
    case "response":
      return { kind: "response", text: plainTextOf(element) };
    case "abort":
      return { kind: "abort" };
    default:
      return { kind: "foreign" };
  }
}

/**
 * Reads a bind request (RFC 6120 §7.6, §7.7). An empty resource counts as none, and so does one that no
 * JID can have.
 */
function readBind(iq: ScannedElement): NegotiationEvent {
  const bind = findChild(scannedSource(iq), "bind", BIND_NAMESPACE);
  if (bind === undefined) return { kind: "stanza" };
  const resource = findChild(bind, "resource", BIND_NAMESPACE);
  const isTooLong = resource !== undefined && resource.end - resource.start > MAX_RESOURCE_BYTES;
  const text = resource === undefined || isTooLong ? "" : directText(resource);
  const iqId = iq.attribute("id") ?? "";
  if (iqId.length > MAX_ID_BYTES) return { kind: "stanza" }; // the answer would repeat it
  return {
    kind: "bind",
    iqId,
    resource: text === "" ? undefined : text,
  };
}
