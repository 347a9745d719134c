import { failScan } from "./scan_failure.ts";
import { CLIENT_NAMESPACE } from "./namespaces.ts";
import { defaultNamespace, type NamespaceScope } from "./namespace_scope.ts";
import type { ScannedElementView } from "./scanned_element_view.ts";
import type { ScannerLimits } from "./scanner_types.ts";
import { TagEndFinder } from "./tag_end_finder.ts";
import { TagScanner } from "./tag_scanner.ts";
import { CHAR_CLASS, notAChar, SPACE, TEXT, utf8Step } from "./xml_chars.ts";
import { skipReference } from "./xml_references.ts";

const LT = 0x3c;
const GT = 0x3e;
const SLASH = 0x2f;
const BANG = 0x21;
const QUESTION = 0x3f;
const AMP = 0x26;
const CLOSE_BRACKET = 0x5d;

/** `<![CDATA[` */
const CDATA_OPEN = Uint8Array.of(0x3c, 0x21, 0x5b, 0x43, 0x44, 0x41, 0x54, 0x41, 0x5b);

/** Numbers kept for an open element: start and length of its name, bindings before it, content. */
const FRAME = 4;
/** Room for open elements that is kept from one element to the next: most have fewer levels. */
const KEPT_FRAMES = 16;

/** Scratch for all scanners: nothing in it is read after the call that filled it. */
const TAG = new TagScanner();

/**
 * Follows one top-level element through the bytes and checks that it is well-formed. It keeps nothing
 * but the names that are open.
 *
 * It goes tag by tag. When the bytes end inside a tag, reference or character, `resume` is the start of
 * that piece, and the next `scan` continues there with more bytes. All positions count from the
 * element's first byte, so that the bytes may be moved in between.
 */
export class ElementScanner {
  /** Position at which the next `scan` continues, counted from the element's first byte. */
  resume = 0;
  readonly #limits: ScannerLimits;
  readonly #scope: NamespaceScope;
  readonly #view: ScannedElementView;
  readonly #tagEnd = new TagEndFinder();
  /** Frames of the open elements; the room behind `#openEnd` is used again. */
  readonly #open: number[] = [];
  /** End of the frames in `#open`. To set the array's length would cost a call for each end tag. */
  #openEnd = 0;
  /** Start of the content of an open CDATA section, or -1. */
  #cdataStart = -1;
  #needsRewrite = false;

  constructor(limits: ScannerLimits, scope: NamespaceScope, view: ScannedElementView) {
    this.#limits = limits;
    this.#scope = scope;
    this.#view = view;
  }

  /** Forgets an unfinished element. */
  reset(): void {
    this.#openEnd = 0;
    if (this.#open.length > KEPT_FRAMES * FRAME) this.#open.length = 0;
    this.#tagEnd.reset();
    this.#cdataStart = -1;
    this.#needsRewrite = false;
    this.resume = 0;
    this.#scope.beginElement();
  }

  /**
   * Continues at `base + resume`; the element's first byte, a `<`, lies at `base`. Returns the position
   * after the element once it is whole, and fills the view except for its place. Returns -1 before that.
   * @throws StreamFailure
   */
  scan(bytes: Uint8Array, base: number, end: number): number {
    let p = base + this.resume;
    if (this.#tagEnd.isActive && !this.#tagEnd.find(bytes, base, end)) return -1;
    if (this.#openEnd === 0) {
      p = this.#startTag(bytes, base, p, end);
      if (p === -1) return -1;
      if (this.#openEnd === 0) return this.#finish(p);
    }
    for (;;) {
      if (this.#cdataStart !== -1) {
        p = this.#cdata(bytes, base, p, end);
        if (p === -1) return -1;
      }
      while (p < end && (CHAR_CLASS[bytes[p]!]! & TEXT) !== 0) p++;
      if (p >= end) return this.#wait(p - base);
      const byte = bytes[p]!;
      if (byte === LT) {
        if (p + 1 >= end) return this.#wait(p - base);
        const next = bytes[p + 1]!;
        if (next === SLASH) {
          p = this.#endTag(bytes, base, p, end);
          if (p === -1) return -1;
          if (this.#openEnd === 0) return this.#finish(p);
        } else if (next === BANG) {
          p = this.#cdataOpen(bytes, base, p, end);
        } else if (next === QUESTION) {
          failScan("restricted-xml", "a processing instruction");
        } else {
          p = this.#startTag(bytes, base, p, end);
        }
        if (p === -1) return -1;
      } else if (byte >= 0x80) {
        const step = utf8Step(bytes, p, end);
        if (step === 0) return this.#wait(p - base);
        p += step;
      } else if (byte === AMP) {
        const after = skipReference(bytes, p, end);
        if (after === -1) return this.#wait(p - base);
        p = after;
      } else if (byte === GT) {
        if (bytes[p - 1] === CLOSE_BRACKET && bytes[p - 2] === CLOSE_BRACKET) {
          failScan("not-well-formed", "]]> outside of a CDATA section");
        }
        p++;
      } else {
        notAChar(byte);
      }
    }
  }

  #wait(resume: number): -1 {
    this.resume = resume;
    return -1;
  }

  /** Notes that the tag at `p` continues after `end`: from now on only its end is searched for. */
  #waitForTag(bytes: Uint8Array, base: number, p: number, end: number): -1 {
    this.#tagEnd.begin(p + 1 - base);
    this.#tagEnd.find(bytes, base, end);
    return this.#wait(p - base);
  }

  #finish(end: number): number {
    const view = this.#view;
    view.inheritedPrefixes = this.#scope.inherited;
    view.namesContentNamespace = this.#needsRewrite || this.#scope.hasContentPrefix;
    this.reset();
    return end;
  }

  #startTag(bytes: Uint8Array, base: number, p: number, end: number): number {
    const after = TAG.scan(bytes, p + 1, end, this.#limits.maxAttributes);
    if (after === -1) return this.#waitForTag(bytes, base, p, end);
    const open = this.#open;
    const openEnd = this.#openEnd;
    const scope = this.#scope;
    const isRoot = openEnd === 0;
    if (openEnd >= this.#limits.maxDepth * FRAME) {
      failScan("policy-violation", `elements nested deeper than ${this.#limits.maxDepth}`);
    }
    const before = scope.size;
    if (TAG.hasPrefixes) scope.enter(bytes, TAG);
    let isContent = isRoot || open[openEnd - 1] === 1;
    if (isRoot) {
      isContent = this.#openRoot(bytes, base, after);
    } else if (TAG.xmlnsIndex !== -1) {
      this.#noteDefault(defaultNamespace(bytes, TAG), isContent);
      isContent = false;
    }
    if (TAG.isEmpty) {
      scope.leave(before);
    } else {
      open[openEnd] = TAG.nameStart - base;
      open[openEnd + 1] = TAG.nameEnd - TAG.nameStart;
      open[openEnd + 2] = before;
      open[openEnd + 3] = isContent ? 1 : 0;
      this.#openEnd = openEnd + FRAME;
    }
    return after;
  }

  /** Opens the root; true when its default namespace is the content namespace. */
  #openRoot(bytes: Uint8Array, base: number, tagEnd: number): boolean {
    const scope = this.#scope;
    const view = this.#view;
    const inForce = TAG.xmlnsIndex === -1 ? scope.contentNamespace : defaultNamespace(bytes, TAG);
    view.open(bytes, base, TAG, tagEnd);
    view.outerNamespace = scope.contentNamespace;
    view.namespace = view.prefix === "" ? inForce : scope.resolve(view.prefix);
    return scope.isContent(inForce);
  }

  /**
   * Notes a default namespace declared below the root. A declaration of the content namespace pins it,
   * and a name other than `jabber:client` is for one stream only. Either way the bytes cannot follow the
   * stanza to a stream of another content namespace.
   */
  #noteDefault(namespace: string, isContentOutside: boolean): void {
    if (!this.#scope.isContent(namespace)) return;
    if (isContentOutside || namespace !== CLIENT_NAMESPACE) this.#needsRewrite = true;
  }

  #endTag(bytes: Uint8Array, base: number, p: number, end: number): number {
    const open = this.#open;
    const top = this.#openEnd - FRAME;
    const length = open[top + 1]!;
    let after = p + 2 + length;
    if (after >= end) return this.#waitForTag(bytes, base, p, end);
    const nameStart = base + open[top]!;
    for (let i = 0; i < length; i++) {
      if (bytes[nameStart + i] !== bytes[p + 2 + i]) {
        failScan("not-well-formed", "an end tag for another element than the open one");
      }
    }
    while (after < end && (CHAR_CLASS[bytes[after]!]! & SPACE) !== 0) after++;
    if (after >= end) return this.#waitForTag(bytes, base, p, end);
    if (bytes[after] !== GT) failScan("not-well-formed", "an end tag that does not end");
    this.#scope.leave(open[top + 2]!);
    this.#openEnd = top;
    return after + 1;
  }

  #cdataOpen(bytes: Uint8Array, base: number, p: number, end: number): number {
    for (let i = 2; i < CDATA_OPEN.length; i++) {
      if (p + i >= end) return this.#wait(p - base);
      if (bytes[p + i] !== CDATA_OPEN[i]) failScan("restricted-xml", "a comment or declaration");
    }
    this.#cdataStart = p + CDATA_OPEN.length - base;
    return p + CDATA_OPEN.length;
  }

  #cdata(bytes: Uint8Array, base: number, from: number, end: number): number {
    const contentStart = base + this.#cdataStart;
    let p = from;
    while (p < end) {
      const byte = bytes[p]!;
      if ((CHAR_CLASS[byte]! & TEXT) !== 0 || byte === LT || byte === AMP) {
        p++;
      } else if (byte === GT) {
        p++;
        if (
          p - 3 >= contentStart && bytes[p - 2] === CLOSE_BRACKET && bytes[p - 3] === CLOSE_BRACKET
        ) {
          this.#cdataStart = -1;
          return p;
        }
      } else if (byte >= 0x80) {
        const step = utf8Step(bytes, p, end);
        if (step === 0) return this.#wait(p - base);
        p += step;
      } else {
        notAChar(byte);
      }
    }
    return this.#wait(p - base);
  }
}

/** Reads only the start tag, for the stream header. The result is valid until the next scan. */
export function scanStartTag(
  bytes: Uint8Array,
  from: number,
  end: number,
  maxAttributes: number,
): { readonly tag: TagScanner; readonly after: number } | undefined {
  const after = TAG.scan(bytes, from, end, maxAttributes);
  return after === -1 ? undefined : { tag: TAG, after };
}
