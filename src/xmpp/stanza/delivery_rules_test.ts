import assert from "node:assert/strict";
import type { AccountRule, DeliveryRule } from "./delivery_rules.ts";
import { deliveryRule, leastPriority, ruleForAccount } from "./delivery_rules.ts";
import { parseJid } from "../jid/jid_parser.ts";
import { parseElement } from "../xml/parse_element.ts";
import { buildStanza } from "./stanza_builder.ts";
import type { Stanza, StanzaKind, StanzaType } from "./stanza.ts";

/**
 * RFC 6121 §8.5.3.2, row by row. The last column holds for stanzas that an ended session had not
 * acknowledged.
 */
const ROWS: readonly (readonly [
  kind: StanzaKind,
  type: StanzaType,
  rule: DeliveryRule,
  rerouted: DeliveryRule,
])[] = [
  ["message", "normal", "missing", "account"],
  ["message", "chat", "account", "account"],
  ["message", "groupchat", "missing", "missing"],
  ["message", "headline", "missing", "missing"],
  ["message", "error", "ignore", "ignore"],
  ["presence", "available", "ignore", "ignore"],
  ["presence", "unavailable", "ignore", "ignore"],
  ["presence", "subscribe", "account", "account"],
  ["presence", "subscribed", "account", "account"],
  ["presence", "unsubscribe", "account", "account"],
  ["presence", "unsubscribed", "account", "account"],
  ["presence", "probe", "account", "account"],
  ["presence", "error", "ignore", "ignore"],
  ["iq", "get", "missing", "missing"],
  ["iq", "set", "missing", "missing"],
  ["iq", "result", "ignore", "ignore"],
  ["iq", "error", "ignore", "ignore"],
];

for (const [kind, type, rule, rerouted] of ROWS) {
  Deno.test(`deliveryRule() gives ${kind} ${type} for a missing full JID the rule ${rule}, ${rerouted} when rerouted`, () => {
    const stanza = stanzaTo("bob@example.com/gone", kind, type);
    assert.equal(deliveryRule(stanza, false, false), rule);
    assert.equal(deliveryRule(stanza, false, true), rerouted);
  });
}

Deno.test("deliveryRule() gives a connected full JID everything but presence for the server", () => {
  for (const [kind, type, rule] of ROWS) {
    const forServer = kind === "presence" && rule === "account";
    const stanza = stanzaTo("bob@example.com/here", kind, type);
    assert.equal(deliveryRule(stanza, true, false), forServer ? "account" : "resource");
  }
});

Deno.test("deliveryRule() gives no other resource what a room sends to a missing one", () => {
  for (const [kind, type, rule] of ROWS) {
    const stanza = stanzaTo("bob@example.com/gone", kind, type);
    for (const isRerouted of [false, true]) {
      const expected = kind === "message" && type !== "error" ? "missing" : rule;
      assert.equal(deliveryRule(stanza, false, isRerouted, true), expected);
    }
    const toAccount = deliveryRule(stanzaTo("bob@example.com", kind, type), false, false, true);
    const ownRule = ANSWERS[`${kind} ${type}`] ?? "account";
    assert.equal(toAccount, type === "groupchat" ? "account" : ownRule);
  }
});

Deno.test("deliveryRule() gives no other resource a private message in a room of a component", () => {
  const rule = (xml: string, isRerouted: boolean) =>
    deliveryRule(buildStanza(parseElement(new TextEncoder().encode(xml))), false, isRerouted);
  const mark = "<x xmlns='http://jabber.org/protocol/muc#user'/>";
  const chat = (from: string, content: string) =>
    `<message from='${from}' to='bob@example.com/gone' type='chat'><body>psst</body>${content}</message>`;
  for (const isRerouted of [false, true]) {
    assert.equal(rule(chat("coven@rooms.example.com/witch", mark), isRerouted), "missing");
    assert.equal(rule(chat("coven@rooms.example.com/witch", ""), isRerouted), "account");
    assert.equal(rule(chat("coven@rooms.example.com", mark), isRerouted), "account");
  }
  const invitation = "<message from='coven@rooms.example.com' to='bob@example.com/gone'>" +
    "<x xmlns='http://jabber.org/protocol/muc#user'><invite from='alice@example.com'/></x></message>";
  assert.equal(rule(invitation, true), "account");
});

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
    assert.equal(
      deliveryRule(stanzaTo("bob@example.com", kind, type), false, false),
      rule ?? "account",
    );
  });
}

Deno.test("leastPriority() says which available resources of an account get a stanza", () => {
  const least = (kind: StanzaKind, type: StanzaType, ...priorities: (number | undefined)[]) =>
    leastPriority(
      stanzaTo("bob@example.com", kind, type),
      priorities.map((priority) => ({ priority })),
    );
  assert.equal(least("message", "chat", 1, undefined, 5, -3), 5);
  assert.equal(least("message", "normal", 0, -1), 0);
  assert.equal(least("message", "chat", -1, undefined), Infinity);
  assert.equal(least("message", "headline", 7), 0);
  assert.equal(least("presence", "available", 7), -128);
  assert.equal(least("presence", "subscribe"), -128);
  assert.equal(least("presence", "probe", 7), Infinity);
  assert.equal(least("presence", "error", 7), Infinity);
  const chat = stanzaTo("bob@example.com", "message", "chat");
  assert.equal(leastPriority(chat, [{ priority: 2 }], 4), 4);
});

function stanzaTo(to: string, kind: StanzaKind, type: StanzaType): Stanza {
  return {
    kind,
    type,
    from: parseJid("alice@example.com/a"),
    to: parseJid(to),
    bytes: new Uint8Array(0),
  };
}
