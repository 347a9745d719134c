import assert from "node:assert/strict";
import { SlabAllocator } from "../../base/mod.ts";
import { errorReply } from "./error_reply.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "./stanza.ts";
import { MAX_ID_BYTES } from "./stanza_attributes.ts";
import { RefusedStanza, stanzaFrom, stanzaKind } from "./stanza_parser.ts";
import { encodeAttribute } from "../xml/escape.ts";
import { FrameScanner } from "../xml/frame_scanner.ts";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();
const ALICE = parseJid("alice@example.com/phone");
const CONTEXT = {
  slab: new SlabAllocator(),
  from: ALICE,
  fromAttribute: encodeAttribute("from", ALICE.text),
  defaultTo: ALICE.bare,
};

function read(text: string): Stanza | RefusedStanza {
  const xmlns = text.replace(/^<(\w+)/, "<$1 xmlns='jabber:client'");
  const element = new FrameScanner().scan(ENCODER.encode(xmlns));
  const kind = stanzaKind(element);
  assert.ok(kind !== undefined);
  return stanzaFrom(element, kind, CONTEXT);
}

function accepted(text: string): Stanza {
  const stanza = read(text);
  assert.ok(!(stanza instanceof RefusedStanza), text);
  return stanza;
}

Deno.test("stanzaFrom() reads kind and type by the RFCs", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["<message to='b@c'/>", "normal"],
    ["<message to='b@c' type='normal'/>", "normal"],
    ["<message to='b@c' type='chat'/>", "chat"],
    ["<message to='b@c' type='groupchat'/>", "groupchat"],
    ["<message to='b@c' type='headline'/>", "headline"],
    ["<message to='b@c' type='error'/>", "error"],
    ["<message to='b@c' type='strange'/>", "normal"],
    ["<presence/>", "available"],
    ["<presence type='unavailable'/>", "unavailable"],
    ["<presence to='b@c' type='subscribe'/>", "subscribe"],
    ["<presence to='b@c' type='subscribed'/>", "subscribed"],
    ["<presence to='b@c' type='unsubscribe'/>", "unsubscribe"],
    ["<presence to='b@c' type='unsubscribed'/>", "unsubscribed"],
    ["<presence to='b@c' type='probe'/>", "probe"],
    ["<presence to='b@c' type='error'/>", "error"],
    ["<iq to='b@c' type='get' id='1'/>", "get"],
    ["<iq to='b@c' type='set' id='1'/>", "set"],
    ["<iq to='b@c' type='result' id='1'/>", "result"],
    ["<iq to='b@c' type='error' id='1'/>", "error"],
  ];
  for (const [text, type] of cases) {
    const stanza = accepted(text);
    assert.equal(stanza.type, type, text);
    assert.equal(stanza.kind, /^<(\w+)/.exec(text)![1]);
    assert.equal(stanza.from, ALICE);
  }
});

Deno.test("stanzaFrom() normalises to, and uses the default where there is none", () => {
  assert.equal(accepted("<message to='Bob@Example.COM/R'/>").to, parseJid("bob@example.com/R"));
  assert.equal(accepted("<message to='b@c/a&amp;b&#x41;'/>").to.text, "b@c/a&bA");
  assert.equal(accepted("<message to='b@c/a\nb'/>").to.text, "b@c/a b");
  assert.equal(accepted("<message to='bücher@c'/>").to.text, "bücher@c");
  const toSelf = accepted("<message/>");
  assert.equal(toSelf.to, ALICE.bare);
  assert.equal(
    DECODER.decode(toSelf.bytes),
    "<message from='alice@example.com/phone' to='alice@example.com'/>",
  );
});

Deno.test("stanzaFrom() encodes from itself where the context has no bytes for it", () => {
  const element = new FrameScanner().scan(ENCODER.encode("<message from='x' to='b@c'/>"));
  const stanza = stanzaFrom(element, "message", {
    slab: new SlabAllocator(),
    from: parseJid("om.example/a'b&c"),
    defaultTo: ALICE.bare,
  });
  assert.ok(!(stanza instanceof RefusedStanza));
  assert.equal(
    DECODER.decode(stanza.bytes),
    "<message from='om.example/a&apos;b&amp;c' to='b@c'/>",
  );
});

Deno.test("stanzaFrom() refuses unknown types, IQs without id and invalid addresses", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["<presence type='strange'/>", "bad-request"],
    ["<presence type=''/>", "bad-request"],
    ["<iq id='1'/>", "bad-request"],
    ["<iq id='1' type='put'/>", "bad-request"],
    ["<iq type='get'/>", "bad-request"],
    ["<message to=''/>", "jid-malformed"],
    ["<message to='a@b@c' id='7'/>", "jid-malformed"],
    ["<iq to='@' type='set' id='1'/>", "jid-malformed"],
  ];
  for (const [text, condition] of cases) {
    const refused = read(text);
    assert.ok(refused instanceof RefusedStanza, text);
    assert.equal(refused.condition, condition, text);
    assert.equal(refused.stanza.to, ALICE.bare);
    const reply = errorReply(refused.stanza, refused.condition);
    assert.ok(reply !== undefined, text);
    assert.equal(reply.to, ALICE);
    assert.match(DECODER.decode(reply.bytes), new RegExp(`<${condition} `));
  }
});

Deno.test("stanzaFrom() lets no refused reply be answered", () => {
  const refused = read("<iq to='a@b@c' type='result' id='1'/>");
  assert.ok(refused instanceof RefusedStanza);
  assert.equal(errorReply(refused.stanza, refused.condition), undefined);
});

Deno.test("stanzaKind() recognises the three stanzas and no nonza", () => {
  const scanner = new FrameScanner();
  for (const name of ["message", "presence", "iq"]) {
    assert.equal(stanzaKind(scanner.scan(ENCODER.encode(`<${name}/>`))), name);
  }
  assert.equal(stanzaKind(scanner.scan(ENCODER.encode("<auth/>"))), undefined);
});

Deno.test("stanzaFrom() keeps an id of MAX_ID_BYTES as written, and refuses a longer one without repeating it", () => {
  const longest = "&amp;" + "x".repeat(MAX_ID_BYTES - 5);
  for (const start of ["<message", "<presence to='b@c'", "<iq type='get'"]) {
    accepted(`${start} id='${longest}'/>`);
    const refused = read(`${start} id='${longest}x'/>`);
    assert.ok(refused instanceof RefusedStanza);
    assert.equal(refused.condition, "policy-violation");
    const reply = DECODER.decode(errorReply(refused.stanza, refused.condition)!.bytes);
    assert.match(reply, /<policy-violation /);
    assert.doesNotMatch(reply, / id=/);
  }
  const answer = read(`<iq type='result' id='${longest}x'/>`);
  assert.ok(answer instanceof RefusedStanza);
  assert.equal(errorReply(answer.stanza, answer.condition), undefined);
});
