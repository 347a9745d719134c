import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import { authenticate, bind, C2sFixture, expectOnly, HEADER } from "./testing/c2s_fixture.ts";

/** A message that the session echoes once it has handled everything before it. */
const MARKER = "<message id='marker' to='alice@example.com/home'/>";

async function expectEnd(peer: RawPeer, condition: string): Promise<void> {
  await peer.expectNext(
    `<stream:error><${condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>`,
  );
  assert.equal(await peer.expectClosed(), "</stream:stream>");
}

Deno.test("C2sSession ends a stream with a stanza of another namespace", async () => {
  for (
    const [stanza, condition] of [
      ["<message xmlns='jabber:server' to='bob@example.com'/>", "invalid-namespace"],
      ["<flood/>", "unsupported-stanza-type"],
      ["<a xmlns='urn:xmpp:sm:3' h='0'/>", "unsupported-stanza-type"],
    ] as const
  ) {
    await using fixture = new C2sFixture();
    const alice = await fixture.login("alice", "home");
    alice.send(stanza);
    await expectEnd(alice, condition);
  }
});

Deno.test("C2sSession accepts a stanza of maxStanzaBytes and ends at one byte more", async () => {
  await using fixture = new C2sFixture({ limits: { maxStanzaBytes: 10_000 } });
  const [head, tail] = ["<message to='alice@example.com/home' id='m'><body>", "</body></message>"];
  const body = "x".repeat(10_000 - head.length - tail.length);
  const alice = await fixture.login("alice", "home");
  await alice.exchange(head + body + tail, /^<message [^>]*><body>x+<\/body><\/message>/);
  alice.send(`${head}x${body}${tail}`);
  await expectEnd(alice, "policy-violation");
  assert.equal(
    fixture.metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit: "stanza-bounds" }),
    1,
  );
});

Deno.test("C2sSession stops reading while the router pauses it", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  await alice.exchange(MARKER, /<message [^>]*\/>/);
  const source = fixture.sources[0]!;
  assert.equal(source.jid.text, "alice@example.com/home");
  source.pause();
  alice.send(MARKER);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  assert.equal(fixture.accepted.length, 1);
  source.resume();
  await alice.expectNext(/<message [^>]*\/>/);
});

Deno.test("C2sSession stops reading from a client that does not read its answers", async () => {
  await using fixture = new C2sFixture();
  const bob = fixture.connect();
  await authenticate(bob, "bob");
  await bind(bob, "home");
  bob.connection.pause();
  const body = "x";
  const [chunks, each] = [120, 50];
  for (let chunk = 0; chunk < chunks; chunk++) {
    let text = "";
    for (let i = 0; i < each; i++) {
      text += `<message to='nobody@example.com/x' id='m${
        chunk * each + i
      }'><body>${body}</body></message>`;
    }
    bob.send(text);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const taken = fixture.accepted.length;
  assert.ok(taken > each && taken < chunks * each / 2, `${taken} of ${chunks * each} were read`);
  const limit = { edge: "c2s", limit: "pending-bytes" };
  assert.equal(fixture.metrics.value("xmpp_limit_hits_total", limit), 0);
  bob.connection.resume();
  for (let id = 0; id < chunks * each; id++) {
    await bob.expectNext(new RegExp(`^<message [^>]*id='m${id}'[^>]*type='error'>.*?</message>`));
  }
  assert.equal(fixture.metrics.value("xmpp_limit_hits_total", limit), 0);
});

Deno.test("C2sSession refuses stanzas for a client that does not read, then cuts it", async () => {
  const clock = new ManualClock();
  const limits = { maxPendingBytes: 16_384, slowReaderMs: 1000, maxStanzaBytes: 10_000 };
  await using fixture = new C2sFixture({ clock, limits });
  const alice = await fixture.login("alice", "home");
  const bob = fixture.connect({ highWaterBytes: 1 });
  await authenticate(bob, "bob");
  await bind(bob, "home");
  bob.connection.pause();
  const to = "to='bob@example.com/home'";
  const stamp = "from='alice@example.com/home' xml:lang='en' ";
  const messageOf = (stampedBytes: number) => {
    const empty = `<message id='x' ${to}><body></body></message>`;
    const filling = stampedBytes - empty.length - stamp.length;
    return `<message id='x' ${to}><body>${"x".repeat(filling)}</body></message>`;
  };
  const refused =
    /^<message from='bob@example.com\/home' [^>]*type='error'>.*?resource-constraint.*?<\/message>/;

  // At the bound a stanza is accepted, one byte past it not.
  alice.send(messageOf(8_192) + messageOf(8_192));
  await expectOnly(alice, "alice@example.com/home");
  await alice.exchange(`<message id='y' ${to}/>`, refused);
  const hits = (limit: string) =>
    fixture.metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit });
  assert.deepEqual([hits("pending-bytes"), hits("slow-reader")], [1, 0]);

  // A client that caught up in time is left alone.
  bob.connection.resume();
  await bob.expect(/x<\/body><\/message>.*x<\/body><\/message>/);
  clock.advance(1000);
  assert.equal(fixture.registry.count, 2);

  bob.connection.pause();
  alice.send(messageOf(8_192) + messageOf(8_192));
  await alice.exchange(`<message id='y' ${to}/>`, refused);
  clock.advance(999);
  assert.equal(fixture.registry.count, 2);
  clock.advance(1);
  await bob.expectClosed();
  assert.equal(fixture.registry.count, 1);
  assert.equal(hits("slow-reader"), 1);
  const closed = { edge: "c2s", condition: "stream/slow-reader" };
  assert.equal(fixture.metrics.value("xmpp_streams_closed_total", closed), 1);
  // Two messages were taken for bob and never written.
  assert.equal(fixture.metrics.value("xmpp_stanzas_unwritten_total", { edge: "c2s" }), 2);
});

Deno.test("C2sListener.changeLimits() holds for streams that begin next, and the keepalive for all", async () => {
  const clock = new ManualClock();
  await using fixture = new C2sFixture({ clock, limits: { maxStanzaBytes: 20_000 } });
  const alice = await fixture.login("alice", "home");
  fixture.listener.changeLimits({
    limits: { maxStanzaBytes: 10_000, keepaliveIntervalMs: 1000 },
    maxHeldPresence: 0,
  });
  const bob = await fixture.login("bob", "home");
  const long = `<message to='alice@example.com/home'><body>${"x".repeat(11_000)}</body></message>`;
  await alice.exchange(long, /<message [^>]*><body>x+<\/body><\/message>/);
  bob.send(long);
  await expectEnd(bob, "policy-violation");
  clock.advance(2000);
  clock.advance(1000);
  await alice.expectNext(" ");
});

Deno.test("C2sListener sends whitespace to a silent client", async () => {
  const clock = new ManualClock();
  await using fixture = new C2sFixture({ clock, limits: { keepaliveIntervalMs: 1000 } });
  const alice = await fixture.login("alice", "home");
  clock.advance(1000);
  await expectOnly(alice, "alice@example.com/home");
  clock.advance(1000);
  await expectOnly(alice, "alice@example.com/home");
  clock.advance(1000);
  clock.advance(1000);
  await alice.expectNext(" ");
  const stranger = fixture.connect();
  stranger.send(HEADER);
  await stranger.expect("</stream:features>");
  clock.advance(2000);
  await alice.expectNext("  ");
  assert.equal(stranger.unread, "");
});
