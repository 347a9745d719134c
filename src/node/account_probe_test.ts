import assert from "node:assert/strict";
import { buildStanza, element, FullJid, parseJid } from "../xmpp/mod.ts";
import { accountProbe, isAccountProbe, readdress } from "./account_probe.ts";

const PHONE = parseJid("alice@example.com/phone");

Deno.test("accountProbe() is a probe of the resource to its own account", () => {
  assert.ok(PHONE instanceof FullJid);
  const probe = accountProbe(PHONE);
  assert.equal(probe.from.text, "alice@example.com/phone");
  assert.equal(probe.to.text, "alice@example.com");
  assert.ok(isAccountProbe(probe));
});

Deno.test("isAccountProbe() tells it from what clients and other accounts send", () => {
  const presence = (type: string, from: string, to: string) =>
    buildStanza(element("presence", { type }), { from: parseJid(from), to: parseJid(to) });
  for (
    const [type, from, to] of [
      ["probe", "alice@example.com", "alice@example.com"], // as a client's own is sent
      ["probe", "bob@example.com/x", "alice@example.com"],
      ["probe", "alice@example.com/phone", "alice@example.com/desk"],
      ["unavailable", "alice@example.com/phone", "alice@example.com"],
    ] as const
  ) assert.equal(isAccountProbe(presence(type, from, to)), false, `${type} ${from} ${to}`);
});

Deno.test("readdress() changes nothing but the recipient", () => {
  const from = parseJid("alice@example.com/desk");
  const last = buildStanza(element("presence", {}, element("priority", {}, "5")), {
    from,
    to: from.bare,
  });
  const told = readdress(last, PHONE);
  assert.deepEqual([told.kind, told.type, told.from.text], ["presence", "available", from.text]);
  assert.equal(told.to.text, PHONE.text);
  const text = new TextDecoder().decode(told.bytes);
  assert.match(text, /to=['"]alice@example\.com\/phone['"]/);
  assert.match(text, /<priority>5<\/priority>/);
});
