import assert from "node:assert/strict";
import type { MissingResourceRule } from "./delivery_rules.ts";
import { ruleForMissingResource } from "./delivery_rules.ts";
import { parseJid } from "./jid_parser.ts";
import type { StanzaKind, StanzaType } from "./stanza.ts";

/** RFC 6121 §8.5.3.2, row by row; the last column is for what a session that ended had not acknowledged. */
const ROWS: readonly (readonly [
  kind: StanzaKind,
  type: StanzaType,
  rule: MissingResourceRule,
  rerouted: MissingResourceRule,
])[] = [
  ["message", "normal", "refuse", "account"],
  ["message", "chat", "account", "account"],
  ["message", "groupchat", "refuse", "refuse"],
  ["message", "headline", "refuse", "refuse"],
  ["message", "error", "ignore", "ignore"],
  ["presence", "available", "ignore", "ignore"],
  ["presence", "unavailable", "ignore", "ignore"],
  ["presence", "subscribe", "account", "account"],
  ["presence", "subscribed", "account", "account"],
  ["presence", "unsubscribe", "account", "account"],
  ["presence", "unsubscribed", "account", "account"],
  ["presence", "probe", "account", "account"],
  ["presence", "error", "ignore", "ignore"],
  ["iq", "get", "refuse", "refuse"],
  ["iq", "set", "refuse", "refuse"],
  ["iq", "result", "ignore", "ignore"],
  ["iq", "error", "ignore", "ignore"],
];

for (const [kind, type, rule, rerouted] of ROWS) {
  Deno.test(`ruleForMissingResource() gives ${kind} ${type} the rule ${rule}, ${rerouted} when rerouted`, () => {
    const stanza = {
      kind,
      type,
      from: parseJid("alice@example.com/a"),
      to: parseJid("bob@example.com/gone"),
      bytes: new Uint8Array(0),
    };
    assert.equal(ruleForMissingResource(stanza, false), rule);
    assert.equal(ruleForMissingResource(stanza, true), rerouted);
  });
}
