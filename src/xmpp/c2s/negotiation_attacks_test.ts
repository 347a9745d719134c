import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { Connection } from "../../net/mod.ts";
import { memoryConnectionPair } from "../../net/mod.ts";
import { MAX_ID_BYTES } from "../stanza/stanza_attributes.ts";
import { StreamAdmission } from "../stream/stream_admission.ts";
import type { StreamLimitName } from "../stream/stream_metrics.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import {
  authenticate,
  bind,
  C2sFixture,
  HEADER,
  mechanismsXml,
  plainOf,
  SASL,
} from "./testing/c2s_fixture.ts";

const TLS = "urn:ietf:params:xml:ns:xmpp-tls";
const STARTTLS = `<starttls xmlns='${TLS}'/>`;
const OPENING = /<\?xml version='1\.0'\?><stream:stream [^>]*>/;

function streamErrorOf(condition: string): string {
  return `<stream:error><${condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>` +
    "</stream:stream>";
}

/** Checks that the stream ends with this error and nothing follows it. */
async function expectEnd(peer: RawPeer, condition: string): Promise<void> {
  await peer.expectNext(streamErrorOf(condition));
  assert.equal(await peer.expectClosed(), "");
}

function limitHits(fixture: C2sFixture, limit: StreamLimitName): number {
  return fixture.metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit });
}

/** A connection that seems to come from another machine and cannot start TLS. */
function fromElsewhere(connection: Connection, hasTls: boolean): Connection {
  return new Proxy(connection, {
    get(target, name) {
      if (name === "isLoopback") return false;
      if (name === "startTls" && !hasTls) return undefined;
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function connectFromElsewhere(fixture: C2sFixture, hasTls: boolean): RawPeer {
  const [client, server] = memoryConnectionPair();
  fixture.listener.accept(fromElsewhere(server, hasTls));
  return fixture.play(client);
}

Deno.test("C2sListener requires TLS before authentication", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect({ isEncrypted: false });
  alice.send(HEADER);
  await alice.expectNext(OPENING);
  await alice.expectNext(
    `<stream:features><starttls xmlns='${TLS}'><required/></starttls></stream:features>`,
  );
  await alice.exchange(
    plainOf("alice"),
    `<failure xmlns='${SASL}'><encryption-required/></failure>`,
  );
  await alice.exchange(STARTTLS, `<proceed xmlns='${TLS}'/>`);
  alice.send(HEADER);
  await alice.expect("<mechanism>PLAIN</mechanism></mechanisms>");
  await alice.expect("</stream:features>");
  await alice.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
});

Deno.test("C2sListener never treats bytes written after <starttls/> as encrypted", async () => {
  const attacks = [
    HEADER + plainOf("alice"),
    `\n${HEADER}${plainOf("alice")}`,
    " \n ".repeat(6),
    "\n\u00a0",
    "\0",
  ];
  for (const pipelined of attacks) {
    await using fixture = new C2sFixture();
    const mallory = fixture.connect({ isEncrypted: false });
    mallory.send(HEADER);
    await mallory.expect("</stream:features>");
    mallory.send(STARTTLS + pipelined);
    const rest = await mallory.expectClosed();
    assert.equal(rest, `<failure xmlns='${TLS}'/></stream:stream>`);
    assert.equal(limitHits(fixture, "pipelined-starttls"), 1);
    assert.equal(
      fixture.metrics.value("xmpp_auth_successes_total", { edge: "c2s", mechanism: "PLAIN" }),
      0,
    );
  }
});

Deno.test("C2sListener skips white space after <starttls/> and after SASL", async () => {
  for (const space of ["\n", "\r\n", " ".repeat(16)]) {
    await using fixture = new C2sFixture();
    const alice = fixture.connect({ isEncrypted: false });
    alice.send(HEADER);
    await alice.expect("</stream:features>");
    await alice.exchange(STARTTLS + space, `<proceed xmlns='${TLS}'/>`);
    alice.send(HEADER); // with its XML declaration, which nothing may precede
    await alice.expect("</stream:features>");
    await alice.exchange(plainOf("alice") + space, `<success xmlns='${SASL}'/>`);
    alice.send(HEADER); // with its XML declaration, which nothing may precede
    await alice.expect("</stream:features>");
    assert.equal(limitHits(fixture, "pipelined-starttls"), 0);
  }
});

Deno.test("C2sListener repeats only a from that can be an account's", async () => {
  await using fixture = new C2sFixture();
  for (const [from, to] of [["localhost", ""], ["alice@example.com", " to='alice@example.com'"]]) {
    const peer = fixture.connect();
    peer.send(HEADER.replace("<stream:stream ", `<stream:stream from='${from}' `));
    await peer.expectNext(
      new RegExp(`^<\\?xml [^>]*><stream:stream [^>]* from='example.com'${to} id=`),
    );
  }
});

Deno.test("C2sListener answers <starttls/> inside TLS with a failure", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect();
  alice.send(HEADER);
  await alice.expect("</stream:features>");
  await alice.exchange(STARTTLS, `<failure xmlns='${TLS}'/></stream:stream>`);
  await alice.expectClosed();
});

Deno.test("C2sListener offers plaintext SCRAM off loopback, and PLAIN only on it", async () => {
  await using fixture = new C2sFixture({ allowPlaintext: true });
  const far = connectFromElsewhere(fixture, true);
  far.send(HEADER);
  await far.expectNext(OPENING);
  await far.expectNext(
    `<stream:features><starttls xmlns='${TLS}'></starttls>` +
      `${mechanismsXml("SCRAM-SHA-256", "SCRAM-SHA-1")}</stream:features>`,
  );
  await far.exchange(
    plainOf("alice"),
    `<failure xmlns='${SASL}'><encryption-required/></failure>`,
  );
  const near = fixture.connect({ isEncrypted: false });
  near.send(HEADER);
  await near.expect("<mechanism>PLAIN</mechanism>");
  await near.expect("</stream:features>");
  await near.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
});

Deno.test("C2sListener offers nothing without TLS where plaintext is refused", async () => {
  await using fixture = new C2sFixture();
  const far = connectFromElsewhere(fixture, false);
  far.send(HEADER);
  await far.expectNext(OPENING);
  await expectEnd(far, "policy-violation");
});

const SECOND_HEADER = HEADER.slice(HEADER.indexOf("<stream"));

const BROKEN: readonly [what: string, text: string, condition: string][] = [
  ["a DTD", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "restricted-xml"],
  ["a comment", "<!-- x -->", "restricted-xml"],
  ["a processing instruction", "<?php ?>", "restricted-xml"],
  ["text", "hello", "invalid-xml"],
  ["a wrong end tag", "</stream>", "not-well-formed"],
  ["an undeclared prefix", "<x:y/>", "not-well-formed"],
  ["an undeclared entity", "<message><body>&lol;</body></message>", "restricted-xml"],
  ["a second header", `${SECOND_HEADER}</stream:stream>`, "unsupported-stanza-type"],
  ["headers again and again", SECOND_HEADER.repeat(65), "policy-violation"],
  ["an unknown element", "<unknown/>", "unsupported-stanza-type"],
  ["a stanza before authentication", "<message to='bob@example.com'/>", "not-authorized"],
];

for (const [what, text, condition] of BROKEN) {
  Deno.test(`C2sListener ends a stream with ${what} with ${condition}`, async () => {
    await using fixture = new C2sFixture();
    const peer = fixture.connect();
    peer.send(HEADER);
    await peer.expect("</stream:features>");
    peer.send(text);
    await expectEnd(peer, condition);
    assert.equal(
      fixture.metrics.value("xmpp_streams_closed_total", { edge: "c2s", condition }),
      1,
    );
  });
}

Deno.test("C2sListener answers garbage in place of a header with a header and an error", async () => {
  for (
    const [garbage, condition] of [
      ["GET / HTTP/1.1\r\n\r\n", "not-well-formed"],
      ["<!DOCTYPE stream:stream>", "restricted-xml"],
      [HEADER.replace("etherx", "other"), "invalid-namespace"],
      [HEADER.replace("jabber:client", "jabber:server"), "invalid-namespace"],
      [HEADER.replace("version='1.0' x", "x"), "unsupported-version"],
      [HEADER.replace("example.com", "example.org"), "host-unknown"],
      [HEADER.replace("to='example.com'", ""), "improper-addressing"],
    ] as const
  ) {
    await using fixture = new C2sFixture();
    const peer = fixture.connect();
    peer.send(garbage);
    await peer.expectNext(OPENING);
    await expectEnd(peer, condition);
  }
});

Deno.test("C2sListener reads maxUnauthenticatedBytes before authentication and not one more", async () => {
  const limits = { maxUnauthenticatedBytes: 1024 };
  const rest = 1024 - HEADER.length - plainOf("alice").length;
  await using fixture = new C2sFixture({ limits });
  const alice = fixture.connect();
  alice.send(HEADER);
  await alice.expect("</stream:features>");
  alice.send(" ".repeat(rest) + plainOf("alice"));
  await alice.expectNext(`<success xmlns='${SASL}'/>`);
  alice.send(HEADER + " ".repeat(2000));
  await alice.expect("</stream:features>");
  assert.equal(limitHits(fixture, "unauthenticated-bytes"), 0);

  const mallory = fixture.connect();
  mallory.send(HEADER);
  await mallory.expect("</stream:features>");
  mallory.send(" ".repeat(rest + 1) + plainOf("alice"));
  await expectEnd(mallory, "policy-violation");
  assert.equal(limitHits(fixture, "unauthenticated-bytes"), 1);
});

Deno.test("C2sListener ends a stream whose header never ends", async () => {
  await using fixture = new C2sFixture();
  const mallory = fixture.connect();
  mallory.send(HEADER.slice(0, -1));
  for (let sent = 0; sent < 40_000; sent += 1000) mallory.send(" ".repeat(1000));
  await mallory.expectNext(OPENING);
  await expectEnd(mallory, "policy-violation");
  assert.equal(limitHits(fixture, "stanza-bounds"), 1);
});

Deno.test("C2sListener waits negotiationTimeoutMs for a resource, even when bytes keep coming", async () => {
  const clock = new ManualClock();
  await using fixture = new C2sFixture({ clock, limits: { negotiationTimeoutMs: 1000 } });
  const slow = fixture.connect();
  const bound = await fixture.login("alice", "home");
  const authenticated = fixture.connect();
  await authenticate(authenticated, "bob");
  for (let i = 0; i < 10; i++) {
    slow.send(HEADER[i]!);
    await clock.advanceAsync(99, 33);
  }
  assert.equal(slow.isClosed, false);
  clock.advance(10);
  await slow.expectNext(OPENING);
  await expectEnd(slow, "connection-timeout");
  await expectEnd(authenticated, "connection-timeout");
  assert.equal(limitHits(fixture, "negotiation-time"), 2);
  assert.equal(bound.isClosed, false);
});

Deno.test("C2sListener lets a client fail to log in maxAuthFailures times", async () => {
  await using fixture = new C2sFixture({ limits: { maxAuthFailures: 2 } });
  const failure = `<failure xmlns='${SASL}'><not-authorized/></failure>`;
  const mallory = fixture.connect();
  mallory.send(HEADER);
  await mallory.expect("</stream:features>");
  await mallory.exchange(plainOf("alice", "guess"), failure);
  await mallory.exchange(plainOf("nobody", "guess"), failure);
  await expectEnd(mallory, "policy-violation");
  const failures = { edge: "c2s", mechanism: "PLAIN", condition: "not-authorized" };
  assert.equal(fixture.metrics.value("xmpp_auth_failures_total", failures), 2);

  const alice = fixture.connect();
  alice.send(HEADER);
  await alice.expect("</stream:features>");
  await alice.exchange(plainOf("alice", "guess"), failure);
  await alice.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
});

Deno.test("C2sListener refuses a client that acts for another account", async () => {
  await using fixture = new C2sFixture();
  const mallory = fixture.connect();
  mallory.send(HEADER);
  await mallory.expect("</stream:features>");
  await mallory.exchange(
    plainOf("bob", undefined, "alice@example.com"),
    `<failure xmlns='${SASL}'><invalid-authzid/></failure>`,
  );
  await mallory.exchange(
    plainOf("bob", undefined, "bob@example.com"),
    `<success xmlns='${SASL}'/>`,
  );
  mallory.send(HEADER.replace(" to=", " from='alice@example.com' to="));
  await mallory.expectNext(OPENING);
  await expectEnd(mallory, "invalid-from");
});

Deno.test("C2sListener answers a SASL abort, and text that is not base64", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect();
  alice.send(HEADER);
  await alice.expect("</stream:features>");
  await alice.exchange(
    `<auth xmlns='${SASL}' mechanism='SCRAM-SHA-256'/>`,
    `<challenge xmlns='${SASL}'/>`,
  );
  await alice.exchange(
    `<abort xmlns='${SASL}'/>`,
    `<failure xmlns='${SASL}'><aborted/></failure>`,
  );
  await alice.exchange(
    `<auth xmlns='${SASL}' mechanism='PLAIN'>!</auth>`,
    `<failure xmlns='${SASL}'><incorrect-encoding/></failure>`,
  );
  await alice.exchange(
    `<auth xmlns='${SASL}' mechanism='DIGEST-MD5'>=</auth>`,
    `<failure xmlns='${SASL}'><invalid-mechanism/></failure>`,
  );
  await expectEnd(alice, "policy-violation");
});

Deno.test("C2sListener binds a resource of 1023 bytes and refuses one of 1024", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect();
  await authenticate(alice, "alice");
  const longest = "é".repeat(511) + "x";
  alice.send(
    "<iq type='set' id='b0'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>" +
      `<resource>${longest}x</resource></bind></iq>`,
  );
  await alice.expectNext(
    "<iq type='error' id='b0'><error type='modify'>" +
      "<bad-request xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
  );
  assert.equal(await bind(alice, longest), `alice@example.com/${longest}`);
});

Deno.test("C2sListener ends a stream whose request to bind has an id too long to be repeated", async () => {
  await using fixture = new C2sFixture();
  const mallory = fixture.connect();
  await authenticate(mallory, "alice");
  mallory.send(
    `<iq type='set' id='${"x".repeat(MAX_ID_BYTES + 1)}'>` +
      "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
  );
  await expectEnd(mallory, "not-authorized");
});

Deno.test("C2sListener chooses a resource for a client that requests none", async () => {
  await using fixture = new C2sFixture();
  const [first, second] = [fixture.connect(), fixture.connect()];
  await authenticate(first, "alice");
  await authenticate(second, "alice");
  const jids = [await bind(first), await bind(second, "")];
  for (const jid of jids) assert.match(jid, /^alice@example\.com\/[0-9a-f]{16}$/);
  assert.notEqual(jids[0], jids[1]);
});

Deno.test("C2sListener escapes the resource that it binds", async () => {
  await using fixture = new C2sFixture();
  const alice = fixture.connect();
  await authenticate(alice, "alice");
  const jid = await bind(alice, "a&amp;&lt;b&apos;");
  assert.match(jid, /^alice@example\.com\/a&amp;&lt;b('|&apos;)$/);
  await alice.exchange(
    "<message id='m' to='alice@example.com/a&amp;&lt;b&apos;'/>",
    /<message from='alice@example\.com\/a&amp;&lt;b&apos;' .*\/>/,
  );
});

Deno.test("C2sListener gives a resource to the newer client", async () => {
  await using fixture = new C2sFixture();
  const older = await fixture.login("alice", "home");
  const newer = await fixture.login("alice", "home");
  await expectEnd(older, "conflict");
  await newer.exchange("<message id='m' to='alice@example.com/home'/>", /<message [^>]*\/>/);
  assert.equal(fixture.registry.count, 1);
  assert.deepEqual([fixture.opened.length, fixture.closed.length], [2, 1]);
});

Deno.test("C2sListener refuses one session more than an account may have", async () => {
  await using fixture = new C2sFixture({ maxSessionsPerAccount: 1 });
  await fixture.login("alice", "home");
  const second = fixture.connect();
  await authenticate(second, "alice");
  await second.exchange(
    "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
    "<iq type='error' id='b1'><error type='wait'>" +
      "<resource-constraint xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
  );
  assert.equal(limitHits(fixture, "sessions-per-account"), 1);
  assert.equal(await bind(second, "home"), "alice@example.com/home");
});

Deno.test("C2sListener ends the oldest unauthenticated stream for one more than maxUnauthenticated", async () => {
  const admission = new StreamAdmission({ maxUnauthenticated: 2 });
  await using fixture = new C2sFixture({ admission });
  const bound = await fixture.login("alice", "home");
  const [oldest, second] = [fixture.connect(), fixture.connect()];
  for (const stranger of [oldest, second]) {
    stranger.send(HEADER);
    await stranger.expect("</stream:features>");
  }
  assert.equal(fixture.listener.streamCount, 3);
  const third = await fixture.login("bob", "home");
  await expectEnd(oldest, "resource-constraint");
  assert.equal(limitHits(fixture, "unauthenticated-streams"), 1);
  assert.deepEqual([bound.isClosed, second.isClosed, third.isClosed], [false, false, false]);
});

Deno.test("C2sListener turns away an address that has used up its share", async () => {
  const admission = new StreamAdmission({ maxPerAddress: 1 });
  await using fixture = new C2sFixture({ admission });
  const first = connectFromElsewhere(fixture, true);
  const second = connectFromElsewhere(fixture, true);
  await second.expectNext(OPENING);
  await expectEnd(second, "policy-violation");
  assert.equal(limitHits(fixture, "streams-per-address"), 1);
  await first.exchange("</stream>", OPENING);
  await first.expectClosed();
  const third = connectFromElsewhere(fixture, true);
  await third.exchange(HEADER, OPENING);
});

Deno.test("C2sListener.close() ends every stream with system-shutdown", async () => {
  const fixture = new C2sFixture();
  const bound = await fixture.login("alice", "home");
  const stranger = fixture.connect();
  stranger.send(HEADER);
  await stranger.expect("</stream:features>");
  const silent = fixture.connect();
  await fixture.listener.close();
  await expectEnd(bound, "system-shutdown");
  await expectEnd(stranger, "system-shutdown");
  await silent.expectNext(OPENING);
  await expectEnd(silent, "system-shutdown");
  assert.deepEqual(fixture.closed, ["alice@example.com/home"]);
  const late = fixture.connect();
  assert.equal(await late.expectClosed(), "");
});

Deno.test("C2sListener reports a client that vanishes once", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  alice.cut();
  await alice.expectClosed();
  await fixture.registry.settled();
  assert.deepEqual(fixture.closed, ["alice@example.com/home"]);
  assert.equal(fixture.registry.count, 0);
});

Deno.test("C2sListener closes a session whose client left while it was opening", async () => {
  const gate = Promise.withResolvers<void>();
  const opening = Promise.withResolvers<void>();
  const calls: string[] = [];
  await using fixture = new C2sFixture({
    events: {
      opened: () => {
        calls.push("opened");
        opening.resolve();
        return gate.promise;
      },
      closed: () => {
        calls.push("closed");
        return Promise.resolve();
      },
    },
  });
  const alice = fixture.connect();
  await authenticate(alice, "alice");
  alice.send("<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>");
  await opening.promise;
  alice.cut();
  await alice.expectClosed();
  gate.resolve();
  await fixture.registry.settled();
  assert.deepEqual(calls, ["opened", "closed"]);
  assert.equal(fixture.registry.count, 0);
});
