import { parseHandled } from "../sm/counter.ts";
import { readEnable } from "../sm/enable_request.ts";
import { SM_NAMESPACE } from "../sm/sm_xml.ts";
import { MAX_ID_BYTES } from "../stanza/stanza_attributes.ts";
import { stanzaKind } from "../stanza/stanza_parser.ts";
import type { ChildElement, ElementSource } from "../xml/child_elements.ts";
import { attributeOf, directText, findChild, scannedSource } from "../xml/child_elements.ts";
import { plainTextOf } from "../xml/plain_text.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import {
  BIND2_NAMESPACE,
  BIND_NAMESPACE,
  CARBONS_NAMESPACE,
  CLIENT_NAMESPACE,
  REGISTER_NAMESPACE,
  SASL2_NAMESPACE,
  SASL_NAMESPACE,
  TLS_NAMESPACE,
} from "../stream/namespaces.ts";
import { CSI_NAMESPACE } from "./held_presence.ts";
import type {
  InlineBind,
  InlineRequests,
  NegotiationEvent,
  ResumeRequest,
} from "./negotiation_events.ts";

/**
 * Largest `<resource/>` in bytes: room for 1023 bytes written as references, and more. The server may
 * choose another resource (§7.7.1).
 */
const MAX_RESOURCE_BYTES = 16_384;

/** Largest request to make an account in bytes. */
const MAX_CREATION_BYTES = 16_384;

/** RFC 9562 §5.4: a UUID of random bits. XEP-0388 §2.3 asks for such an id, which nobody can guess. */
const RANDOM_UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** RFC 6120 leaves no room for anything but the login. */
const NOTHING_INLINE: InlineRequests = { resume: undefined, bind: undefined };

/** Returns the meaning of an element that came before a resource was bound. */
export function readNegotiationEvent(element: ScannedElement): NegotiationEvent {
  switch (element.namespace) {
    case TLS_NAMESPACE:
      return element.name === "starttls" ? { kind: "starttls" } : { kind: "foreign" };
    case SASL_NAMESPACE:
      return readSasl(element);
    case SASL2_NAMESPACE:
      return readSasl2(element);
    case SM_NAMESPACE:
      return element.name !== "resume" ? { kind: "management" } : {
        kind: "resume",
        previd: element.attribute("previd"),
        h: parseHandled(element.attribute("h")),
      };
    case CLIENT_NAMESPACE:
      return element.name === "iq"
        ? readIq(element)
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
        profile: "sasl",
        mechanism: element.attribute("mechanism"),
        text: text === "" ? undefined : text,
        inline: NOTHING_INLINE,
      };
    }
    case "response":
      return { kind: "response", profile: "sasl", text: plainTextOf(element) };
    case "abort":
      return { kind: "abort", profile: "sasl" };
    default:
      return { kind: "foreign" };
  }
}

/** Reads an element of XEP-0388. What it does not know inside of `<authenticate/>` it ignores. */
function readSasl2(element: ScannedElement): NegotiationEvent {
  switch (element.name) {
    case "authenticate": {
      const source = scannedSource(element);
      const first = findChild(source, "initial-response", SASL2_NAMESPACE);
      return {
        kind: "auth",
        profile: "sasl2",
        mechanism: element.attribute("mechanism"),
        text: first && directText(first),
        inline: { resume: readInlineResume(source), bind: readInlineBind(source) },
      };
    }
    case "response":
      return { kind: "response", profile: "sasl2", text: plainTextOf(element) };
    case "abort":
      return { kind: "abort", profile: "sasl2" };
    default:
      return { kind: "foreign" };
  }
}

function readInlineResume(authenticate: ElementSource): ResumeRequest | undefined {
  const resume = findChild(authenticate, "resume", SM_NAMESPACE);
  return resume && {
    previd: attributeOf(resume, "previd"),
    h: parseHandled(attributeOf(resume, "h")),
  };
}

/** Reads a request by XEP-0386. An empty or overlong tag counts as none. */
function readInlineBind(authenticate: ElementSource): InlineBind | undefined {
  const bind = findChild(authenticate, "bind", BIND2_NAMESPACE);
  if (bind === undefined) return undefined;
  const tag = findChild(bind, "tag", BIND2_NAMESPACE);
  const enable = findChild(bind, "enable", SM_NAMESPACE);
  const agent = findChild(authenticate, "user-agent", SASL2_NAMESPACE);
  const clientId = agent && attributeOf(agent, "id")?.toLowerCase();
  return {
    tag: tag && readResource(tag),
    clientId: clientId !== undefined && RANDOM_UUID.test(clientId) ? clientId : undefined,
    enable: enable && readEnable((name) => attributeOf(enable, name)),
    wantsCarbons: findChild(bind, "enable", CARBONS_NAMESPACE) !== undefined,
    isInactive: findChild(bind, "inactive", CSI_NAMESPACE) !== undefined,
  };
}

function readIq(iq: ScannedElement): NegotiationEvent {
  const type = iq.attribute("type");
  if (type !== "get" && type !== "set") return { kind: "stanza" };
  const query = findChild(scannedSource(iq), "query", REGISTER_NAMESPACE);
  if (query !== undefined) return readCreation(iq, query, type);
  return type === "set" ? readBind(iq) : { kind: "stanza" };
}

/** Reads a request to make an account (XEP-0077 §3.1). */
function readCreation(
  iq: ScannedElement,
  query: ChildElement,
  type: "get" | "set",
): NegotiationEvent {
  const iqId = iq.attribute("id") ?? "";
  if (iqId.length > MAX_ID_BYTES) return { kind: "stanza" }; // the answer would repeat it
  const isShort = query.end - query.start <= MAX_CREATION_BYTES;
  const field = (name: string) => {
    const child = isShort ? findChild(query, name, REGISTER_NAMESPACE) : undefined;
    return child && directText(child);
  };
  return { kind: "create", iqId, type, username: field("username"), password: field("password") };
}

/**
 * Reads a bind request (RFC 6120 §7.6, §7.7). An empty resource counts as none, and so does one that no
 * JID can have.
 */
function readBind(iq: ScannedElement): NegotiationEvent {
  const bind = findChild(scannedSource(iq), "bind", BIND_NAMESPACE);
  if (bind === undefined) return { kind: "stanza" };
  const resource = findChild(bind, "resource", BIND_NAMESPACE);
  const iqId = iq.attribute("id") ?? "";
  if (iqId.length > MAX_ID_BYTES) return { kind: "stanza" }; // the answer would repeat it
  return { kind: "bind", iqId, resource: resource && readResource(resource) };
}

/** Returns the text of an element that holds a resource; undefined when it is empty or too long. */
function readResource(element: ChildElement): string | undefined {
  if (element.end - element.start > MAX_RESOURCE_BYTES) return undefined;
  const text = directText(element);
  return text === "" ? undefined : text;
}
