import assert from "node:assert/strict";
import type { AccountRule, MissingResourceRule } from "./delivery_rules.ts";
import { ruleForAccount, ruleForMissingResource } from "./delivery_rules.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza, StanzaKind, StanzaType } from "./stanza.ts";

/**
 * RFC 6121 §8.5.3.2, row by row. The last column holds for stanzas that an ended session had not
 * acknowledged.
 */
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
    const stanza = stanzaTo("bob@example.com/gone", kind, type);
    assert.equal(ruleForMissingResource(stanza, false), rule);
    assert.equal(ruleForMissingResource(stanza, true), rerouted);
  });
}

const ANSWERS: Partial<Record<string, AccountRule>> = {
  "message groupchat": "refuse",
  "message error": "ignore",
  "iq get": "answer",
  "iq set": "answer",
  "iq result": "ignore",
  "iq error": "ignore",
};

for (const [kind, type] of ROWS) {
  const rule = ANSWERS[`${kind} ${type}`];
  Deno.test(`ruleForAccount() gives ${kind} ${type} the rule ${rule ?? "that resources decide"}`, () => {
    assert.equal(ruleForAccount(stanzaTo("bob@example.com", kind, type)), rule);
    assert.equal(ruleForAccount(stanzaTo("bob@example.com/gone", kind, type)), undefined);
  });
}

function stanzaTo(to: string, kind: StanzaKind, type: StanzaType): Stanza {
  return {
    kind,
    type,
    from: parseJid("alice@example.com/a"),
    to: parseJid(to),
    bytes: new Uint8Array(0),
  };
}
