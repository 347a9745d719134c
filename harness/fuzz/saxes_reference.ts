import { SaxesParser, type SaxesTagNS } from "saxes";

/** A top-level element as the reference parser sees it. */
export interface ReferenceElement {
  readonly name: string;
  readonly prefix: string;
  readonly namespace: string;
  readonly attributes: readonly (readonly [string, string])[];
}

/** Verdict of the reference parser on a stream. */
export type ReferenceVerdict =
  | { readonly isAccepted: true; readonly elements: readonly ReferenceElement[] }
  | { readonly isAccepted: false; readonly reason: string };

/** The first character of a name that has no prefix (XML Namespaces §4, `NCName`). */
const NC_NAME_START =
  /^[A-Z_a-z\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{2ff}\u{370}-\u{37d}\u{37f}-\u{1fff}\u{200c}\u{200d}\u{2070}-\u{218f}\u{2c00}-\u{2fef}\u{3001}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{fffd}\u{10000}-\u{effff}]/u;

/** Names that every edition of XML 1.0 allows. */
const OLD_NAME = /^[\w.:\-\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{ff}]*$/u;
/** Namespaces that are a URI at first sight. */
const PLAIN_URI = /^(?:[A-Za-z]+:)?[\w./-]*$/;

/**
 * Reads a whole stream with `saxes`, and adds what RFC 6120 §11 forbids beyond XML, so that the
 * verdict can be held against `StreamScanner`'s.
 *
 * This function corrects `saxes` where it is laxer than XML Namespaces: it accepts `a:1` as a name.
 * If parsers differ, the scanner accepts only what all of them read, and the verdict is undefined:
 * names of the fifth edition of XML 1.0, namespaces that are no URI, `xml:id`, and very long
 * references and names. There `expat` and `libxml2` decide (see `parser_child.ts`).
 */
export function referenceVerdict(stream: Uint8Array): ReferenceVerdict | undefined {
  const problems: string[] = [];
  const elements: ReferenceElement[] = [];
  let depth = 0;
  let isDisputed = false;
  const parser = new SaxesParser({ xmlns: true, position: false });
  const refuseText = (text: string) => {
    if (depth === 1 && /[^ \t\r\n]/.test(text)) problems.push("text between stanzas");
  };
  parser.on("opentag", (tag) => {
    if (depth === 0 && tag.isSelfClosing) problems.push("a stream that ends in its start tag");
    if (depth++ === 1) elements.push(describe(tag));
    for (const { name, local, value } of Object.values(tag.attributes)) {
      if (!NC_NAME_START.test(local)) problems.push("a name that is no NCName");
      if (name.startsWith("xmlns") && !PLAIN_URI.test(value)) isDisputed = true;
      if (name === "xml:id" || !isUndisputed(name)) isDisputed = true;
    }
    if (!isUndisputed(tag.name)) isDisputed = true;
    if (!NC_NAME_START.test(tag.local)) problems.push("a name that is no NCName");
  });
  parser.on("closetag", () => {
    depth--;
  });
  parser.on("text", refuseText);
  parser.on("cdata", () => {
    if (depth === 1) problems.push("CDATA between stanzas");
  });
  parser.on("comment", () => problems.push("a comment"));
  parser.on("processinginstruction", () => problems.push("a processing instruction"));
  parser.on("xmldecl", ({ version, encoding }) => {
    // RFC 6120 §11.6 and the XML that it builds on; saxes reads on whatever is declared.
    if (version !== undefined && version !== "1.0") problems.push("an XML version but 1.0");
    if (encoding !== undefined && encoding.toLowerCase() !== "utf-8") {
      problems.push("an encoding but UTF-8");
    }
  });
  parser.on("doctype", () => problems.push("a DTD"));
  parser.on("error", (error) => problems.push(error.message));
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(stream);
  } catch {
    return { isAccepted: false, reason: "not UTF-8" };
  }
  if (text.startsWith("\ufeff")) return { isAccepted: false, reason: "a byte order mark" };
  // The scanner bounds references, of which XML has none that needs to be long.
  if (/&[^;<&]{100}/.test(text)) return undefined;
  parser.write(text).close();
  if (problems.length > 0) return { isAccepted: false, reason: problems[0]! };
  return isDisputed ? undefined : { isAccepted: true, elements };
}

function describe(tag: SaxesTagNS): ReferenceElement {
  return {
    name: tag.local,
    prefix: tag.prefix,
    namespace: tag.uri,
    attributes: Object.values(tag.attributes).map(({ name, value }) => [name, value] as const),
  };
}

function isUndisputed(name: string): boolean {
  return name.length < 1000 && OLD_NAME.test(name);
}
