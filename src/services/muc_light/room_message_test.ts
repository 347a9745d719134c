import { deepStrictEqual } from "node:assert/strict";
import { parseElement, parseJid, readdress, serialize } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { numberedMessage, roomMessage } from "./room_message.ts";

const ROOM = parseJid("coven@muclight.example.com").bare;
const ALICE = parseJid("alice@example.com/x");
const BOB = parseJid("bob@example.com");

Deno.test("numberedMessage() makes the same bytes of a message that a database has kept", () => {
  const xml = `<message xml:lang='en' from='${ALICE.text}' to='${ROOM.text}' type='groupchat' ` +
    `id='a"&apos;&lt;'><body>h&lt;i '" &#38;</body>` +
    `<x:y xmlns:x='urn:x' x:a='1'>\n<z xmlns='q'/></x:y></message>`;
  const bytes = new TextEncoder().encode(xml);
  const sent: Stanza = { kind: "message", type: "groupchat", from: ALICE, to: ROOM, bytes };
  const message = roomMessage(sent, ROOM);
  const kept = parseElement(new TextEncoder().encode(serialize(message)));
  const live = numberedMessage(message, { room: ROOM, to: ALICE.bare, number: 7 });
  const read = numberedMessage(kept, { room: ROOM, to: BOB, number: 7 });
  deepStrictEqual(readdress(live, BOB).bytes, read.bytes);
});
