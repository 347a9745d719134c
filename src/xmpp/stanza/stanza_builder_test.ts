import assert from "node:assert/strict";
import { CausewayError, SlabAllocator } from "../../base/mod.ts";
import { parseJid } from "../jid/jid_parser.ts";
import { stanzaId } from "./stanza_attributes.ts";
import { buildStanza, stanzaElement } from "./stanza_builder.ts";
import { element } from "../xml/xml_element.ts";

const ALICE = parseJid("alice@example.com/one");
const BOB = parseJid("bob@example.com");

function rejectsWith(code: string): (thrown: unknown) => boolean {
  return (thrown) => thrown instanceof CausewayError && thrown.code === code;
}

Deno.test("buildStanza() makes self-contained bytes and the fields that routing needs", () => {
  const tree = element(
    "iq",
    { type: "result", id: "a'1" },
    element("query", { xmlns: "jabber:iq:roster" }, element("item", { jid: "c@d" })),
  );
  for (const options of [{}, { slab: new SlabAllocator() }]) {
    const stanza = buildStanza(tree, { from: ALICE, to: BOB, ...options });
    assert.equal(stanza.kind, "iq");
    assert.equal(stanza.type, "result");
    assert.equal(stanza.from, ALICE);
    assert.equal(stanza.to, BOB);
    assert.equal(
      new TextDecoder().decode(stanza.bytes),
      "<iq type='result' id='a&apos;1' from='alice@example.com/one' to='bob@example.com'>" +
        "<query xmlns='jabber:iq:roster'><item jid='c@d'/></query></iq>",
    );
    assert.equal(stanzaId(stanza), "a'1");
    assert.equal(stanzaElement(stanza).elements[0]?.namespace, "jabber:iq:roster");
  }
});

Deno.test("buildStanza() puts written content into an element that has none", () => {
  const content = "<query xmlns='jabber:iq:roster'/>";
  const iq = element("iq", { type: "result", id: "1" });
  const stanza = buildStanza(iq, { from: ALICE, to: BOB, content });
  const tree = element("iq", iq.attributes, element("query", { xmlns: "jabber:iq:roster" }));
  assert.deepEqual(stanza.bytes, buildStanza(tree, { from: ALICE, to: BOB }).bytes);
  assert.throws(() => buildStanza(tree, { from: ALICE, to: BOB, content }), TypeError);
});

Deno.test("buildStanza() takes addresses from the element by default", () => {
  const stanza = buildStanza(
    element("message", { from: "Alice@example.com/one", to: "bob@example.com" }),
  );
  assert.equal(stanza.from, ALICE);
  assert.equal(stanza.to, BOB);
  assert.equal(stanza.type, "normal");
  assert.equal(stanzaElement(stanza).attribute("from"), ALICE.text);
});

Deno.test("buildStanza() refuses an element that is not a valid stanza", () => {
  const addresses = { from: ALICE, to: BOB };
  const malformed = rejectsWith("xmpp/stanza-malformed");
  assert.throws(() => buildStanza(element("auth"), addresses), malformed);
  assert.throws(() => buildStanza(element("iq", { xmlns: "urn:x" }), addresses), malformed);
  assert.throws(() => buildStanza(element("iq"), addresses), malformed);
  assert.throws(() => buildStanza(element("presence", { type: "x" }), addresses), malformed);
  assert.throws(() => buildStanza(element("message"), { from: ALICE }), malformed);
  assert.throws(
    () => buildStanza(element("message", { to: "a@b@c" }), { from: ALICE }),
    rejectsWith("xmpp/jid-malformed"),
  );
});
