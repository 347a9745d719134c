import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import { checkSender, isSenderAllowed, senderKey } from "./sender_rules.ts";

const MESH = {
  globalHost: "example.com",
  isLocalHost: (domain: string) =>
    ["dc1.example.com", "dc2.example.com", "dc3.other.net"].includes(domain),
  isComponentDomain: (domain: string) => domain === "rooms.partner.org",
};

Deno.test("checkSender() lets each sender pass from where it may come", () => {
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ["alice@example.com/a", "dc2.example.com", undefined],
    ["example.com", "dc2.example.com", undefined],
    ["echo.example.com/x", "dc2.example.com", undefined],
    ["dc2.example.com", "dc2.example.com", undefined],
    ["admin@dc2.example.com/x", "dc2.example.com", undefined],
    ["dc1.example.com", "dc2.example.com", "sender-host-forged"],
    ["x@dc1.example.com", "dc3.other.net", "sender-host-forged"],
    ["dc3.other.net", "dc3.other.net", undefined],
    ["dc3.other.net", "dc2.example.com", "sender-host-forged"],
    ["rooms.dc3.other.net", "dc3.other.net", undefined],
    ["rooms.dc3.other.net", "dc2.example.com", "sender-foreign"],
    ["rooms.partner.org/nick", "dc2.example.com", undefined],
    ["eve@evil.net", "dc2.example.com", "sender-foreign"],
    ["eve@evil.net", "evil.net", "sender-foreign"],
    ["notexample.com", "dc2.example.com", "sender-foreign"],
    ["sub.evil.net", "evil.net", "sender-foreign"],
  ];
  for (const [sender, origin, expected] of cases) {
    assert.equal(checkSender(parseJid(sender), origin, MESH), expected, `${sender} from ${origin}`);
    assert.equal(isSenderAllowed(parseJid(sender), origin, MESH), expected === undefined);
  }
});

Deno.test("senderKey() is the full JID at the global host and the domain elsewhere", () => {
  assert.equal(senderKey(parseJid("a@example.com/x"), "example.com"), "a@example.com/x");
  assert.equal(senderKey(parseJid("room@muc.example.com/nick"), "example.com"), "muc.example.com");
});
