import assert from "node:assert/strict";
import type { CredentialSource } from "../sasl/mod.ts";
import {
  bind,
  C2sFixture,
  HEADER,
  HOSTS,
  mechanismsXml,
  plainOf,
  SASL,
} from "./testing/c2s_fixture.ts";

Deno.test("C2sListener serves a client from its first byte to its end", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect();
  alice.send(HEADER);
  await alice.expectNext(
    /<\?xml version='1\.0'\?><stream:stream xmlns='jabber:client' xmlns:stream='http:\/\/etherx\.jabber\.org\/streams' from='example\.com' id='[0-9a-f]{24}' version='1\.0' xml:lang='en'>/,
  );
  await alice.expectNext(
    `<stream:features>${mechanismsXml("SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")}</stream:features>`,
  );
  await alice.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
  alice.send(HEADER);
  await alice.expect(
    "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>" +
      "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session>" +
      "</stream:features>",
  );
  assert.equal(await bind(alice, "home"), "alice@example.com/home");
  assert.deepEqual(fixture.opened, ["alice@example.com/home"]);
  await alice.exchange("</stream:stream>", "</stream:stream>");
  await alice.expectClosed();
  await fixture.registry.settled();
  assert.deepEqual(fixture.closed, ["alice@example.com/home"]);
  assert.equal(fixture.metrics.value("xmpp_streams_opened_total", { edge: "c2s" }), 1);
  assert.equal(
    fixture.metrics.value("xmpp_streams_closed_total", { edge: "c2s", condition: "none" }),
    1,
  );
});

Deno.test("C2sListener reads a conversation in pieces of one byte", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home", { chunkBytes: 1 });
  await alice.exchange(
    "<message to='alice@example.com/home' id='m'><body>ä &amp; ü</body></message>",
    "<message from='alice@example.com/home' xml:lang='en' to='alice@example.com/home' id='m'>" +
      "<body>ä &amp; ü</body></message>",
  );
});

Deno.test("C2sListener accepts a pipelined login", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect();
  alice.send(
    HEADER + plainOf("alice") + HEADER +
      "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>" +
      "<message to='alice@example.com' id='m1'/>",
  );
  await alice.expect(`<success xmlns='${SASL}'/>`);
  await alice.expect(/<jid>alice@example\.com\/[0-9a-f]{16}<\/jid>/);
  await alice.expect("service-unavailable");
  assert.equal(fixture.accepted.length, 1);
});

Deno.test("a session remembers which account of its name it has logged in to", async () => {
  let creation = "01";
  const [source] = HOSTS.values();
  const changing: CredentialSource = {
    credentials: async (localpart) => {
      const keys = await source!.credentials(localpart);
      return keys && { ...keys, creation };
    },
  };
  await using fixture = new C2sFixture({ hosts: new Map([["example.com", changing]]) });
  await fixture.login("alice", "old");
  creation = "02";
  await fixture.login("alice", "new");
  const creations = fixture.registry.ofAccount("alice@example.com").map((each) => each.creation);
  assert.deepEqual(creations, ["01", "02"]);
});
