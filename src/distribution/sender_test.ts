import assert from "node:assert/strict";
import { parseJid } from "../xmpp/mod.ts";
import { senderKey } from "./sender.ts";

Deno.test("senderKey() is the full JID at the global host and the domain elsewhere", () => {
  assert.equal(senderKey(parseJid("a@example.com/x"), "example.com"), "a@example.com/x");
  assert.equal(senderKey(parseJid("room@muc.example.com/nick"), "example.com"), "muc.example.com");
  assert.equal(senderKey(parseJid("a@example.org/x"), "example.com"), "example.org");
});
