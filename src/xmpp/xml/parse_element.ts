import { SaxesParser, type SaxesTagNS } from "saxes";
import { CausewayError } from "../../base/mod.ts";
import { CLIENT_NAMESPACE, XML_NAMESPACE, XMLNS_NAMESPACE } from "./namespaces.ts";
import type { NamespaceBinding } from "./scanner_types.ts";
import { XmlElement, type XmlNode } from "./xml_element.ts";

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

interface OpenElement {
  readonly tag: SaxesTagNS;
  readonly children: XmlNode[];
}

/**
 * Builds the tree of one element that a scanner has found, or of a stanza's bytes. An element without a
 * namespace is in `defaultNamespace`; `prefixes` are in force around it.
 *
 * @throws CausewayError `xmpp/xml-malformed`
 */
export function parseElement(
  bytes: Uint8Array,
  defaultNamespace: string = CLIENT_NAMESPACE,
  prefixes: readonly NamespaceBinding[] = [],
): XmlElement {
  const additionalNamespaces: Record<string, string> = { "": defaultNamespace };
  for (const { prefix, namespace } of prefixes) additionalNamespaces[prefix] = namespace;
  const parser = new SaxesParser({ xmlns: true, position: false, additionalNamespaces });
  const open: OpenElement[] = [];
  let root: XmlElement | undefined;
  const addText = (text: string) => {
    open.at(-1)?.children.push(text);
  };
  parser.on("opentag", (tag) => {
    open.push({ tag, children: [] });
  });
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.on("closetag", () => {
    const { tag, children } = open.pop()!;
    const closed = new XmlElement(tag.local, tag.uri, attributesOf(tag), joinText(children));
    const parent = open.at(-1);
    if (parent === undefined) root = closed;
    else parent.children.push(closed);
  });
  parser.on("doctype", () => fail("a DTD"));
  parser.on("error", (error) => fail(error.message));
  let text: string;
  try {
    text = STRICT_UTF8.decode(bytes);
  } catch {
    return fail("bytes that are not UTF-8");
  }
  parser.write(text).close();
  return root ?? fail("no element");
}

function fail(what: string): never {
  throw new CausewayError("xmpp/xml-malformed", `Cannot parse an element: ${what}`);
}

/** Returns the attributes of a tag, under the names of `XmlAttributes`. */
export function attributesOf(tag: SaxesTagNS): Record<string, string> {
  const entries: [string, string][] = [];
  for (const attribute of Object.values(tag.attributes)) {
    if (attribute.uri === XMLNS_NAMESPACE) continue;
    const isPlain = attribute.uri === "" || attribute.uri === XML_NAMESPACE;
    const name = isPlain ? attribute.name : `{${attribute.uri}}${attribute.local}`;
    entries.push([name, attribute.value]);
  }
  // Unlike an assignment, this treats a name such as __proto__ like any other.
  return Object.fromEntries(entries);
}

/** Joins texts that a reference or CDATA section had cut in two. */
export function joinText(nodes: readonly XmlNode[]): XmlNode[] {
  const joined: XmlNode[] = [];
  for (const node of nodes) {
    const last = joined.at(-1);
    if (typeof node === "string" && typeof last === "string") {
      joined[joined.length - 1] = last + node;
    } else joined.push(node);
  }
  return joined;
}
