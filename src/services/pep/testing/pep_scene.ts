/** Sessions of an owner and of a contact. */
export const ALICE = "alice@example.com/desk";
export const BOB = "bob@example.com/phone";
/** Names of nodes. */
export const TUNE = "http://jabber.org/protocol/tune";
export const MOOD = "http://jabber.org/protocol/mood";
export const OWNER = "http://jabber.org/protocol/pubsub#owner";

/** Returns an item with a payload. */
export function item(id: string, text = id): string {
  return `<item id='${id}'><tune xmlns='${TUNE}'>${text}</tune></item>`;
}

/** Returns the items, retracted items and other changes in notifications. */
export function changesIn(stanzas: readonly string[]): readonly string[] {
  return stanzas.map((text) => /<(?:item|retract) id='([^']*)'|<(purge|delete) node/.exec(text))
    .map((found) => found?.[1] ?? found?.[2] ?? "none");
}
