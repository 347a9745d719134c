import type { SlabAllocator } from "../../base/mod.ts";
import type { Jid } from "../jid/jid.ts";
import { jidFromBytes, seenJid, tryParseJid } from "../jid/jid_parser.ts";
import type { Stanza, StanzaKind, StanzaType } from "./stanza.ts";
import { MAX_ID_BYTES } from "./stanza_attributes.ts";
import { stanzaType } from "./stanza_type.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { stampStanza } from "../xml/stamp.ts";

const AMP = 0x26;

/** Facts that a stream knows about its stanzas. */
export interface StanzaContext {
  readonly slab: SlabAllocator;
  /** Sender: a client's bound full JID, or the address that a component wrote and may use. */
  readonly from: Jid;
  /** ` from='…'` of that JID, see `encodeAttribute`; made anew for each stanza where it is absent. */
  readonly fromAttribute?: Uint8Array | undefined;
  /** Recipient of a stanza without `to` (RFC 6120 §10.3): on c2s the sender's bare JID. */
  readonly defaultTo: Jid;
  /** ` to='…'` of that JID; made anew where it is absent. */
  readonly defaultToAttribute?: Uint8Array | undefined;
  /** ` xml:lang='…'` of the stream header, when it had one. */
  readonly lang?: Uint8Array | undefined;
}

/** Reason why a stanza is refused; `policy-violation` for an `id` longer than `MAX_ID_BYTES`. */
export type StanzaRefusalCondition = "bad-request" | "jid-malformed" | "policy-violation";

/**
 * A refused stanza. `stanza` stands for it in the answer: `errorReply(stanza, condition)` comes from
 * `defaultTo`, because the written address may be invalid.
 */
export class RefusedStanza {
  readonly condition: StanzaRefusalCondition;
  readonly stanza: Stanza;

  constructor(condition: StanzaRefusalCondition, stanza: Stanza) {
    this.condition = condition;
    this.stanza = stanza;
  }
}

/** Returns the kind of stanza of an element in the content namespace; undefined for a nonza. */
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
 * Returns the stanza of a scanned element, stamped and addressed, with bytes of its own. The element
 * must be in the stream's content namespace, and a stanza by `stanzaKind`.
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

/** Returns the JID in the attribute at `index`; undefined when it is invalid. */
export function jidAttribute(element: ScannedElement, index: number): Jid | undefined {
  const start = element.valueStart(index);
  const end = element.valueEnd(index);
  const seen = seenJid(element.buffer, start, end);
  if (seen !== undefined) return seen;
  for (let at = start; at < end; at++) {
    const byte = element.buffer[at]!;
    // A reference or a line break: the bytes differ from the value.
    if (byte === AMP || byte < 0x20) return tryParseJid(element.attributeValue(index));
  }
  return jidFromBytes(element.buffer, start, end);
}

function hasLongId(element: ScannedElement): boolean {
  if (element.end - element.start <= MAX_ID_BYTES) return false; // the usual case, without a search
  const index = element.attributeIndex("id");
  return index !== -1 && element.valueEnd(index) - element.valueStart(index) > MAX_ID_BYTES;
}

/** Returns the type, unless it is unknown or the stanza could never be answered. */
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

/** Types that stand for an unknown type in the answer. */
const REQUEST_TYPES: Readonly<Record<StanzaKind, StanzaType>> = {
  message: "normal",
  presence: "available",
  iq: "get",
};

function defaultTo(context: StanzaContext): Uint8Array {
  return context.defaultToAttribute ?? encodeAttribute("to", context.defaultTo.text);
}
