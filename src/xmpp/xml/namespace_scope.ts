import { isText, textOf } from "./ascii_interner.ts";
import { decodeValue } from "./attribute_value.ts";
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

/** Prefixes in force at one point of a stream, innermost last; checks XML Namespaces §2 to §6. */
export class NamespaceScope {
  #bindings: NamespaceBinding[] = [];
  /** So many at the bottom belong to the stream header. */
  #headerCount = 0;
  /** The default namespace of the stream header. */
  contentNamespace = "";
  #inherited: NamespaceBinding[] | undefined;
  /** Set when a prefix that an element uses or declares is bound to the content namespace. */
  hasContentPrefix = false;

  get size(): number {
    return this.#bindings.length;
  }

  /** Header prefixes used since `beginElement`. */
  get inherited(): readonly NamespaceBinding[] {
    return this.#inherited ?? NO_BINDINGS;
  }

  /** Forgets the stream header as well. */
  reset(contentNamespace = ""): void {
    if (this.#bindings.length > 0) this.#bindings = [];
    this.#headerCount = 0;
    this.contentNamespace = contentNamespace;
    this.beginElement();
  }

  /** Keeps what is bound now as the stream header's; gives it out. */
  adoptHeader(contentNamespace: string): readonly NamespaceBinding[] {
    this.#headerCount = this.#bindings.length;
    this.hasContentPrefix = false;
    this.contentNamespace = contentNamespace;
    return this.#bindings.slice();
  }

  /** Starts the account of one top-level element. */
  beginElement(): void {
    this.#inherited = undefined;
    this.hasContentPrefix = false;
    this.leave(this.#headerCount);
  }

  /** Ends an element: forgets what was bound since the scope had `size` bindings. */
  leave(size: number): void {
    if (this.#bindings.length > size) this.#bindings.length = size;
  }

  /** Takes in the declarations of a tag that has prefixes and checks every prefix it uses. */
  enter(bytes: Uint8Array, tag: TagScanner): void {
    const { spans, count } = tag;
    for (let at = 0; at < count * SPAN; at += SPAN) {
      const colon = spans[at + 2]!;
      if (colon !== -1 && isText(bytes, spans[at]!, colon, "xmlns")) {
        this.#declare(
          textOf(bytes, colon + 1, spans[at + 1]!),
          decodeValue(bytes, spans[at + 3]!, spans[at + 4]!),
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
      const name = `${textOf(bytes, colon + 1, spans[at + 1]!)}\n${this.resolve(prefix)}`;
      expanded ??= new Set();
      if (expanded.has(name)) failScan("not-well-formed", "an attribute given twice");
      expanded.add(name);
    }
  }

  /** The namespace that `prefix` is bound to; throws `StreamFailure` when it is not. */
  resolve(prefix: string): string {
    if (prefix === "xml") return XML_NAMESPACE;
    const bindings = this.#bindings;
    for (let i = bindings.length - 1; i >= 0; i--) {
      const binding = bindings[i]!;
      if (binding.prefix !== prefix) continue;
      if (i < this.#headerCount) this.#noteInherited(binding);
      return binding.namespace;
    }
    // RFC 6120 §11.3: not namespace-well-formed.
    failScan("not-well-formed", "a prefix that is not declared");
  }

  /** True for the names of the content namespace; each stream knows its own and `jabber:client`. */
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
    if (namespace.trim() === "") failScan("not-well-formed", "a prefix bound to nothing");
    if (prefix === "xml") return;
    this.#bindings.push({ prefix, namespace });
    if (this.isContent(namespace)) this.hasContentPrefix = true;
  }

  #noteInherited(binding: NamespaceBinding): void {
    if (this.isContent(binding.namespace)) this.hasContentPrefix = true;
    this.#inherited ??= [];
    if (!this.#inherited.includes(binding)) this.#inherited.push(binding);
  }
}

/** Checks the value of an `xmlns` attribute (XML Namespaces §3) and gives it. */
export function defaultNamespace(bytes: Uint8Array, tag: TagScanner): string {
  const at = tag.xmlnsIndex * SPAN;
  const namespace = decodeValue(bytes, tag.spans[at + 3]!, tag.spans[at + 4]!);
  if (namespace === XML_NAMESPACE || namespace === XMLNS_NAMESPACE) {
    failScan("not-well-formed", "a default namespace that is reserved");
  }
  return namespace;
}
