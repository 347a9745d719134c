import { isText, textOf } from "./ascii_interner.ts";
import { isReservedNamespace, namespaceName } from "./namespace_name.ts";
import {
  CLIENT_NAMESPACE,
  COMPONENT_NAMESPACE,
  XML_NAMESPACE,
  XMLNS_NAMESPACE,
} from "./namespaces.ts";
import { failScan } from "./scan_failure.ts";
import type { NamespaceBinding } from "./scanner_types.ts";
import { SPAN, type TagScanner } from "./tag_scanner.ts";

const NO_BINDINGS: readonly NamespaceBinding[] = [];

/** A declaration in force, and its use by one top-level element. */
interface Declared {
  readonly binding: NamespaceBinding;
  /** The declaration of the same prefix that this one hides. */
  readonly hidden: Declared | undefined;
  /** True for a declaration of the stream header. */
  isOfHeader: boolean;
  /** The last top-level element that used this declaration of the header. */
  notedIn: number;
  /** Number that stands for the namespace in `numberedIn`, a top-level element. */
  number: number;
  numberedIn: number;
}

/**
 * Prefixes in force at one point of a stream; checks XML Namespaces §2 to §6.
 *
 * The cost of a tag grows only with the bytes of that tag, however much is declared around it.
 */
export class NamespaceScope {
  /** Declarations in force, innermost last. */
  readonly #declared: Declared[] = [];
  /** The innermost declaration of each prefix. */
  readonly #byPrefix = new Map<string, Declared>();
  /** Number of declarations at the bottom that belong to the stream header. */
  #headerCount = 0;
  /** The default namespace of the stream header. */
  contentNamespace = "";
  /** Counts top-level elements. */
  #element = 0;
  #inherited: NamespaceBinding[] | undefined;
  /** Namespaces of the element's attributes, each with a number, so that a long name is compared once. */
  #numbers: Map<string, number> | undefined;
  /** Set when a prefix that an element uses or declares is bound to the content namespace. */
  hasContentPrefix = false;

  get size(): number {
    return this.#declared.length;
  }

  /** Header prefixes used since `beginElement`. */
  get inherited(): readonly NamespaceBinding[] {
    return this.#inherited ?? NO_BINDINGS;
  }

  /** Forgets the stream header as well. */
  reset(contentNamespace = ""): void {
    this.leave(0);
    this.#headerCount = 0;
    this.contentNamespace = contentNamespace;
    this.beginElement();
  }

  /** Restores the declarations of a stream header. */
  resume(contentNamespace: string, prefixes: readonly NamespaceBinding[]): void {
    this.reset(contentNamespace);
    for (const { prefix, namespace } of prefixes) this.#declare(prefix, namespace);
    this.adoptHeader(contentNamespace);
  }

  /** Keeps the present bindings as the stream header's, and returns them. */
  adoptHeader(contentNamespace: string): readonly NamespaceBinding[] {
    this.#headerCount = this.#declared.length;
    for (const declared of this.#declared) declared.isOfHeader = true;
    this.hasContentPrefix = false;
    this.contentNamespace = contentNamespace;
    return this.#declared.map(({ binding }) => binding);
  }

  /** Begins the record of one top-level element. */
  beginElement(): void {
    this.#element++;
    this.#inherited = undefined;
    this.#numbers = undefined;
    this.hasContentPrefix = false;
    this.leave(this.#headerCount);
  }

  /** Ends an element: forgets bindings made since the scope had `size` bindings. */
  leave(size: number): void {
    while (this.#declared.length > size) {
      const { binding, hidden } = this.#declared.pop()!;
      if (hidden === undefined) this.#byPrefix.delete(binding.prefix);
      else this.#byPrefix.set(binding.prefix, hidden);
    }
  }

  /** Adds the declarations of a tag that has prefixes, and checks every prefix it uses. */
  enter(bytes: Uint8Array, tag: TagScanner): void {
    const { spans, count } = tag;
    for (let at = 0; at < count * SPAN; at += SPAN) {
      const colon = spans[at + 2]!;
      if (colon !== -1 && isText(bytes, spans[at]!, colon, "xmlns")) {
        this.#declare(
          textOf(bytes, colon + 1, spans[at + 1]!),
          namespaceName(bytes, spans[at + 3]!, spans[at + 4]!),
        );
      }
    }
    if (tag.colon !== -1) {
      const prefix = textOf(bytes, tag.nameStart, tag.colon);
      if (prefix === "xmlns") failScan("not-well-formed", "an element with the prefix xmlns");
      this.resolve(prefix);
    }
    let expanded: Set<string> | undefined;
    for (let at = 0; at < count * SPAN; at += SPAN) {
      const colon = spans[at + 2]!;
      if (colon === -1) continue;
      const prefix = textOf(bytes, spans[at]!, colon);
      if (prefix === "xmlns") continue;
      const declared = this.#find(prefix);
      if (count === 1) continue; // a single attribute has no duplicate
      const name = `${this.#numberOf(declared)} ${textOf(bytes, colon + 1, spans[at + 1]!)}`;
      expanded ??= new Set();
      if (expanded.has(name)) failScan("not-well-formed", "an attribute given twice");
      expanded.add(name);
    }
  }

  /** Returns the namespace that `prefix` is bound to; throws `StreamFailure` when it is unbound. */
  resolve(prefix: string): string {
    return this.#find(prefix)?.binding.namespace ?? XML_NAMESPACE;
  }

  /** Returns the declaration that `prefix` stands for; undefined for `xml`, which needs none. */
  #find(prefix: string): Declared | undefined {
    if (prefix === "xml") return undefined;
    const declared = this.#byPrefix.get(prefix);
    // RFC 6120 §11.3: not namespace-well-formed.
    if (declared === undefined) failScan("not-well-formed", "a prefix that is not declared");
    if (declared.isOfHeader && declared.notedIn !== this.#element) this.#noteInherited(declared);
    return declared;
  }

  /** Returns a number that stands for the namespace within this top-level element. */
  #numberOf(declared: Declared | undefined): number {
    if (declared === undefined) return -1;
    if (declared.numberedIn === this.#element) return declared.number;
    const numbers = this.#numbers ??= new Map();
    const { namespace } = declared.binding;
    let number = numbers.get(namespace);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(namespace, number);
    }
    declared.numberedIn = this.#element;
    declared.number = number;
    return number;
  }

  /** True for the names of the content namespace: the stream's own and `jabber:client`. */
  isContent(namespace: string): boolean {
    return namespace === CLIENT_NAMESPACE ||
      (namespace === COMPONENT_NAMESPACE && this.contentNamespace === COMPONENT_NAMESPACE);
  }

  #declare(prefix: string, namespace: string): void {
    if (prefix === "xml" ? namespace !== XML_NAMESPACE : namespace === XML_NAMESPACE) {
      failScan("not-well-formed", "a declaration that rebinds xml");
    }
    if (prefix === "xmlns" || namespace === XMLNS_NAMESPACE) {
      failScan("not-well-formed", "a declaration that rebinds xmlns");
    }
    if (namespace === "") failScan("not-well-formed", "a prefix bound to nothing");
    if (prefix === "xml") return;
    const declared: Declared = {
      binding: { prefix, namespace },
      hidden: this.#byPrefix.get(prefix),
      isOfHeader: false,
      notedIn: 0,
      number: 0,
      numberedIn: 0,
    };
    this.#declared.push(declared);
    this.#byPrefix.set(prefix, declared);
    if (this.isContent(namespace)) this.hasContentPrefix = true;
  }

  #noteInherited(declared: Declared): void {
    declared.notedIn = this.#element;
    if (this.isContent(declared.binding.namespace)) this.hasContentPrefix = true;
    this.#inherited ??= [];
    this.#inherited.push(declared.binding);
  }
}

/** Checks the value of an `xmlns` attribute (XML Namespaces §3) and returns it. */
export function defaultNamespace(bytes: Uint8Array, tag: TagScanner): string {
  const at = tag.xmlnsIndex * SPAN;
  const namespace = namespaceName(bytes, tag.spans[at + 3]!, tag.spans[at + 4]!);
  if (isReservedNamespace(namespace)) {
    failScan("not-well-formed", "a default namespace that is reserved");
  }
  return namespace;
}
