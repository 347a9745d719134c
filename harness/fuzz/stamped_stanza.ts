import { deepStrictEqual } from "node:assert/strict";
import { SlabAllocator } from "../../src/base/mod.ts";
import {
  CLIENT_NAMESPACE,
  COMPONENT_NAMESPACE,
  encodeAttribute,
  parseElement,
  scanFrame,
  stampStanza,
  stanzaKind,
  StreamFailure,
} from "../../src/xmpp/mod.ts";
import type { ScannedElement, XmlElement } from "../../src/xmpp/mod.ts";

const SLAB = new SlabAllocator();
const FROM = "alice@example.com/o'ne";
const TO = "alice@example.com";
const LANG = "en";
const STAMP = {
  slab: SLAB,
  from: encodeAttribute("from", FROM),
  to: encodeAttribute("to", TO),
  lang: encodeAttribute("xml:lang", LANG),
};

/**
 * The bytes of a stanza as they would go out, or undefined for what is none or is refused. Throws when
 * they do not say what the client wrote, or a link would not take them.
 */
export function stampedStanza(element: ScannedElement): Uint8Array | undefined {
  const { namespace, outerNamespace } = element;
  if (namespace !== CLIENT_NAMESPACE && namespace !== COMPONENT_NAMESPACE) return undefined;
  if (namespace !== outerNamespace || stanzaKind(element) === undefined) return undefined;
  let bytes: Uint8Array;
  try {
    bytes = stampStanza(element, STAMP);
  } catch (thrown) {
    if (thrown instanceof StreamFailure) return undefined;
    throw thrown;
  }
  const scanned = scanFrame(bytes, { maxDepth: 250, maxAttributes: 2048 });
  deepStrictEqual([scanned.end, scanned.prefix], [bytes.length, ""]);
  const written = parseElement(
    element.buffer.slice(element.start, element.end),
    outerNamespace,
    element.inheritedPrefixes,
  );
  const wanted = { to: TO, "xml:lang": LANG, ...written.attributes, from: FROM };
  deepStrictEqual(
    plain(parseElement(bytes), namespace),
    plain(written.withAttributes(wanted), namespace),
  );
  return bytes;
}

/** A tree as plain values, whatever the content namespace is called. */
function plain(element: XmlElement, contentNamespace: string): unknown {
  const { name, namespace, attributes } = element;
  return {
    name,
    namespace: namespace === contentNamespace ? CLIENT_NAMESPACE : namespace,
    attributes: { ...attributes },
    children: element.children.map((child) =>
      typeof child === "string" ? child : plain(child, contentNamespace)
    ),
  };
}
