import assert from "node:assert/strict";
import { errorReply } from "./error_reply.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza, StanzaKind, StanzaType } from "./stanza.ts";
import { MAX_ID_BYTES } from "./stanza_attributes.ts";
import {
  STANZA_ERROR_NAMESPACE,
  STANZA_ERROR_TYPES,
  type StanzaErrorCondition,
} from "./stanza_error.ts";
import { parseElement } from "../xml/parse_element.ts";

const ALICE = parseJid("alice@example.com/o'ne");
const BOB = parseJid("bob@example.com");

function stanza(kind: StanzaKind, type: StanzaType, attributes = " id='1'"): Stanza {
  const bytes = new TextEncoder().encode(`<${kind}${attributes}><x/></${kind}>`);
  return { kind, type, from: ALICE, to: BOB, bytes };
}

Deno.test("errorReply() swaps the addresses and keeps the id, whatever its quotes", () => {
  for (
    const [attributes, id] of [
      [" id='1'", "1"],
      [' to="x" id="a\'b"', "a'b"],
      [" id='&quot;&amp;&#x1F600;é'", '"&😀é'],
      [" p:id='no' id = 'yes'", "yes"],
      ["", undefined],
    ] as const
  ) {
    const reply = errorReply(stanza("iq", "get", attributes), "service-unavailable");
    assert.ok(reply !== undefined);
    assert.equal(reply.kind, "iq");
    assert.equal(reply.type, "error");
    assert.equal(reply.from, BOB);
    assert.equal(reply.to, ALICE);
    const tree = parseElement(reply.bytes);
    assert.equal(tree.attribute("id"), id);
    assert.equal(tree.attribute("from"), "bob@example.com");
    assert.equal(tree.attribute("to"), "alice@example.com/o'ne");
    assert.equal(tree.attribute("type"), "error");
  }
});

Deno.test("errorReply() names each condition with the type that RFC 6120 gives it", () => {
  for (const [condition, type] of Object.entries(STANZA_ERROR_TYPES)) {
    const reply = errorReply(stanza("message", "chat"), condition as StanzaErrorCondition);
    assert.ok(reply !== undefined);
    const error = parseElement(reply.bytes).child("error");
    assert.equal(error?.attribute("type"), type);
    assert.equal(error.elements.length, 1);
    assert.ok(error.child(condition, STANZA_ERROR_NAMESPACE) !== undefined);
  }
  assert.equal(Object.keys(STANZA_ERROR_TYPES).length, 22);
});

Deno.test("errorReply() adds a text and the entity that found the error", () => {
  const reply = errorReply(stanza("message", "normal"), "gone", { text: "a <b> & c", by: ALICE });
  assert.ok(reply !== undefined);
  const error = parseElement(reply.bytes).child("error");
  assert.equal(error?.child("text", STANZA_ERROR_NAMESPACE)?.text, "a <b> & c");
  assert.equal(error?.attribute("by"), ALICE.text);
});

Deno.test("errorReply() answers no reply, and no presence that only fails to find a recipient", () => {
  for (
    const [kind, type, condition, isAnswered] of [
      ["message", "error", "service-unavailable", false],
      ["iq", "error", "service-unavailable", false],
      ["iq", "result", "service-unavailable", false],
      ["presence", "error", "jid-malformed", false],
      ["presence", "unavailable", "remote-server-not-found", false],
      ["presence", "probe", "remote-server-not-found", false],
      ["presence", "available", "service-unavailable", false],
      ["presence", "available", "bad-request", true],
      ["presence", "subscribe", "service-unavailable", true],
      ["message", "groupchat", "service-unavailable", true],
    ] as const
  ) {
    const reply = errorReply(stanza(kind, type), condition);
    assert.equal(reply !== undefined, isAnswered, `${kind} ${type} ${condition}`);
  }
});

Deno.test("errorReply() reads no id from bytes that are not a stanza", () => {
  const garbage = { ...stanza("message", "chat"), bytes: Uint8Array.of(0xff, 0x3c, 0x00) };
  assert.equal(
    parseElement(errorReply(garbage, "bad-request")!.bytes).attribute("id"),
    undefined,
  );
});

Deno.test("errorReply() omits an id longer than MAX_ID_BYTES, so its size is bounded", () => {
  const longest = "x".repeat(MAX_ID_BYTES);
  const reply = errorReply(stanza("iq", "get", ` id='${longest}'`), "service-unavailable");
  assert.equal(parseElement(reply!.bytes).attribute("id"), longest);
  const bare = errorReply(stanza("iq", "get", ` id='${longest}x'`), "service-unavailable");
  assert.equal(parseElement(bare!.bytes).attribute("id"), undefined);
});
