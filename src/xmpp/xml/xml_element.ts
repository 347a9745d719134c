import { CLIENT_NAMESPACE } from "./namespaces.ts";

/** A child of an element: another element, or text. */
export type XmlNode = XmlElement | string;

/**
 * Attributes by name. One without a namespace has its local name as key. `xml:lang` and its like have
 * their written name, and any other has `{namespace}local`.
 */
export type XmlAttributes = Readonly<Record<string, string>>;

/**
 * One immutable element of a small tree, for elements that the server itself reads and answers. Stanzas
 * that pass through never become trees.
 */
export class XmlElement {
  readonly name: string;
  readonly attributes: XmlAttributes;
  readonly children: readonly XmlNode[];
  readonly #namespace: string | undefined;

  /** Without a `namespace` the element takes that of its parent, `jabber:client` at the top. */
  constructor(
    name: string,
    namespace: string | undefined,
    attributes: XmlAttributes = {},
    children: readonly XmlNode[] = [],
  ) {
    this.name = name;
    this.#namespace = namespace;
    this.attributes = attributes;
    this.children = namespace === undefined
      ? children
      : children.map((child) => typeof child === "string" ? child : child.#within(namespace));
  }

  get namespace(): string {
    return this.#namespace ?? CLIENT_NAMESPACE;
  }

  /** Child elements, text left out. */
  get elements(): XmlElement[] {
    return this.children.filter((child) => child instanceof XmlElement);
  }

  /** The text directly inside the element, joined. */
  get text(): string {
    return this.children.filter((child) => typeof child === "string").join("");
  }

  /** Returns an attribute's value, named as in `XmlAttributes`. */
  attribute(name: string): string | undefined {
    return Object.hasOwn(this.attributes, name) ? this.attributes[name] : undefined;
  }

  /** Returns the first child element of that name, by default in this element's namespace. */
  child(name: string, namespace: string = this.namespace): XmlElement | undefined {
    return this.elements.find((each) => each.name === name && each.namespace === namespace);
  }

  /** Returns the same element with other attributes. */
  withAttributes(attributes: XmlAttributes): XmlElement {
    return new XmlElement(this.name, this.#namespace, attributes, this.children);
  }

  #within(namespace: string): XmlElement {
    return this.#namespace === undefined
      ? new XmlElement(this.name, namespace, this.attributes, this.children)
      : this;
  }
}

/**
 * Builds an element. The attribute `xmlns` gives its namespace; without it, the element takes that of
 * its parent. Undefined attributes and children are left out.
 */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | undefined>> = {},
  ...children: readonly (XmlNode | undefined)[]
): XmlElement {
  const kept: Record<string, string> = {};
  for (const key in attributes) {
    const value = attributes[key];
    if (value !== undefined && key !== "xmlns") kept[key] = value;
  }
  return new XmlElement(
    name,
    attributes["xmlns"],
    kept,
    children.filter((child) => child !== undefined),
  );
}
