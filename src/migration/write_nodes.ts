import { NODE_CONFIG, NodeConfig, PUBSUB, PUBSUB_OWNER, showForm } from "../services/pep/mod.ts";
import type { PepStore } from "../storage/mod.ts";
import type { XmlElement } from "../xmpp/mod.ts";
import { element, parseElement } from "../xmpp/mod.ts";

/** Items of a node that are read: more than any node may keep. */
const MAX_ITEMS = 10_000;

/** Returns the nodes of an account as a document has them (XEP-0227): their items, then what they are. */
export async function nodeElements(
  store: PepStore,
  localpart: string,
): Promise<readonly XmlElement[]> {
  const items: XmlElement[] = [];
  const nodes: XmlElement[] = [];
  for (const { name: node, config: text } of await store.nodes(localpart)) {
    const stored = await store.newest(localpart, node, MAX_ITEMS);
    if (stored.length > 0) {
      const each = stored.map(({ id, xml }) => element("item", { id }, parsed(xml)));
      items.push(element("items", { node }, ...each));
    }
    const config = NodeConfig.decode(text);
    const fields = config.fields().map(({ name, type, values }) => ({ name, type, values }));
    nodes.push(element("configure", { node }, showForm(NODE_CONFIG, fields, "submit")));
    if (config.affiliations.size > 0) {
      const each = [...config.affiliations].map(([jid, affiliation]) =>
        element("affiliation", { jid, affiliation })
      );
      nodes.push(element("affiliations", { node }, ...each));
    }
  }
  return [
    ...(items.length === 0 ? [] : [element("pubsub", { xmlns: PUBSUB }, ...items)]),
    ...(nodes.length === 0 ? [] : [element("pubsub", { xmlns: PUBSUB_OWNER }, ...nodes)]),
  ];
}

/** Returns the tree of an element that a store keeps as text. */
export function parsed(xml: string): XmlElement {
  return parseElement(new TextEncoder().encode(xml));
}
