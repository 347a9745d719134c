import type { SlabAllocator } from "../base/mod.ts";
import type { Jid } from "./jid.ts";
import { jidFromBytes, seenJid, tryParseJid } from "./jid_parser.ts";
import type { Stanza, StanzaKind, StanzaType } from "./stanza.ts";
import { MAX_ID_BYTES } from "./stanza_attributes.ts";
import { stanzaType } from "./stanza_type.ts";
import { encodeAttribute } from "./xml/escape.ts";
import type { ScannedElement } from "./xml/scanner_types.ts";
import { stampStanza } from "./xml/stamp.ts";

const AMP = 0x26;

/** What a stream knows of the stanzas on it. */
export interface StanzaContext {
  readonly slab: SlabAllocator;
  /** Who sends: the bound full JID, or what a component may write and did. */
  readonly from: Jid;
  /** ` from='…'` of that JID, see `encodeAttribute`; made here for each stanza where it is absent. */
  readonly fromAttribute?: Uint8Array | undefined;
  /** Whom a stanza without `to` is for (RFC 6120 §10.3): on c2s the sender's bare JID. */
  readonly defaultTo: Jid;
  /** ` to='…'` of that JID; made here where it is absent. */
  readonly defaultToAttribute?: Uint8Array | undefined;
  /** ` xml:lang='…'` of the stream header, when it had one. */
  readonly lang?: Uint8Array | undefined;
}

/** Why a stanza goes nowhere; `policy-violation` for an `id` longer than `MAX_ID_BYTES`. */
export type StanzaRefusalCondition = "bad-request" | "jid-malformed" | "policy-violation";

/**
 * A stanza that goes nowhere. `stanza` is what its sender is answered about: `errorReply(stanza,
 * condition)` comes from `defaultTo`, as the address written may be none.
 */
export class RefusedStanza {
  readonly condition: StanzaRefusalCondition;
  readonly stanza: Stanza;

  constructor(condition: StanzaRefusalCondition, stanza: Stanza) {
    this.condition = condition;
    this.stanza = stanza;
  }
}

/** The kind of stanza that an element in the content namespace is; undefined for a nonza. */
export function stanzaKind(element: ScannedElement): StanzaKind | undefined {
  switch (element.name) {
    case "message":
    case "presence":
    case "iq":
      return element.name;
    default:
      return undefined;
  }
}

/**
 * The stanza that a scanned element is, stamped and addressed, with bytes of its own. The element is
 * in the stream's content namespace and `stanzaKind` has said what it is.
 *
 * @throws StreamFailure as `stampStanza`
 */
export function stanzaFrom(
  element: ScannedElement,
  kind: StanzaKind,
  context: StanzaContext,
): Stanza | RefusedStanza {
  const { from } = context;
  if (hasLongId(element)) return refuse(element, kind, context, "policy-violation");
  const type = acceptedType(element, kind);
  if (type === undefined) return refuse(element, kind, context, "bad-request");
  const toIndex = element.attributeIndex("to");
  const to = toIndex === -1 ? context.defaultTo : jidAttribute(element, toIndex);
  if (to === undefined) return refuse(element, kind, context, "jid-malformed");
  const bytes = stampStanza(element, {
    slab: context.slab,
    from: context.fromAttribute ?? encodeAttribute("from", from.text),
    to: toIndex === -1 ? defaultTo(context) : undefined,
    lang: context.lang,
  });
  return { kind, type, from, to, bytes };
}

/** The JID that the attribute at `index` holds; undefined when it holds none. */
export function jidAttribute(element: ScannedElement, index: number): Jid | undefined {
  const start = element.valueStart(index);
  const end = element.valueEnd(index);
  const seen = seenJid(element.buffer, start, end);
  if (seen !== undefined) return seen;
  for (let at = start; at < end; at++) {
    const byte = element.buffer[at]!;
    // A reference or a line break: the bytes are not yet the value.
    if (byte === AMP || byte < 0x20) return tryParseJid(element.attributeValue(index));
  }
  return jidFromBytes(element.buffer, start, end);
}

function hasLongId(element: ScannedElement): boolean {
  const index = element.attributeIndex("id");
  return index !== -1 && element.valueEnd(index) - element.valueStart(index) > MAX_ID_BYTES;
}

/** The type, unless there is no such type or the stanza could never be answered. */
function acceptedType(element: ScannedElement, kind: StanzaKind): StanzaType | undefined {
  if (kind === "iq" && element.attributeIndex("id") === -1) return undefined; // RFC 6120 §8.1.3
  return stanzaType(kind, element.attribute("type"));
}

function refuse(
  element: ScannedElement,
  kind: StanzaKind,
  context: StanzaContext,
  condition: StanzaRefusalCondition,
): RefusedStanza {
  const bytes = stampStanza(element, {
    slab: context.slab,
    from: context.fromAttribute ?? encodeAttribute("from", context.from.text),
    to: defaultTo(context),
    replacesTo: true,
    lang: context.lang,
  });
  const type = stanzaType(kind, element.attribute("type")) ?? REQUEST_TYPES[kind];
  return new RefusedStanza(condition, {
    kind,
    type,
    from: context.from,
    to: context.defaultTo,
    bytes,
  });
}

/** What a stanza of unknown type counts as when it is answered. */
const REQUEST_TYPES: Readonly<Record<StanzaKind, StanzaType>> = {
  message: "normal",
  presence: "available",
  iq: "get",
};

function defaultTo(context: StanzaContext): Uint8Array {
  return context.defaultToAttribute ?? encodeAttribute("to", context.defaultTo.text);
}
