import assert from "node:assert/strict";
import fc from "fast-check";
import { C2sFixture, HEADER, plainOf, SASL, SASL2 } from "./testing/c2s_fixture.ts";
import { agentXml, authenticateXml, bind2Xml } from "./testing/sasl2_fixture.ts";

const BY_SASL2 = HEADER +
  authenticateXml("alice", agentXml("d4565fa7-4d72-4749-b3d3-740edbf87770"), { password: "no" }) +
  `<authenticate xmlns='${SASL2}' mechanism='PLAIN'/><abort xmlns='${SASL2}'/>` +
  authenticateXml(
    "alice",
    "<resume xmlns='urn:xmpp:sm:3' previd='1-00000000000000000000000000000000' h='0'/>" +
      bind2Xml("<tag>fuzz</tag><enable xmlns='urn:xmpp:sm:3' resume='true'/>"),
  ) +
  "<presence/><message to='alice@example.com' id='m'><body>&lt;ü&gt;</body></message>" +
  "</stream:stream>";

const CONVERSATION = HEADER +
  `<auth xmlns='${SASL}' mechanism='SCRAM-SHA-1'>biwsbj1hbGljZSxyPWFiYw==</auth>` +
  `<abort xmlns='${SASL}'/>` + plainOf("alice") + HEADER +
  "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>" +
  "<resource>home</resource></bind></iq><presence><priority>1</priority></presence>" +
  "<message to='alice@example.com/home' id='m'><body>&lt;ü&gt;</body></message>" +
  "<iq type='get' to='example.com' id='i'><q xmlns='x:y'/></iq><presence to='bob@example.com'/>" +
  "</stream:stream>";

/** Bytes that mean something to XML, and some that do not. */
const PIECES = [
  ..."<>/='\"&; \n!?-]x\0\u00e4\u{1f600}",
  "<![CDATA[",
  "<!--",
  "<?x",
  "<!DOCTYPE",
  "&#0;",
  "xmlns='",
  "</stream:stream>",
  HEADER,
];

const MUTATION = fc.record({
  at: fc.nat(Math.max(CONVERSATION.length, BY_SASL2.length)),
  removed: fc.nat(8),
  inserted: fc.oneof(fc.constantFrom(...PIECES), fc.string({ maxLength: 4 })),
});

/** Closes whatever a mutation has left open: XML allows nothing after it. */
const ENDING = "]]>'>\"><!DOCTYPE x>";

Deno.test("C2sListener accepts the conversation before its mutations", async () => {
  await using fixture = new C2sFixture();
  const peer = fixture.connect();
  peer.send(CONVERSATION + ENDING);
  const answer = await peer.expectClosed();
  assert.match(answer, /<jid>alice@example\.com\/home<\/jid>.*<message .*<\/stream:stream>$/);
  assert.deepEqual(fixture.opened, ["alice@example.com/home"]);
});

Deno.test("C2sListener accepts the conversation by SASL2 before its mutations", async () => {
  await using fixture = new C2sFixture();
  const peer = fixture.connect();
  peer.send(BY_SASL2 + ENDING);
  const answer = await peer.expectClosed();
  assert.match(answer, /<failed .*<bound .*<failed .*<message .*<\/stream:stream>$/);
  assert.match(fixture.opened.join(), /^alice@example\.com\/fuzz\/[0-9a-f]{16}$/);
});

Deno.test("C2sListener ends mutated conversations with a peer's error, never with its own", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(MUTATION, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(1, 7, 100_000),
      fc.constantFrom(CONVERSATION, BY_SASL2),
      async (mutations, chunkBytes, conversation) => {
        let text = conversation;
        for (const { at, removed, inserted } of mutations) {
          text = text.slice(0, at) + inserted + text.slice(at + removed);
        }
        await using fixture = new C2sFixture();
        const peer = fixture.connect({ chunkBytes });
        peer.send(text + ENDING);
        const answer = await peer.expectClosed();
        assert(!answer.includes("internal-server-error"), answer);
        assert.deepEqual(fixture.log.named("c2s.stream.broken"), []);
        await fixture.registry.settled();
        assert.equal(fixture.registry.count, 0);
        assert.deepEqual(fixture.opened, fixture.closed);
      },
    ),
    { numRuns: 600 },
  );
});
