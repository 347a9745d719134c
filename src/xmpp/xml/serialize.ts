import { escapeText, escapeValue } from "./escape.ts";
import { CLIENT_NAMESPACE } from "./namespaces.ts";
import type { XmlElement } from "./xml_element.ts";

/**
 * Writes a tree. Namespaces are declared as default namespaces, only where they change; the root
 * declares its own unless it is `parentNamespace`, the one in force where it will stand.
 */
export function serialize(element: XmlElement, parentNamespace = CLIENT_NAMESPACE): string {
  let tag = `<${element.name}`;
  if (element.namespace !== parentNamespace) tag += ` xmlns='${escapeValue(element.namespace)}'`;
  let prefixes = 0;
  for (const [name, value] of Object.entries(element.attributes)) {
    if (name.startsWith("{")) {
      const close = name.lastIndexOf("}");
      const prefix = `ns${prefixes++}`;
      tag += ` xmlns:${prefix}='${escapeValue(name.slice(1, close))}' ${prefix}:` +
        `${name.slice(close + 1)}='${escapeValue(value)}'`;
    } else {
      tag += ` ${name}='${escapeValue(value)}'`;
    }
  }
  if (element.children.length === 0) return `${tag}/>`;
  let content = "";
  for (const child of element.children) {
    content += typeof child === "string" ? escapeText(child) : serialize(child, element.namespace);
  }
  return `${tag}>${content}</${element.name}>`;
}
