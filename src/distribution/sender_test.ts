import assert from "node:assert/strict";
import { parseJid } from "../xmpp/mod.ts";
import { senderKey } from "./sender.ts";

Deno.test("senderKey() is the full JID where users log in, and the domain elsewhere", () => {
  const hosts = { globalHost: "example.com", hosts: new Set(["example.com", "dc1.example.com"]) };
  const key = (from: string) => senderKey(parseJid(from), hosts);
  assert.equal(key("a@example.com/x"), "a@example.com/x");
  assert.equal(key("carol@dc1.example.com/x"), "carol@dc1.example.com/x");
  assert.equal(key("carol@dc2.example.com/x"), "dc2.example.com");
  assert.equal(key("room@muc.example.com/nick"), "muc.example.com");
  assert.equal(key("a@example.org/x"), "example.org");
});
