import { createHash } from "node:crypto";

const DISCO_INFO = "http://jabber.org/protocol/disco#info";
const NODE = "https://bench.example.com";
/** Nodes of contacts that the clients want to hear of, as chat clients do (XEP-0163 §4.3). */
const FEATURES = [
  "eu.siacs.conversations.axolotl.devicelist+notify",
  "http://jabber.org/protocol/caps",
  "http://jabber.org/protocol/disco#info",
  "http://jabber.org/protocol/nick+notify",
  "urn:xmpp:avatar:metadata+notify",
  "urn:xmpp:bookmarks:1+notify",
].toSorted();
const IDENTITY = "client/pc//bench";
const VER = createHash("sha1").update(`${[IDENTITY, ...FEATURES].join("<")}<`).digest("base64");

/** Initial presence with the capabilities of the bench's clients (XEP-0115). */
export const PRESENCE = "<presence><c xmlns='http://jabber.org/protocol/caps' hash='sha-1' " +
  `node='${NODE}' ver='${VER}'/></presence>`;

/** Answer to the server's question about the capabilities. */
export function capsAnswer({ id, to }: { readonly id: string; readonly to: string }): string {
  const features = FEATURES.map((feature) => `<feature var='${feature}'/>`).join("");
  return `<iq type='result' id='${id}' to='${to}'><query xmlns='${DISCO_INFO}' ` +
    `node='${NODE}#${VER}'><identity category='client' type='pc' name='bench'/>${features}` +
    "</query></iq>";
}
