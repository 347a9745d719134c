import assert from "node:assert/strict";
import type { MessageType, Stanza } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { isForOffline, readOffline, withDelay } from "./offline_form.ts";

const [ALICE, BOB] = ["alice@example.org/desk", "bob@example.org"];
const STATE = "<active xmlns='http://jabber.org/protocol/chatstates'/>";
const NO_STORE = "<no-store xmlns='urn:xmpp:hints'/>";

function message(content: string, type: MessageType = "chat"): Stanza {
  const text = content === ""
    ? `<message from='${ALICE}' to='${BOB}' type='${type}'/>`
    : `<message from='${ALICE}' to='${BOB}' type='${type}'>${content}</message>`;
  const bytes = new TextEncoder().encode(text);
  return { kind: "message", type, from: parseJid(ALICE), to: parseJid(BOB), bytes };
}

const CASES: readonly (readonly [string, boolean, MessageType?])[] = [
  ["<body>hi</body>", true],
  ["<body>hi</body>", true, "normal"],
  ["<body>hi</body>", false, "headline"],
  ["<body>hi</body>", false, "groupchat"],
  ["<body>hi</body>", false, "error"],
  [`<body>hi</body>${STATE}`, true],
  ["<received xmlns='urn:xmpp:receipts' id='1'/>", true],
  ["<subject>hi</subject>", true, "normal"],
  ["", false],
  [STATE, false],
  [`${STATE}<thread>1</thread>`, false],
  [`${STATE}<origin-id xmlns='urn:xmpp:sid:0' id='1'/>`, false],
  [`<body>hi</body>${NO_STORE}`, false],
  [`${NO_STORE}<body>hi</body>`, false],
  ["<body>hi</body><no-store xmlns='urn:other'/>", true],
  ["<body>hi</body><no-permanent-store xmlns='urn:xmpp:hints'/>", true],
  [`${STATE}<store xmlns='urn:xmpp:hints'/>`, true],
  ["<body><![CDATA[</message><no-store xmlns='urn:xmpp:hints'/>]]></body>", true],
];

for (const [content, expected, type] of CASES) {
  Deno.test(`isForOffline() is ${expected} for ${type ?? "chat"} with ${content || "nothing"}`, () => {
    assert.equal(isForOffline(message(content, type)), expected);
  });
}

Deno.test("withDelay() notes the time, and replaces notes that claim to be from the host", () => {
  const forged = (from: string) =>
    `<delay xmlns='urn:xmpp:delay' from='${from}' stamp='2001-01-01T00:00:00Z'/>`;
  const content = `${forged("EXAMPLE.org")}<body>a</body>${forged("example.com")}` +
    `${forged("example.org")}<x xmlns='urn:x'><y/></x>`;
  const sentAtMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  const bytes = withDelay(message(content), "example.org", sentAtMs);
  assert.equal(
    new TextDecoder().decode(bytes),
    `<message from='${ALICE}' to='${BOB}' type='chat'><body>a</body>${forged("example.com")}` +
      "<x xmlns='urn:x'><y/></x><delay xmlns='urn:xmpp:delay' from='example.org' " +
      "stamp='2026-01-02T03:04:05.678Z'>Offline storage</delay></message>",
  );
});

Deno.test("readOffline() reads what withDelay() has made", () => {
  for (const type of ["chat", "normal"] as const) {
    const stanza = message("<body>a</body>", type);
    const bytes = withDelay(stanza, "example.org", 0);
    const read = readOffline(bytes);
    assert.deepEqual(
      [read.kind, read.type, read.from.text, read.to.text, read.bytes],
      ["message", type, ALICE, BOB, bytes],
    );
  }
  assert.throws(() => readOffline(new TextEncoder().encode("<message to='a@b'/>")));
});
