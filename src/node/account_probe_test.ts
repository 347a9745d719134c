import assert from "node:assert/strict";
import { buildStanza, element, FullJid, parseJid } from "../xmpp/mod.ts";
import { accountProbe, isAccountProbe } from "./account_probe.ts";

const PHONE = parseJid("alice@example.com/phone");

Deno.test("accountProbe() is a probe of the resource to its own account", () => {
  assert.ok(PHONE instanceof FullJid);
  const probe = accountProbe(PHONE);
  assert.equal(probe.from.text, "alice@example.com/phone");
  assert.equal(probe.to.text, "alice@example.com");
  assert.ok(isAccountProbe(probe));
});

Deno.test("isAccountProbe() is false for probes of clients and of other accounts", () => {
  const presence = (type: string, from: string, to: string) =>
    buildStanza(element("presence", { type }), { from: parseJid(from), to: parseJid(to) });
  for (
    const [type, from, to] of [
      ["probe", "alice@example.com", "alice@example.com"], // a client's own probe
      ["probe", "bob@example.com/x", "alice@example.com"],
      ["probe", "alice@example.com/phone", "alice@example.com/desk"],
      ["unavailable", "alice@example.com/phone", "alice@example.com"],
    ] as const
  ) assert.equal(isAccountProbe(presence(type, from, to)), false, `${type} ${from} ${to}`);
});
