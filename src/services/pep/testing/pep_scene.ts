/** Sessions of an owner, of a contact and of a stranger. */
export const ALICE = "alice@example.com/desk";
export const BOB = "bob@example.com/phone";
export const STRANGER = "carol@example.com/desk";
/** Names of nodes. */
export const TUNE = "http://jabber.org/protocol/tune";
export const MOOD = "http://jabber.org/protocol/mood";
/** The namespace of an owner's requests. */
export const OWNER = "http://jabber.org/protocol/pubsub#owner";
/** The type of the form that configures a node. */
export const CONFIG = "http://jabber.org/protocol/pubsub#node_config";

/** Returns an item with a payload. */
export function item(id: string, text = id): string {
  return `<item id='${id}'><tune xmlns='${TUNE}'>${text}</tune></item>`;
}

/** Returns the items, retracted items and other changes in notifications. */
export function changesIn(stanzas: readonly string[]): readonly string[] {
  return stanzas.map((text) => /<(?:item|retract) id='([^']*)'|<(purge|delete) node/.exec(text))
    .map((found) => found?.[1] ?? found?.[2] ?? "none");
}

/** Returns the payload of a request for publish-subscribe. */
export function pubsub(content: string, namespace = "http://jabber.org/protocol/pubsub"): string {
  return `<pubsub xmlns='${namespace}'>${content}</pubsub>`;
}

/** Returns the ids of the items in an answer, in order. */
export function idsIn(answer: string): readonly string[] {
  return [...answer.matchAll(/<item id='([^']*)'/g)].map(([, id]) => id!);
}

/** Returns the payload that retracts an item. */
export function retraction(id: string): string {
  return pubsub(`<retract node='${TUNE}'><item id='${id}'/></retract>`);
}

/** Returns the payload that sets the affiliations of a node, or asks for them if `list` is empty. */
export function affiliations(list: Readonly<Record<string, string>>, node = TUNE): string {
  const each = Object.entries(list).map(([jid, affiliation]) =>
    `<affiliation jid='${jid}' affiliation='${affiliation}'/>`
  );
  return pubsub(`<affiliations node='${node}'>${each.join("")}</affiliations>`, OWNER);
}
