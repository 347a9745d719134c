import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { peerIn, roomPeerIn, searchableText } from "./archive_content.ts";

const BODY = "<body>hi</body>";
const hint = (name: string) => `<${name} xmlns='urn:xmpp:hints'/>`;
const STATE = "<active xmlns='http://jabber.org/protocol/chatstates'/>";

function message(content: string): { readonly bytes: Uint8Array } {
  const text = `<message from='alice@example.com/desk' to='bob@example.com'>${content}</message>`;
  return { bytes: new TextEncoder().encode(text) };
}

Deno.test("searchableText() has the bodies of a message, and nothing that is encrypted", () => {
  const eme = "<encryption xmlns='urn:xmpp:eme:0' namespace='urn:xmpp:otr:0'/>";
  const html = "<html xmlns='http://jabber.org/protocol/xhtml-im'><body>bold</body></html>";
  const rows: readonly [string, string][] = [
    [BODY, "hi"],
    [
      "<subject>s</subject><body>a &amp; b</body><body xml:lang='de'>\u00fcber</body>",
      "a & b\n\u00fcber",
    ],
    [BODY + html + "<body xmlns='urn:x'>no</body>", "hi"],
    [STATE + hint("store"), ""],
    ["<body/>", ""],
    [`${BODY}<encrypted xmlns='eu.siacs.conversations.axolotl'/>`, ""],
    [`${BODY}<encrypted xmlns='urn:xmpp:omemo:2'/>`, ""],
    [`${BODY}<openpgp xmlns='urn:xmpp:openpgp:0'>aGk=</openpgp>`, ""],
    [`<x xmlns='jabber:x:encrypted'>aGk=</x>${BODY}`, ""],
    [BODY + eme, ""],
  ];
  for (const [content, expected] of rows) {
    strictEqual(searchableText(message(content)), expected, content);
  }
});

Deno.test("searchableText() is bounded, and has whole characters", () => {
  const long = "x".repeat(65_536);
  strictEqual(searchableText(message(`<body>${long}</body>`)), long);
  strictEqual(searchableText(message(`<body>${long}y</body><body>z</body>`)), long);
  strictEqual(searchableText(message(`<body>${long}</body><body>z</body>`)), long);
  const cut = searchableText(message(`<body>${long.slice(1)}\u{1f600}</body>`));
  strictEqual(cut, `${long.slice(1)}\ufffd`);
});

Deno.test("peerIn() is the other side of a message", () => {
  const peer = (attributes: string) =>
    peerIn(new TextEncoder().encode(`<message ${attributes}>${BODY}</message>`), "a@x.y");
  const bob = { bare: "b@x.y", resourcepart: "" };
  deepStrictEqual(peer("from='a@x.y/desk' to='b@x.y'"), bob);
  deepStrictEqual(peer("from='b@x.y' to='a@x.y/desk'"), bob);
  deepStrictEqual(peer("from='b@x.y/\u{1f600}' to='a@x.y'"), {
    bare: "b@x.y",
    resourcepart: "\u{1f600}",
  });
  deepStrictEqual(peer("from='a@x.y/desk' to='a@x.y'"), { bare: "a@x.y", resourcepart: "" });
  strictEqual(peer("to='a@x.y'"), undefined);
  strictEqual(peerIn(new TextEncoder().encode("no XML"), "a@x.y"), undefined);
});

Deno.test("roomPeerIn() returns the room with the nickname that a message comes from", () => {
  const peer = (attributes: Readonly<Record<string, string>>) =>
    roomPeerIn({ attributes }, "r@x.y");
  deepStrictEqual(peer({ from: "r@x.y/d\u00fcne" }), { bare: "r@x.y", resourcepart: "d\u00fcne" });
  for (const attributes of [{ from: "r@x.y" }, {}, { from: "b@x.y/d" }]) {
    deepStrictEqual(peer(attributes), { bare: "r@x.y", resourcepart: "" });
  }
});
