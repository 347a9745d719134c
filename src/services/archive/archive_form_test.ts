import { strictEqual } from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza, StanzaType } from "../../xmpp/mod.ts";
import { isArchivable, withArchiveId } from "./archive_form.ts";
import { archiveIdText, tryArchiveId } from "./archive_id.ts";

const BOB = "bob@example.com";

function message(content: string, type: StanzaType = "chat"): Stanza {
  const text = `<message from='alice@example.com/desk' to='${BOB}' type='${type}'>${content}` +
    "</message>";
  return {
    kind: "message",
    type,
    from: parseJid("alice@example.com/desk"),
    to: parseJid(BOB),
    bytes: new TextEncoder().encode(text),
  };
}

const BODY = "<body>hi</body>";
const hint = (name: string) => `<${name} xmlns='urn:xmpp:hints'/>`;
const marker = (name: string) => `<${name} xmlns='urn:xmpp:chat-markers:0' id='1'/>`;
const invitation = (side: string) =>
  `<x xmlns='http://jabber.org/protocol/muc#user'><invite ${side}='carol@example.com'/></x>`;
const STATE = "<active xmlns='http://jabber.org/protocol/chatstates'/>";

Deno.test("isArchivable() takes what is said, and obeys hints and options", () => {
  const rows: readonly [string, StanzaType, boolean][] = [
    [BODY, "chat", true],
    [BODY, "normal", true],
    [BODY, "headline", false],
    [BODY, "error", false],
    [BODY, "groupchat", false],
    ["", "chat", false],
    [STATE, "chat", false],
    [BODY + STATE, "chat", true],
    ["<body xmlns='urn:x'>hi</body>", "chat", false],
    [STATE + hint("store"), "chat", true],
    [BODY + hint("no-store"), "chat", false],
    [BODY + hint("no-permanent-store"), "chat", false],
    [hint("store") + hint("no-store"), "chat", false],
    [BODY + hint("no-copy"), "chat", true],
    ["<encrypted xmlns='eu.siacs.conversations.axolotl'/>", "chat", true],
    [marker("received"), "chat", false],
    ["<result xmlns='urn:xmpp:mam:2'/>", "normal", false],
    [invitation("from"), "normal", true],
    [invitation("from") + hint("no-store"), "normal", false],
    [invitation("to"), "normal", false],
    ["<x xmlns='http://jabber.org/protocol/muc#user'><status code='172'/></x>", "normal", false],
    ["<x xmlns='jabber:x:conference' jid='coven@conference.example.com'/>", "normal", true],
  ];
  const options = { hasChatMarkers: false, hasGroupchats: false };
  for (const [content, type, expected] of rows) {
    strictEqual(isArchivable(message(content, type), options), expected, `${type} ${content}`);
  }
  const all = { hasChatMarkers: true, hasGroupchats: true };
  strictEqual(isArchivable(message(BODY, "groupchat"), all), true);
  strictEqual(isArchivable(message(invitation("from"), "groupchat"), all), false);
  strictEqual(isArchivable(message(marker("displayed")), all), true);
  strictEqual(isArchivable(message(marker("markable")), all), false);
});

Deno.test("withArchiveId() adds the id of the archive, and takes out those that others made up", () => {
  const text = (content: string, id?: string) => {
    const bytes = withArchiveId(message(content), BOB, id);
    return /^<message [^>]*>(.*)<\/message>$/.exec(new TextDecoder().decode(bytes))?.[1];
  };
  const sid = (by: string, id: string) =>
    `<stanza-id xmlns='urn:xmpp:sid:0' by='${by}' id='${id}'/>`;
  strictEqual(text(BODY, "a-b"), `${BODY}${sid(BOB, "a-b")}`);
  strictEqual(text(BODY), BODY);
  const others = sid("room@example.org", "1") + "<origin-id xmlns='urn:xmpp:sid:0' id='2'/>";
  strictEqual(text(sid(BOB, "x") + BODY + others, "a-b"), BODY + others + sid(BOB, "a-b"));
  strictEqual(text(BODY + sid("BOB@Example.com", "x") + sid(BOB, "y")), BODY);
  strictEqual(
    text(`${BODY}<p:stanza-id xmlns:p='urn:xmpp:sid:0' p:by='1' by='${BOB}' id='1'/>`),
    BODY,
  );
});

Deno.test("tryArchiveId() reads what archiveIdText() writes, and nothing else", () => {
  for (const id of [{ process: 2 ** 52 - 1, sequence: 1 }, { process: 1, sequence: 2 ** 53 - 1 }]) {
    const found = tryArchiveId(archiveIdText(id));
    strictEqual(found?.process, id.process);
    strictEqual(found?.sequence, id.sequence);
  }
  for (
    const text of [
      "",
      "-",
      "1",
      "1-",
      "-1",
      "01-1",
      "A-1",
      "1-1-1",
      " 1-1",
      "zzzzzzzzzzz-1",
      "1-1\n",
    ]
  ) {
    strictEqual(tryArchiveId(text), undefined, text);
  }
});
