import assert from "node:assert/strict";
import { Envelope } from "../distribution/mod.ts";
import { isAsItSays, parseElement, parseJid } from "../xmpp/mod.ts";
import { makeBroughtCarbons } from "./node_carbons.ts";

const carbonOf = makeBroughtCarbons({ globalHost: "example.com" });

function message(from: string, content = "<body>hi</body>"): Envelope {
  const text = `<message type='chat' from='${from}' to='bob@example.com/x'>${content}</message>`;
  return new Envelope({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid(from),
      to: parseJid("bob@example.com/x"),
      bytes: new TextEncoder().encode(text),
    },
    process: 7,
    sequence: 9,
    origin: "dc1.example.com",
    sentAtUs: 5,
    ttl: 3,
    bounces: 1,
    mayBeRepeat: true,
  });
}

Deno.test("makeBroughtCarbons() wraps a message for its sender's own sessions, under the same id", () => {
  const { stanza, ...fields } = carbonOf(message("alice@example.com/phone"))!;
  assert.ok(isAsItSays(stanza));
  assert.deepEqual([stanza.from.text, stanza.to.text], ["alice@example.com", "alice@example.com"]);
  const [sent] = parseElement(stanza.bytes, "jabber:client").elements;
  assert.deepEqual([sent!.name, sent!.namespace], ["sent", "urn:xmpp:carbons:2"]);
  const { process, sequence, origin, ttl, mayBeRepeat, isCopy, isCarbon, isSpread, entry } = fields;
  assert.deepEqual([process, sequence, origin, ttl, mayBeRepeat], [
    7,
    9,
    "dc1.example.com",
    3,
    true,
  ]);
  assert.deepEqual([isCopy, isCarbon, isSpread, entry], [true, true, true, "sent-once"]);
});

Deno.test("makeBroughtCarbons() makes none for hosts, components and what cannot be wrapped", () => {
  for (const from of ["example.com", "echo.example.com/x", "alice@dc1.example.com/x"]) {
    assert.equal(carbonOf(message(from)), undefined, from);
  }
  const deep = "<a>".repeat(250) + "</a>".repeat(250);
  assert.equal(carbonOf(message("alice@example.com/x", deep)), undefined);
});
