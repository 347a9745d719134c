import type { Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  findChild,
  parseElement,
  stanzaElement,
  stanzaSource,
} from "../../xmpp/mod.ts";
import { PUBSUB_EVENT } from "./namespaces.ts";

/** A change of a node that somebody is notified of. */
export type NodeChange =
  /** Without `xml`, the item has no payload, or one that the recipient's node reads itself. */
  | { readonly kind: "item"; readonly id: string; readonly xml: string | undefined }
  | { readonly kind: "retract"; readonly ids: readonly string[] }
  | { readonly kind: "purge" | "delete" }
  /** Anything that concerns the nodes of the owner's sessions alone, and no client. */
  | { readonly kind: "configuration" };

/** A notification as it arrives. */
export interface ArrivedEvent {
  readonly node: string;
  /** True for a change that no client is told of. */
  readonly isInternal: boolean;
  /** The item that was published; undefined for another change. */
  readonly item: { readonly id: string; readonly payload: XmlElement | undefined } | undefined;
}

/** Builds the notification of a change (XEP-0060 §7.1.2.1, §7.2.2.1, §8.4, §8.5). */
export function eventStanza(
  { node, change }: { readonly node: string; readonly change: NodeChange },
  addresses: { readonly from: Jid; readonly to: Jid; readonly id?: string },
): Stanza {
  const { from, to, id } = addresses;
  const event = element("event", { xmlns: PUBSUB_EVENT }, contentOf(node, change));
  return buildStanza(element("message", { type: "headline", id }, event), { from, to });
}

function contentOf(node: string, change: NodeChange): XmlElement {
  switch (change.kind) {
    case "item":
      return element(
        "items",
        { node },
        element("item", { id: change.id }, change.xml === undefined ? undefined : tree(change.xml)),
      );
    case "retract":
      return element("items", { node }, ...change.ids.map((id) => element("retract", { id })));
    default:
      return element(change.kind, { node });
  }
}

/** Reads a notification that a node of the mesh has built. Undefined for another stanza. */
export function readEvent(stanza: Stanza): ArrivedEvent | undefined {
  if (findChild(stanzaSource(stanza.bytes), "event", PUBSUB_EVENT) === undefined) return undefined;
  const [content] = stanzaElement(stanza).child("event", PUBSUB_EVENT)?.elements ?? [];
  const node = content?.attribute("node");
  if (content === undefined || node === undefined) return undefined;
  const item = content.name === "items" ? content.child("item") : undefined;
  const [payload] = item?.elements ?? [];
  return {
    node,
    isInternal: content.name === "configuration",
    item: item && { id: item.attribute("id") ?? "", payload },
  };
}

/** Returns the tree of stored XML. */
export function tree(xml: string): XmlElement {
  return parseElement(new TextEncoder().encode(xml));
}
