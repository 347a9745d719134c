import { isText, textOf } from "./ascii_interner.ts";
import { decodeCdata, decodeText, decodeValue } from "./attribute_value.ts";
import { CLIENT_NAMESPACE, XML_NAMESPACE } from "./namespaces.ts";
import type { NamespaceBinding, ScannedElement } from "./scanner_types.ts";
import { ROOT_TAG, scanRoot } from "./root_tag.ts";
import { SPAN, TagScanner } from "./tag_scanner.ts";

const LT = 0x3c;
const GT = 0x3e;
const SLASH = 0x2f;
const BANG = 0x21;
const EQUALS = 0x3d;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
const CLOSE_BRACKET = 0x5d;
/** Characters in `<![CDATA[`. */
const CDATA_OPEN_BYTES = 9;

/** Scratch scanners: nothing in them is read after the call that filled them. */
const PARENT = new TagScanner();
const CHILD = new TagScanner();

/** An element in bytes that a scanner has checked, with the namespaces in force around it. */
export interface ElementSource {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly defaultNamespace: string;
  readonly prefixes: readonly NamespaceBinding[];
}

/** A direct child of an element. */
export interface ChildElement extends ElementSource {
  readonly name: string;
  readonly namespace: string;
}

/** Returns the element in a stanza's bytes (see `Stanza`). */
export function stanzaSource(bytes: Uint8Array): ElementSource {
  return {
    bytes,
    start: 0,
    end: bytes.length,
    defaultNamespace: CLIENT_NAMESPACE,
    prefixes: [],
  };
}

/** Returns the element that a scanner reports; valid for as long as its buffer is. */
export function scannedSource(element: ScannedElement): ElementSource {
  return {
    bytes: element.buffer,
    start: element.start,
    end: element.end,
    defaultNamespace: element.outerNamespace,
    prefixes: element.inheritedPrefixes,
  };
}

/**
 * Finds the first direct child of that name and namespace. Looks at each byte once and builds no tree.
 *
 * @param name ASCII
 */
export function findChild(
  source: ElementSource,
  name: string,
  namespace: string,
): ChildElement | undefined {
  const walk = new ChildWalk(source);
  while (walk.next()) {
    if (walk.isNamed(name) && walk.namespace === namespace) return walk.child();
  }
  return undefined;
}

/** True when a direct child is what `isIt` looks for. Looks at each byte once and builds no tree. */
export function hasChild(
  source: ElementSource,
  isIt: (name: string, namespace: string) => boolean,
): boolean {
  const walk = new ChildWalk(source);
  while (walk.next()) if (isIt(walk.name, walk.namespace)) return true;
  return false;
}

/** Returns all direct children, in their order. */
export function childElements(source: ElementSource): ChildElement[] {
  const children: ChildElement[] = [];
  const walk = new ChildWalk(source);
  while (walk.next()) children.push(walk.child());
  return children;
}

/** True when the first direct child has that name and namespace. Looks no further than its tag. */
export function startsWith(source: ElementSource, name: string, namespace: string): boolean {
  const walk = new ChildWalk(source);
  return walk.enter() && walk.isNamed(name) && walk.namespace === namespace;
}

/** Returns the only child element; undefined without children or with several. */
export function onlyChild(source: ElementSource): ChildElement | undefined {
  const walk = new ChildWalk(source);
  if (!walk.next()) return undefined;
  const child = walk.child();
  return walk.next() ? undefined : child;
}

/**
 * Returns the value of an attribute without a prefix, references expanded; undefined when absent.
 *
 * @param name ASCII
 */
export function attributeOf(
  { bytes, start, end }: ElementSource,
  name: string,
): string | undefined {
  if (CHILD.scan(bytes, start + 1, end, Number.MAX_SAFE_INTEGER) === -1) return undefined;
  const { spans } = CHILD;
  for (let at = 0; at < CHILD.count * SPAN; at += SPAN) {
    if (spans[at + 2] !== -1 || !isText(bytes, spans[at]!, spans[at + 1]!, name)) continue;
    return decodeValue(bytes, spans[at + 3]!, spans[at + 4]!);
  }
  return undefined;
}

/** Returns the text directly inside an element, without the text of inner elements. */
export function directText(source: ElementSource): string {
  const { bytes } = source;
  const walk = new ChildWalk(source);
  let text = "";
  let from = walk.position;
  for (let isMore = true; isMore;) {
    isMore = walk.next();
    text += characterData(bytes, from, walk.start);
    from = walk.position;
  }
  return text;
}

/** True when an element holds more than `limit` elements, itself included. Attributes count as elements. */
export function hasMoreElements({ bytes, start, end }: ElementSource, limit: number): boolean {
  let count = 0;
  for (let p = start; p !== -1 && p < end;) {
    if (bytes[p + 1] === BANG) p = skipCdata(bytes, p, end);
    else if (bytes[p + 1] === SLASH) p += 2;
    else {
      const after = CHILD.scan(bytes, p + 1, end, Number.MAX_SAFE_INTEGER);
      if (after === -1) return false; // no element
      count += 1 + CHILD.count;
      if (count > limit) return true;
      p = after;
    }
    p = bytes.indexOf(LT, p);
  }
  return false;
}

/** A walk over the direct children of an element. */
class ChildWalk {
  /** Start of the present child; after the last child, start of the element's end tag. */
  start: number;
  /** Start of the next search, after the present child. */
  position: number;
  readonly #source: ElementSource;
  readonly #bytes: Uint8Array;
  /** Namespaces in force inside the element. */
  readonly #defaultNamespace: string;
  readonly #prefixes: readonly NamespaceBinding[];
  readonly #isEmpty: boolean;

  constructor(source: ElementSource) {
    const { bytes, start, end } = this.#source = source;
    this.#bytes = bytes;
    const isRoot = start === 0 && end === bytes.length;
    const tag = isRoot ? ROOT_TAG : PARENT;
    const after = isRoot
      ? scanRoot(bytes)
      : tag.scan(bytes, start + 1, end, Number.MAX_SAFE_INTEGER);
    this.#isEmpty = after === -1 || tag.isEmpty;
    this.start = this.position = after === -1 ? end : after;
    this.#defaultNamespace = declaredDefault(bytes, tag) ?? source.defaultNamespace;
    this.#prefixes = tag.hasPrefixes
      ? [...declaredPrefixes(bytes, tag), ...source.prefixes]
      : source.prefixes;
  }

  /** Goes to the next child. Its tag stays in `CHILD` until the next scan. */
  next(): boolean {
    if (!this.enter()) return false;
    const { position } = this;
    const { end } = this.#source;
    if (!CHILD.isEmpty) this.position = skipContent(this.#bytes, position, end);
    if (this.position === -1) this.position = end;
    return true;
  }

  /** Goes to the next child, and no further than behind its start tag. */
  enter(): boolean {
    const bytes = this.#bytes;
    const { end } = this.#source;
    if (this.#isEmpty) return false;
    let p = bytes.indexOf(LT, this.position);
    while (p !== -1 && bytes[p + 1] === BANG) p = bytes.indexOf(LT, skipCdata(bytes, p, end));
    if (p === -1 || p + 1 >= end || bytes[p + 1] === SLASH) {
      this.start = this.position = p === -1 ? end : p;
      return false;
    }
    const after = CHILD.scan(bytes, p + 1, end, Number.MAX_SAFE_INTEGER);
    this.start = p;
    this.position = after === -1 ? end : after;
    return after !== -1;
  }

  isNamed(name: string): boolean {
    const { colon, nameStart, nameEnd } = CHILD;
    return isText(this.#bytes, colon === -1 ? nameStart : colon + 1, nameEnd, name);
  }

  get name(): string {
    const { colon, nameStart, nameEnd } = CHILD;
    return textOf(this.#bytes, colon === -1 ? nameStart : colon + 1, nameEnd);
  }

  get namespace(): string {
    const bytes = this.#bytes;
    const { colon, nameStart } = CHILD;
    if (colon === -1) return declaredDefault(bytes, CHILD) ?? this.#defaultNamespace;
    const prefix = textOf(bytes, nameStart, colon);
    if (prefix === "xml") return XML_NAMESPACE;
    const isIt = (binding: NamespaceBinding) => binding.prefix === prefix;
    const own = CHILD.count === 0 ? undefined : declaredPrefixes(bytes, CHILD).find(isIt);
    return (own ?? this.#prefixes.find(isIt))?.namespace ?? "";
  }

  child(): ChildElement {
    return {
      bytes: this.#bytes,
      start: this.start,
      end: this.position,
      name: this.name,
      namespace: this.namespace,
      defaultNamespace: this.#defaultNamespace,
      prefixes: this.#prefixes,
    };
  }
}

function declaredDefault(bytes: Uint8Array, tag: TagScanner): string | undefined {
  if (tag.xmlnsIndex === -1) return undefined;
  const at = tag.xmlnsIndex * SPAN;
  return decodeValue(bytes, tag.spans[at + 3]!, tag.spans[at + 4]!);
}

function declaredPrefixes(bytes: Uint8Array, tag: TagScanner): NamespaceBinding[] {
  const declared: NamespaceBinding[] = [];
  const { spans } = tag;
  for (let at = 0; at < tag.count * SPAN; at += SPAN) {
    const colon = spans[at + 2]!;
    if (colon === -1 || !isText(bytes, spans[at]!, colon, "xmlns")) continue;
    declared.push({
      prefix: textOf(bytes, colon + 1, spans[at + 1]!),
      namespace: decodeValue(bytes, spans[at + 3]!, spans[at + 4]!),
    });
  }
  return declared;
}

/** Returns the position after the end tag of an element whose content begins at `from`, or -1. */
function skipContent(bytes: Uint8Array, from: number, end: number): number {
  let depth = 1;
  let p = from;
  for (;;) {
    p = bytes.indexOf(LT, p);
    if (p === -1 || p >= end) return -1;
    const next = bytes[p + 1];
    if (next === BANG) {
      p = skipCdata(bytes, p, end);
      continue;
    }
    const tagEnd = skipTag(bytes, p, end);
    if (tagEnd === -1) return -1;
    if (next === SLASH) depth--;
    else if (bytes[tagEnd - 2] !== SLASH) depth++;
    p = tagEnd;
    if (depth === 0) return p;
  }
}

/** Returns the position after the `>` of a tag, or -1. Values may hold a `>` too. */
function skipTag(bytes: Uint8Array, from: number, end: number): number {
  let p = from + 1;
  while (p < end) {
    const byte = bytes[p]!;
    if (byte === GT) return p + 1;
    if (byte === EQUALS) {
      do p++; while (p < end && bytes[p] !== DOUBLE_QUOTE && bytes[p] !== SINGLE_QUOTE);
      p = bytes.indexOf(bytes[p]!, p + 1);
      if (p === -1) return -1;
    }
    p++;
  }
  return -1;
}

/** Returns the position after the CDATA section that begins at `at`, or `end`. */
function skipCdata(bytes: Uint8Array, at: number, end: number): number {
  let p = bytes.indexOf(GT, at + CDATA_OPEN_BYTES);
  while (p !== -1 && (bytes[p - 1] !== CLOSE_BRACKET || bytes[p - 2] !== CLOSE_BRACKET)) {
    p = bytes.indexOf(GT, p + 1);
  }
  return p === -1 ? end : p + 1;
}

/** Returns the text in [`from`, `to`), which holds no tags. */
function characterData(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let p = from; p < to;) {
    const found = bytes.indexOf(LT, p);
    const cdata = found === -1 || found >= to ? to : found;
    text += decodeText(bytes, p, cdata);
    if (cdata === to) break;
    p = skipCdata(bytes, cdata, to);
    text += decodeCdata(bytes, cdata + CDATA_OPEN_BYTES, p - 3);
  }
  return text;
}
