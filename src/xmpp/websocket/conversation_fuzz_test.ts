import assert from "node:assert/strict";
import fc from "fast-check";
import { C2sFixture, plainOf } from "../c2s/testing/c2s_fixture.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { MemoryWebSocket } from "./testing/memory_websocket.ts";
import { WebSocketTransport } from "./websocket_transport.ts";

const OPEN = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.com' version='1.0'/>";
const CLOSE = "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>";

const CONVERSATION = [
  OPEN,
  plainOf("alice"),
  OPEN,
  "<iq xmlns='jabber:client' type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>" +
  "<resource>home</resource></bind></iq>",
  "<presence xmlns='jabber:client'><priority>1</priority></presence>",
  "<message xmlns='jabber:client' to='alice@example.com/home'><body>&lt;ü&gt;</body></message>",
  CLOSE,
];

const PIECES = [
  ..."<>/='\"&; \n!?-]x\0\u00e4\u{1f600}",
  "<![CDATA[",
  "<!DOCTYPE",
  "xmlns='",
  OPEN,
  CLOSE,
  "<a xmlns='b'/>",
];

/** A change of a message, or of its place in the conversation. */
const MUTATION = fc.record({
  message: fc.nat(CONVERSATION.length - 1),
  what: fc.constantFrom("edit", "drop", "repeat", "swap"),
  at: fc.nat(120),
  removed: fc.nat(8),
  inserted: fc.constantFrom("", ...PIECES),
});

Deno.test("WebSocketTransport ends mutated conversations with a peer's error, never with its own", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(MUTATION, { maxLength: 4 }),
      fc.boolean(),
      async (mutations, isHasty) => {
        const messages = [...CONVERSATION];
        for (const { message, what, at, removed, inserted } of mutations) {
          const text = messages[message];
          if (text === undefined) continue; // an earlier mutation removed it
          if (what === "edit") {
            messages[message] = text.slice(0, at) + inserted + text.slice(at + removed);
          } else if (what === "drop") messages.splice(message, 1);
          else if (what === "repeat") messages.splice(message, 0, text);
          else messages.push(...messages.splice(message, 1));
        }
        await using fixture = new C2sFixture();
        const client = new MemoryWebSocket();
        fixture.listener.acceptTransport(new WebSocketTransport(client, resolveStreamLimits()));
        for (const message of messages) {
          client.say(message);
          if (!isHasty) await new Promise((resolve) => setImmediate(resolve));
        }
        while (client.isPaused) await new Promise((resolve) => setImmediate(resolve));
        client.lose(undefined);
        await new Promise((resolve) => setImmediate(resolve));
        assert(!client.unread.join("").includes("internal-server-error"), client.unread.join("\n"));
        assert.deepEqual(fixture.log.named("c2s.stream.broken"), []);
        await fixture.registry.settled();
        assert.equal(fixture.registry.count, 0);
        assert.deepEqual(fixture.opened, fixture.closed);
        if (mutations.length === 0) assert.deepEqual(fixture.opened, ["alice@example.com/home"]);
      },
    ),
    { numRuns: 200 },
  );
});
