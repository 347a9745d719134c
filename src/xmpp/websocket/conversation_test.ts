import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { FixtureOptions } from "../c2s/testing/c2s_fixture.ts";
import { authenticateXml, bind2Xml } from "../c2s/testing/sasl2_fixture.ts";
import { C2sFixture, passwordOf, plainOf, SASL } from "../c2s/testing/c2s_fixture.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { MemoryWebSocket } from "./testing/memory_websocket.ts";
import { WebSocketTransport } from "./websocket_transport.ts";

const FRAMING = "urn:ietf:params:xml:ns:xmpp-framing";
const OPEN = `<open xmlns='${FRAMING}' to='example.com' version='1.0' xml:lang='en'/>`;
const CLOSE = `<close xmlns='${FRAMING}'/>`;
const ANSWER =
  /^<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='example\.com'(?: to='[^']*')? id='[0-9a-f]{24}' version='1\.0' xml:lang='en'\/>$/;
const FEATURES =
  /^<stream:features xmlns:stream='http:\/\/etherx\.jabber\.org\/streams'>.*<\/stream:features>$/;
const BIND = "<iq xmlns='jabber:client' type='set' id='b1'>" +
  "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>web</resource></bind></iq>";

class Fixture extends C2sFixture {
  readonly #options: FixtureOptions;

  constructor(options: FixtureOptions = {}) {
    super({ edge: "websocket", ...options });
    this.#options = options;
  }

  /** Returns a client whose WebSocket is open. */
  visit(options: ConstructorParameters<typeof MemoryWebSocket>[0] = {}): MemoryWebSocket {
    const webSocket = new MemoryWebSocket(options);
    this.listener.acceptTransport(
      new WebSocketTransport(webSocket, resolveStreamLimits(this.#options.limits)),
    );
    return webSocket;
  }

  /** Returns a client that has logged in and bound `/web`. */
  async enter(user: string): Promise<MemoryWebSocket> {
    const client = this.visit();
    client.say(OPEN);
    await client.expect(ANSWER);
    await client.expect(FEATURES);
    client.say(plainOf(user));
    await client.expect(`<success xmlns='${SASL}'/>`);
    client.say(OPEN);
    await client.expect(ANSWER);
    await client.expect(FEATURES);
    client.say(BIND);
    await client.expect(
      `<iq xmlns='jabber:client' type='result' id='b1'>` +
        `<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>${user}@example.com/web</jid></bind></iq>`,
    );
    return client;
  }

  closedBy(condition: string): number {
    return this.metrics.value("xmpp_streams_closed_total", { edge: "websocket", condition });
  }
}

/** Expects this stream error, `<close/>` and the WebSocket's own end. */
async function expectEnd(client: MemoryWebSocket, condition: string): Promise<void> {
  await client.expect(
    "<stream:error xmlns:stream='http://etherx.jabber.org/streams'>" +
      `<${condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>`,
  );
  await client.expect(CLOSE);
  assert.deepEqual(client.unread, []);
  assert.equal(client.closedFor, 1000);
}

Deno.test("WebSocketTransport serves a client from its <open/> to its <close/>", async () => {
  await using fixture = new Fixture();
  const alice = await fixture.enter("alice");
  alice.say("<presence xmlns='jabber:client'/>");
  await alice.expect(
    "<presence xmlns='jabber:client' from='alice@example.com/web' to='alice@example.com' xml:lang='en'/>",
  );
  alice.say(
    "<message xmlns='jabber:client' to='alice@example.com' type='chat'><body>ä &amp; ü</body></message>",
  );
  await alice.expect(
    /^<message xmlns='jabber:client' from='alice@example\.com\/web' xml:lang='en' to='alice@example\.com' type='chat'><body>ä &amp; ü<\/body><\/message>$/,
  );
  alice.say(CLOSE);
  await alice.expect(CLOSE);
  assert.equal(alice.closedFor, 1000);
  await fixture.registry.settled();
  assert.deepEqual(fixture.closed, ["alice@example.com/web"]);
  const labels = { edge: "websocket" };
  assert.equal(fixture.metrics.value("xmpp_streams_opened_total", labels), 1);
  const messages = { ...labels, kind: "message" };
  assert.equal(fixture.metrics.value("xmpp_stanzas_received_total", messages), 1);
  assert.equal(fixture.metrics.value("xmpp_stanzas_sent_total", messages), 1);
  assert.equal(fixture.closedBy("none"), 1);
});

Deno.test("WebSocketTransport lets a client log in and bind by SASL2, in one message", async () => {
  await using fixture = new Fixture({ management: {} });
  const alice = fixture.visit();
  alice.say(OPEN);
  await alice.expect(ANSWER);
  await alice.expect(FEATURES);
  alice.say(authenticateXml("alice", bind2Xml("<tag>web</tag><enable xmlns='urn:xmpp:sm:3'/>")));
  await alice.expect(
    /^<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>alice@example\.com\/web\/[0-9a-f]{16}<\/authorization-identifier><bound xmlns='urn:xmpp:bind:0'><enabled xmlns='urn:xmpp:sm:3'\/><\/bound><\/success>$/,
  );
  await alice.expect(
    "<stream:features xmlns:stream='http://etherx.jabber.org/streams'/>",
  );
  alice.say("<r xmlns='urn:xmpp:sm:3'/>");
  await alice.expect("<a xmlns='urn:xmpp:sm:3' h='0'/>");
  alice.say(CLOSE);
  await alice.expect("<a xmlns='urn:xmpp:sm:3' h='0'/>");
  await alice.expect(CLOSE);
});

Deno.test("WebSocketTransport lets clients over WebSocket and over TCP exchange messages", async () => {
  await using fixture = new Fixture();
  const web = await fixture.enter("alice");
  const tcp = await fixture.login("bob", "home");
  web.say(
    "<message xmlns='jabber:client' to='bob@example.com/home' id='1'><body>hi</body></message>",
  );
  await tcp.expectNext(
    "<message from='alice@example.com/web' xml:lang='en' to='bob@example.com/home' id='1'>" +
      "<body>hi</body></message>",
  );
  tcp.send("<message to='alice@example.com/web' id='2'/>");
  await web.expect(
    "<message xmlns='jabber:client' from='bob@example.com/home' xml:lang='en' " +
      "to='alice@example.com/web' id='2'/>",
  );
});

Deno.test("WebSocketTransport accepts a login whose messages come at once", async () => {
  await using fixture = new Fixture();
  const alice = fixture.visit();
  for (const message of [OPEN, plainOf("alice"), OPEN, BIND]) alice.say(message);
  alice.say("<message xmlns='jabber:client' to='alice@example.com/web'/>");
  await alice.expect(ANSWER);
  await alice.expect(FEATURES);
  await alice.expect(/^<success/);
  await alice.expect(ANSWER);
  await alice.expect(FEATURES);
  await alice.expect(/alice@example\.com\/web<\/jid>/);
  await alice.expect(/^<message /);
});

for (
  const { what, open, condition } of [
    {
      what: "without version",
      open: OPEN.replace(" version='1.0'", ""),
      condition: "unsupported-version",
    },
    {
      what: "without to",
      open: OPEN.replace(" to='example.com'", ""),
      condition: "improper-addressing",
    },
    {
      what: "to another host",
      open: OPEN.replace("example.com", "a.net"),
      condition: "host-unknown",
    },
    {
      what: "in another namespace",
      open: OPEN.replace(FRAMING, "x"),
      condition: "invalid-namespace",
    },
    { what: "of another name", open: OPEN.replace("open", "opn"), condition: "bad-format" },
    {
      what: "that is a stream header of RFC 6120",
      open: "<stream:stream to='example.com' version='1.0' xmlns='jabber:client' " +
        "xmlns:stream='http://etherx.jabber.org/streams'/>",
      condition: "invalid-namespace",
    },
    {
      what: "that is a stanza",
      open: "<message xmlns='jabber:client'/>",
      condition: "invalid-namespace",
    },
    { what: "that is no XML", open: "hello", condition: "not-well-formed" },
  ]
) {
  Deno.test(`WebSocketTransport answers an <open/> ${what} with ${condition}`, async () => {
    await using fixture = new Fixture();
    const client = fixture.visit();
    client.say(open);
    await client.expect(ANSWER);
    await expectEnd(client, condition);
    assert.equal(fixture.closedBy(condition), 1);
  });
}

Deno.test("WebSocketTransport ends a session for a second element, a DTD, and a second <open/>", async () => {
  await using fixture = new Fixture();
  for (
    const [message, condition] of [
      ["<presence xmlns='jabber:client'/><presence xmlns='jabber:client'/>", "not-well-formed"],
      ["<!DOCTYPE x><presence xmlns='jabber:client'/>", "restricted-xml"],
      [OPEN, "unsupported-stanza-type"],
      ["<message xmlns='jabber:server'/>", "invalid-namespace"],
      ["<message xmlns='jabber:client' from='bob@example.com'/>", "invalid-from"],
    ] as const
  ) {
    const alice = await fixture.enter("alice");
    alice.say(message);
    await expectEnd(alice, condition);
  }
});

Deno.test("WebSocketTransport offers a login by PLAIN or SCRAM, never STARTTLS", async () => {
  await using fixture = new Fixture({ allowPlaintext: true });
  for (const [isEncrypted, isLoopback] of [[true, false], [false, true], [false, false]] as const) {
    const client = fixture.visit({ isEncrypted, isLoopback });
    client.say(OPEN);
    await client.expect(ANSWER);
    const features = (await client.expect(FEATURES))[0];
    assert.doesNotMatch(features, /starttls/);
    assert.match(features, /SCRAM-SHA-256/);
    assert.equal(/PLAIN/.test(features), isEncrypted || isLoopback);
  }
  await using strict = new Fixture();
  const client = strict.visit({ isEncrypted: false });
  client.say(OPEN);
  await client.expect(ANSWER);
  assert.doesNotMatch(await client.next(), /mechanism/);
});

Deno.test("WebSocketTransport counts a refused password, and a stream that takes too long", async () => {
  await using fixture = new Fixture({ limits: { negotiationTimeoutMs: 1000 } });
  const alice = fixture.visit();
  alice.say(OPEN);
  await alice.expect(ANSWER);
  await alice.expect(FEATURES);
  alice.say(plainOf("alice", passwordOf("bob")));
  await alice.expect(`<failure xmlns='${SASL}'><not-authorized/></failure>`);
  const failed = { edge: "websocket", mechanism: "PLAIN", condition: "not-authorized" };
  assert.equal(fixture.metrics.value("xmpp_auth_failures_total", failed), 1);
  const clock = fixture.clock as ManualClock; // the fixture's default
  clock.advance(999);
  assert.deepEqual(alice.unread, []);
  clock.advance(1);
  await expectEnd(alice, "connection-timeout");
  const hit = { edge: "websocket", limit: "negotiation-time" };
  assert.equal(fixture.metrics.value("xmpp_limit_hits_total", hit), 1);
});

Deno.test("WebSocketTransport pings a silent session", async () => {
  await using fixture = new Fixture({ limits: { keepaliveIntervalMs: 1000 } });
  const alice = await fixture.enter("alice");
  const clock = fixture.clock as ManualClock; // the fixture's default
  clock.advance(2000);
  assert.equal(alice.pings, 1);
  assert.deepEqual(alice.unread, []);
});

Deno.test("WebSocketTransport reports a client whose WebSocket is gone", async () => {
  await using fixture = new Fixture();
  const alice = await fixture.enter("alice");
  alice.lose(undefined);
  await Promise.resolve();
  await fixture.registry.settled();
  assert.deepEqual(fixture.closed, ["alice@example.com/web"]);
});

Deno.test("WebSocketTransport ends with system-shutdown when its listener closes", async () => {
  await using fixture = new Fixture();
  const alice = await fixture.enter("alice");
  await fixture.listener.close();
  await expectEnd(alice, "system-shutdown");
});

Deno.test("WebSocketTransport reads a dismissed client until its <close/>", async () => {
  await using fixture = new Fixture();
  const alice = await fixture.enter("alice");
  await fixture.listener.dismiss("system-shutdown");
  const heardOut = fixture.listener.hearOut(60_000);
  assert.equal(alice.closedFor, undefined);
  const before = fixture.accepted.length;
  const late = "<message xmlns='jabber:client' to='zoe@example.com'/>";
  for (const text of [late, late, CLOSE, late]) alice.say(text);
  assert.equal(await heardOut, 0);
  assert.equal(fixture.accepted.length, before + 2);
  await expectEnd(alice, "system-shutdown");
});

Deno.test("WebSocketTransport tells a client that its address has connected too often", async () => {
  const clock = new ManualClock();
  const rates = new EdgeRates({ connectionsPerAddress: { perSec: 1, burst: 1 } }, clock);
  await using fixture = new Fixture({ clock, rates });
  const first = fixture.visit({ isLoopback: false });
  first.say(OPEN);
  await first.expect(ANSWER);
  await first.expect(FEATURES);
  const second = fixture.visit({ isLoopback: false });
  await second.expect(/^<open /);
  await second.expect(/<policy-violation /);
  await second.expect(CLOSE);
  clock.advance(1000);
  const third = fixture.visit({ isLoopback: false });
  third.say(OPEN);
  await third.expect(ANSWER);
  for (const client of [first, third]) client.say(CLOSE);
});
