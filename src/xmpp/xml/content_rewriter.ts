import { textOf } from "./ascii_interner.ts";
import { encodeAttribute } from "./escape.ts";
import { defaultNamespace, NamespaceScope } from "./namespace_scope.ts";
import { CLIENT_NAMESPACE } from "./namespaces.ts";
import { failScan } from "./scan_failure.ts";
import type { ScannedElement } from "./scanner_types.ts";
import { SPAN, TagScanner } from "./tag_scanner.ts";

const LT = 0x3c;
const GT = 0x3e;
const SLASH = 0x2f;
const BANG = 0x21;
const SPACE = 0x20;
const CLOSE_BRACKET = 0x5d;
const XMLNS = "xmlns";

/** Largest piece, in bytes, that a loop copies faster than a view. */
const LOOPED_BYTES = 48;
/** A larger buffer is released after use. */
const KEPT_BYTES = 65_536;

/** Scratch scanners: nothing in them is read after the call that filled them. */
const TAG = new TagScanner();
const SCOPE = new NamespaceScope();

/** Changes to the root of a rewritten stanza. */
export interface RootChanges {
  /** Attributes to insert in the root, each made by `encodeAttribute`. */
  readonly inserted: readonly Uint8Array[];
  /** Unprefixed attributes to leave out of the root. */
  readonly removed: ReadonlySet<string>;
  /** Largest size of the result in bytes. */
  readonly maxBytes: number;
}

/** An element whose end tag has not come yet. */
interface OpenElement {
  /** Default namespaces in force inside it, as read and as written. */
  readonly read: string;
  readonly written: string;
  /** Position of its name as written in the source. */
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly losesPrefix: boolean;
  /** Number of declarations in force outside it. */
  readonly declared: number;
}

/**
 * Rewrites a stanza that names the content namespace by a prefix or below its root, so that it can
 * follow any content namespace. Inner elements lose prefix and declaration where they can inherit the
 * namespace, and declare `jabber:client` where they cannot. Everything else stays as written. The
 * rewriting takes one pass over the bytes and builds no tree.
 *
 * @throws StreamFailure `policy-violation` past `maxBytes`
 */
export function rewriteContent(element: ScannedElement, changes: RootChanges): Uint8Array {
  return new ContentRewriter(element, changes).run();
}

let scratch = new Uint8Array(4096);

class ContentRewriter {
  readonly #element: ScannedElement;
  readonly #bytes: Uint8Array;
  readonly #changes: RootChanges;
  readonly #open: OpenElement[] = [];
  #length = 0;
  /** Everything in the source before this position has been written. */
  #copied: number;

  constructor(element: ScannedElement, changes: RootChanges) {
    this.#element = element;
    this.#bytes = element.buffer;
    this.#changes = changes;
    this.#copied = element.start;
    SCOPE.resume(element.outerNamespace, element.inheritedPrefixes);
  }

  run(): Uint8Array {
    const bytes = this.#bytes;
    let p = this.#startTag(this.#element.start);
    while (this.#open.length > 0) {
      p = bytes.indexOf(LT, p);
      const next = bytes[p + 1];
      if (next === SLASH) p = this.#endTag(p);
      else if (next === BANG) p = skipCdata(bytes, p);
      else p = this.#startTag(p);
    }
    this.#copyUpTo(this.#element.end);
    const result = scratch.slice(0, this.#length);
    if (scratch.length > KEPT_BYTES) scratch = new Uint8Array(4096);
    return result;
  }

  /** Handles a start tag and returns the position after it. */
  #startTag(at: number): number {
    const bytes = this.#bytes;
    const after = TAG.scan(bytes, at + 1, this.#element.end, Number.MAX_SAFE_INTEGER);
    const declared = SCOPE.size;
    if (TAG.hasPrefixes) SCOPE.enter(bytes, TAG);
    const parent = this.#open.at(-1);
    const hasDefault = TAG.xmlnsIndex !== -1;
    const read = hasDefault
      ? unified(defaultNamespace(bytes, TAG))
      : parent?.read ?? unified(this.#element.outerNamespace);
    const writtenOutside = parent?.written ?? CLIENT_NAMESPACE;
    const isUnprefixed = TAG.colon === -1;
    const namespace = isUnprefixed
      ? read
      : unified(SCOPE.resolve(textOf(bytes, TAG.nameStart, TAG.colon)));
    const losesPrefix = !isUnprefixed && namespace === CLIENT_NAMESPACE;
    let written = writtenOutside;
    if (isUnprefixed || losesPrefix) written = namespace;
    else if (hasDefault) written = read;

    const nameStart = losesPrefix ? TAG.colon + 1 : TAG.nameStart;
    const isAsItIs = parent !== undefined && !losesPrefix && !hasDefault &&
      written === writtenOutside && (!TAG.hasPrefixes || TAG.count === 0);
    if (!isAsItIs) {
      this.#copyUpTo(at + 1);
      this.#copied = nameStart;
      this.#copyUpTo(TAG.nameEnd);
      if (written !== writtenOutside) this.#write(encodeAttribute(XMLNS, written));
      this.#attributes(parent === undefined);
      this.#copied = after - (TAG.isEmpty ? 2 : 1);
    }
    if (TAG.isEmpty) SCOPE.leave(declared);
    else this.#open.push({ read, written, nameStart, nameEnd: TAG.nameEnd, losesPrefix, declared });
    return after;
  }

  #attributes(isRoot: boolean): void {
    const bytes = this.#bytes;
    const { inserted, removed } = this.#changes;
    if (isRoot) {
      for (const piece of inserted) this.#write(piece);
      for (const { prefix, namespace } of this.#element.inheritedPrefixes) {
        if (!SCOPE.isContent(namespace)) {
          this.#write(encodeAttribute(`${XMLNS}:${prefix}`, namespace));
        }
      }
    }
    let declared: Set<string> | undefined;
    for (let index = 0, at = 0; index < TAG.count; index++, at += SPAN) {
      if (index === TAG.xmlnsIndex) continue;
      const start = TAG.spans[at]!;
      const end = TAG.spans[at + 1]!;
      const colon = TAG.spans[at + 2]!;
      if (colon === -1) {
        if (isRoot && removed.has(textOf(bytes, start, end))) continue;
      } else {
        const prefix = textOf(bytes, start, colon);
        if (prefix === XMLNS) {
          if (SCOPE.isContent(SCOPE.resolve(textOf(bytes, colon + 1, end)))) continue;
        } else {
          const namespace = SCOPE.resolve(prefix);
          declared ??= new Set();
          // Its declaration is left out wherever it stands.
          if (SCOPE.isContent(namespace) && !declared.has(prefix)) {
            declared.add(prefix);
            this.#write(encodeAttribute(`${XMLNS}:${prefix}`, namespace));
          }
        }
      }
      this.#byte(SPACE);
      this.#copied = start;
      this.#copyUpTo(TAG.spans[at + 4]! + 1);
    }
  }

  /** Handles an end tag and returns the position after it. */
  #endTag(at: number): number {
    const { nameStart, nameEnd, losesPrefix, declared } = this.#open.pop()!;
    SCOPE.leave(declared);
    const after = this.#bytes.indexOf(GT, at) + 1;
    if (!losesPrefix) return after;
    this.#copyUpTo(at + 2);
    this.#copied = nameStart;
    this.#copyUpTo(nameEnd);
    this.#copied = after - 1;
    return after;
  }

  #copyUpTo(end: number): void {
    const from = this.#copied;
    this.#copied = end;
    const bytes = this.#bytes;
    if (end - from > LOOPED_BYTES) return this.#write(bytes.subarray(from, end));
    this.#reserve(end - from);
    for (let p = from; p < end; p++) scratch[this.#length++] = bytes[p]!;
  }

  #byte(byte: number): void {
    this.#reserve(1);
    scratch[this.#length++] = byte;
  }

  #write(piece: Uint8Array): void {
    this.#reserve(piece.length);
    scratch.set(piece, this.#length);
    this.#length += piece.length;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    const { maxBytes } = this.#changes;
    if (needed > maxBytes) {
      failScan("policy-violation", `a stanza that has more than ${maxBytes} bytes as sent`);
    }
    if (needed <= scratch.length) return;
    const larger = new Uint8Array(Math.min(maxBytes, Math.max(needed, scratch.length * 2)));
    larger.set(scratch.subarray(0, this.#length));
    scratch = larger;
  }
}

/** Returns the one name that stands for the content namespace. */
function unified(namespace: string): string {
  return SCOPE.isContent(namespace) ? CLIENT_NAMESPACE : namespace;
}

/** Returns the position after the CDATA section that begins at `at`. */
function skipCdata(bytes: Uint8Array, at: number): number {
  let p = bytes.indexOf(GT, at);
  while (bytes[p - 1] !== CLOSE_BRACKET || bytes[p - 2] !== CLOSE_BRACKET) {
    p = bytes.indexOf(GT, p + 1);
  }
  return p + 1;
}
