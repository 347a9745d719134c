import { escapeText, escapeValue } from "./escape.ts";
import { CLIENT_NAMESPACE, XML_NAMESPACE } from "./namespaces.ts";
import { failScan } from "./scan_failure.ts";
import type { XmlElement } from "./xml_element.ts";

/**
 * Writes a tree. Namespaces are declared as default namespaces, only where they change. The root
 * declares its own unless it is `parentNamespace`, the one in force around it.
 *
 * @param maxLength largest result in characters; a namespace declared once may be written often
 * @throws StreamFailure `policy-violation` past `maxLength`
 */
export function serialize(
  element: XmlElement,
  parentNamespace = CLIENT_NAMESPACE,
  maxLength = Infinity,
): string {
  const writer = new Writer(maxLength);
  writer.element(element, parentNamespace);
  return writer.text;
}

class Writer {
  text = "";
  readonly #maxLength: number;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  element(element: XmlElement, parentNamespace: string): void {
    // XML Namespaces §3: this namespace has one prefix and is never the default.
    const isXml = element.namespace === XML_NAMESPACE;
    const name = isXml ? `xml:${element.name}` : element.name;
    const namespace = isXml ? parentNamespace : element.namespace;
    // One write for each tag: a roster has hundreds of them.
    let tag = `<${name}`;
    if (namespace !== parentNamespace) tag += ` xmlns='${escapeValue(namespace)}'`;
    let prefixes = 0;
    const { attributes, children } = element;
    for (const name in attributes) {
      const value = escapeValue(attributes[name]!);
      if (name.startsWith("{")) {
        const close = name.lastIndexOf("}");
        const prefix = `ns${prefixes++}`;
        tag += ` xmlns:${prefix}='${escapeValue(name.slice(1, close))}' ${prefix}:` +
          `${name.slice(close + 1)}='${value}'`;
      } else {
        tag += ` ${name}='${value}'`;
      }
    }
    if (children.length === 0) return this.#write(`${tag}/>`);
    this.#write(`${tag}>`);
    for (const child of children) {
      if (typeof child === "string") this.#write(escapeText(child));
      else this.element(child, namespace);
    }
    this.#write(`</${name}>`);
  }

  #write(text: string): void {
    this.text += text;
    if (this.text.length <= this.#maxLength) return;
    failScan(
      "policy-violation",
      `a stanza that has more than ${this.#maxLength} characters as sent`,
    );
  }
}
