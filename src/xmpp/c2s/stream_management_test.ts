import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { parseJid } from "../jid_parser.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import type { RawPeer } from "../stream/_raw_peer.ts";
import type { Stanza } from "../stanza.ts";
import { stanzaId } from "../stanza_attributes.ts";
import type { FixtureOptions } from "./_c2s_fixture.ts";
import { authenticate, bind, C2sFixture, HEADER, plainOf, SASL } from "./_c2s_fixture.ts";
import { C2sSession } from "./c2s_session.ts";
import { TestDelivery } from "./_test_delivery.ts";

const SM = "urn:xmpp:sm:3";
const ENABLE = `<enable xmlns='${SM}' resume='true'/>`;
const ENABLED = new RegExp(
  `^<enabled xmlns='${SM}' id='([0-9a-f]{1,13}-[0-9a-f]{32})' resume='true' max='(\\d+)'/>`,
);
const R = `<r xmlns='${SM}'/>`;
const FAILED = (condition: string, h = "") =>
  `<failed xmlns='${SM}'${h}><${condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>`;
const A = (h: number) => `<a xmlns='${SM}' h='${h}'/>`;
const HOME = "alice@example.com/home";

/** A fixture whose clock stands still until told, and where nobody asks for acknowledgements unasked. */
function quiet(options: FixtureOptions = {}): C2sFixture & { clock: ManualClock } {
  const fixture = new C2sFixture({
    clock: new ManualClock(),
    ...options,
    management: { ackFreq: 1000, ...options.management },
  });
  return fixture as C2sFixture & { clock: ManualClock }; // made with one above
}

/** Logs in and enables; gives the id to resume by. */
async function manage(
  fixture: C2sFixture,
  user = "alice",
  resource = "home",
): Promise<{ peer: RawPeer; id: string }> {
  const peer = await fixture.login(user, resource);
  const [, id] = await peer.exchange(ENABLE, ENABLED);
  return { peer, id: id! };
}

/** A client that has authenticated and not bound. */
async function comeBack(fixture: C2sFixture, user = "alice"): Promise<RawPeer> {
  const peer = fixture.connect();
  await authenticate(peer, user);
  return peer;
}

const resume = (id: string, h: number) => `<resume xmlns='${SM}' previd='${id}' h='${h}'/>`;

/** A stanza from outside to alice's session. */
function message(id: string, to = HOME, kind: Stanza["kind"] = "message"): TestDelivery {
  const text = `<${kind} from='bob@example.com/x' to='${to}' id='${id}'/>`;
  return new TestDelivery({
    kind,
    type: kind === "message" ? "chat" : "available",
    from: parseJid("bob@example.com/x"),
    to: parseJid(to),
    bytes: new TextEncoder().encode(text),
  });
}

function send(fixture: C2sFixture, ...ids: string[]): TestDelivery[] {
  return ids.map((id) => {
    const delivery = message(id);
    fixture.route(delivery);
    return delivery;
  });
}

async function expectMessages(peer: RawPeer, ...ids: string[]): Promise<void> {
  for (const id of ids) await peer.expectNext(new RegExp(`^<message [^>]*id='${id}'/>`));
}

async function expectEnd(peer: RawPeer, error: RegExp | string): Promise<void> {
  await peer.expect(error);
  assert.match(await peer.expectClosed(), /^[^<]*(<\/stream:error>)?<\/stream:stream>$/);
}

/** Waits for what follows the end of a connection on the server's side. */
async function until(claim: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !claim(); turn++) {
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.ok(claim(), String(claim));
}

const metric = (fixture: C2sFixture, name: string, labels = {}) =>
  fixture.metrics.value(name, labels);

Deno.test("stream management is offered once a client has authenticated, where it is on", async () => {
  await using on = quiet();
  const alice = on.connect();
  alice.send(HEADER);
  const before = await alice.expect("</stream:features>");
  assert.ok(!before.input.includes(SM));
  const again = on.connect();
  again.send(HEADER);
  await again.expect("</stream:features>");
  await again.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
  again.send(HEADER);
  await again.expect(`<sm xmlns='${SM}'/></stream:features>`);
  await using off = new C2sFixture();
  const bob = await off.login("bob", "x");
  bob.send(ENABLE);
  await expectEnd(bob, "<unsupported-stanza-type ");
});

Deno.test("<enable/> gives an id and a time to come back, no more than asked for", async () => {
  await using fixture = quiet({ management: { resumeTimeoutMs: 300_000 } });
  const cases = [
    ["resume='true'", "300"],
    ["resume='1' max='7'", "7"],
    ["resume='true' max='4000000000'", "300"],
  ] as const;
  for (const [attributes, max] of cases) {
    const alice = await fixture.login("alice", max + attributes.length);
    const match = await alice.exchange(`<enable xmlns='${SM}' ${attributes}/>`, ENABLED);
    assert.equal(match[2], max);
  }
  for (const attributes of ["", "resume='false'", "resume='true' max='0'"]) {
    const alice = await fixture.login("alice", `no${attributes.length}`);
    await alice.exchange(`<enable xmlns='${SM}' ${attributes}/>`, `<enabled xmlns='${SM}'/>`);
  }
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 6);
});

Deno.test("nonzas out of order are answered unexpected-request, and the stream goes on", async () => {
  await using fixture = quiet();
  const early = await comeBack(fixture);
  await early.exchange(ENABLE, FAILED("unexpected-request"));
  await early.exchange(R, FAILED("unexpected-request"));
  await early.exchange(A(0), FAILED("unexpected-request"));
  assert.equal(await bind(early, "home"), HOME);
  await early.exchange(R, FAILED("unexpected-request"));
  await early.exchange(A(0), FAILED("unexpected-request"));
  await early.exchange(resume("x", 0), FAILED("unexpected-request"));
  const match = await early.exchange(ENABLE, ENABLED);
  await early.exchange(ENABLE, FAILED("unexpected-request"));
  await early.exchange(resume(match[1]!, 0), FAILED("unexpected-request"));
  await early.exchange(R, A(0));
});

Deno.test("stream management before authentication ends the stream", async () => {
  await using fixture = quiet();
  for (const nonza of [ENABLE, resume("x", 0)]) {
    const peer = fixture.connect();
    peer.send(HEADER);
    await peer.expect("</stream:features>");
    peer.send(nonza);
    await expectEnd(peer, "<not-authorized ");
  }
});

for (
  const attributes of ["", "previd='x'", "h='0'", "previd='x' h='-1'", "previd='x' h='4294967296'"]
) {
  Deno.test(`<resume ${attributes}/> is answered bad-request`, async () => {
    await using fixture = quiet();
    const alice = await comeBack(fixture);
    await alice.exchange(`<resume xmlns='${SM}' ${attributes}/>`, FAILED("bad-request"));
    await bind(alice, "home");
  });
}

Deno.test("an unknown nonza of stream management ends the stream", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  peer.send(`<nack xmlns='${SM}'/>`);
  await expectEnd(peer, "<unsupported-stanza-type ");
});

for (const h of ["", "h='-1'", "h='x'", "h='4294967296'"]) {
  Deno.test(`<a ${h}/> ends the stream with bad-format`, async () => {
    await using fixture = quiet();
    const { peer } = await manage(fixture);
    peer.send(`<a xmlns='${SM}' ${h}/>`);
    await expectEnd(peer, "<bad-format ");
  });
}

Deno.test("the server's h counts stanzas from <enable/> on, and only stanzas", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  alice.send("<presence/>");
  await alice.expect("/>");
  await alice.exchange(ENABLE, ENABLED);
  await alice.exchange(R, A(0));
  alice.send(`<message id='1' to='carol@example.com'/> ${A(0)}`);
  await alice.expectNext(/^<message [^>]*type='error'>.*?<\/message>/);
  alice.send("<iq type='get' id='2' to='@'/>"); // malformed, and handled all the same
  await alice.expectNext(/^<iq [^>]*type='error'>.*?<\/iq>/);
  await alice.exchange(R, A(2));
});

Deno.test("a stanza is settled when the client has acknowledged it, and not before", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  const [one, two, three] = send(fixture, "1", "2", "3");
  await expectMessages(peer, "1", "2", "3");
  peer.send(A(2) + R);
  await peer.expectNext(A(0));
  assert.deepEqual([one, two, three].map((each) => each!.isSettled), [true, true, false]);
  peer.send(A(3) + R);
  await peer.expectNext(A(0));
  assert.ok(three!.isSettled);
});

for (const h of [3, 4294967295]) {
  Deno.test(`an h of ${h} where 2 stanzas were sent ends the stream with handled-count-too-high`, async () => {
    await using fixture = quiet();
    const { peer } = await manage(fixture);
    send(fixture, "1", "2");
    await expectMessages(peer, "1", "2");
    peer.send(A(h));
    await expectEnd(
      peer,
      "<undefined-condition xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>" +
        `<handled-count-too-high xmlns='${SM}' h='${h}' send-count='2'/></stream:error>`,
    );
  });
}

Deno.test("the server asks after ackFreq stanzas, and after ackDelayMs for what is left", async () => {
  await using fixture = quiet({ management: { ackFreq: 2, ackDelayMs: 500 } });
  const { peer } = await manage(fixture);
  send(fixture, "1", "2", "3");
  await expectMessages(peer, "1", "2");
  await peer.expectNext(R);
  await expectMessages(peer, "3");
  peer.send(A(2) + R);
  await peer.expectNext(A(0));
  fixture.clock.advance(500);
  await peer.expectNext(R);
  peer.send(A(3) + R);
  await peer.expectNext(A(0));
  fixture.clock.advance(100_000);
  await peer.exchange(R, A(0));
});

Deno.test("a client that answers no <r/> for ackTimeoutMs loses its connection, not its session", async () => {
  await using fixture = quiet({ management: { ackDelayMs: 100, ackTimeoutMs: 1000 } });
  const { peer, id } = await manage(fixture);
  send(fixture, "1");
  for (let ms = 0; ms < 1000; ms += 100) fixture.clock.advance(100);
  assert.ok(!peer.isClosed);
  fixture.clock.advance(100);
  await peer.expectClosed();
  assert.equal(metric(fixture, "xmpp_sm_hibernating_sessions"), 1);
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='0'/>`);
  await expectMessages(again, "1");
});

/** Clients that have acknowledged nothing for too long. */
const cutOff = (fixture: C2sFixture) =>
  metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "unacknowledged-time" });

Deno.test("a client is not blamed for an answer that the server does not read", async () => {
  await using fixture = quiet({ management: { ackDelayMs: 100, ackTimeoutMs: 1000 } });
  const { peer } = await manage(fixture);
  const [session] = fixture.registry.ofAccount("alice@example.com");
  assert.ok(session instanceof C2sSession);
  send(fixture, "1");
  await expectMessages(peer, "1");
  const pass = (overMs: number) => {
    for (let ms = 0; ms < overMs; ms += 100) fixture.clock.advance(100);
  };
  pass(500);
  session.pause(); // a lane that it feeds is over its high-water mark
  pass(10_000);
  assert.equal(cutOff(fixture), 0);
  session.resume();
  pass(500);
  assert.equal(cutOff(fixture), 0, "it was asked 400 ms before it was held back");
  pass(100);
  assert.equal(cutOff(fixture), 1);
  await peer.expectClosed();
});

Deno.test("a client that is slowed down keeps its connection", async () => {
  const clock = new ManualClock();
  const rates = new EdgeRates({ stanzasPerAccount: { perSec: 1, burst: 1 } }, clock);
  await using fixture = quiet({
    clock,
    rates,
    management: { ackDelayMs: 100, ackTimeoutMs: 1000 },
  });
  const { peer } = await manage(fixture);
  peer.send(`<message to='${HOME}'/>`.repeat(9)); // the last of them is due in eight seconds
  await until(() =>
    metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "stanza-rate" }) === 1
  );
  for (let ms = 0; ms < 7000; ms += 100) fixture.clock.advance(100);
  assert.equal(cutOff(fixture), 0);
});

Deno.test("a client comes back to what it missed, in order and once", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  peer.send("<message id='m1' to='carol@example.com'/>");
  await peer.expectNext(/^<message [^>]*type='error'>.*?<\/message>/);
  send(fixture, "1", "2");
  await expectMessages(peer, "1", "2");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  assert.deepEqual(fixture.closed, []);
  const [three] = send(fixture, "3");
  const again = await comeBack(fixture);
  // It has handled the error and the first message.
  await again.exchange(resume(id, 2), `<resumed xmlns='${SM}' previd='${id}' h='1'/>`);
  await expectMessages(again, "2", "3");
  await again.expectNext(R);
  again.send(A(4) + R);
  await again.expectNext(A(1));
  assert.ok(three!.isSettled);
  again.send("<message id='m2' to='carol@example.com'/>");
  await again.expect("</message>");
  await again.exchange(R, A(2));
  assert.equal(metric(fixture, "xmpp_sm_resumed_total"), 1);
  assert.deepEqual(fixture.opened, [HOME]);
});

Deno.test("a stream that is still open is closed when its session is resumed", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  send(fixture, "1");
  await expectMessages(peer, "1");
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='0'/>`);
  await expectMessages(again, "1");
  await expectEnd(peer, "<conflict ");
  send(fixture, "2");
  await again.expectNext(R);
  await expectMessages(again, "2");
  assert.deepEqual([fixture.opened, fixture.closed], [[HOME], []]);
});

Deno.test("another account is told nothing of a stream, and its session stays", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  const mallory = await comeBack(fixture, "bob");
  await mallory.exchange(resume(id, 0), FAILED("item-not-found"));
  await bind(mallory, "x");
  await peer.exchange(R, A(0));
  peer.send("</stream:stream>");
  await peer.expectClosed();
  const bob = await comeBack(fixture, "bob");
  await bob.exchange(resume(id, 0), FAILED("item-not-found"));
  const failures = (reason: string) => metric(fixture, "xmpp_sm_resume_failures_total", { reason });
  assert.deepEqual([failures("other-account"), failures("unknown")], [1, 1]);
});

Deno.test("a stream of another place is answered item-not-found, and the client binds", async () => {
  await using here = quiet();
  await using there = quiet();
  const { peer, id } = await manage(there);
  const alice = await comeBack(here);
  await alice.exchange(resume(id, 0), FAILED("item-not-found"));
  assert.equal(await bind(alice, "home"), HOME);
  await peer.exchange(R, A(0));
});

Deno.test("a resume that claims too much ends that stream, and the session waits on", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  send(fixture, "1");
  await expectMessages(peer, "1");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const liar = await comeBack(fixture);
  liar.send(resume(id, 2));
  await expectEnd(liar, `<handled-count-too-high xmlns='${SM}' h='2' send-count='1'/>`);
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='0'/>`);
  await expectMessages(again, "1");
});

Deno.test("past resumeTimeoutMs a session ends, and its messages go where the user is", async () => {
  await using fixture = quiet({ management: { resumeTimeoutMs: 60_000, movedCheckMs: 3_600_000 } });
  const { peer, id } = await manage(fixture);
  peer.send("<presence/><message id='m' to='carol@example.com'/>");
  await peer.expect("</message>");
  const tablet = await fixture.login("alice", "tablet");
  await tablet.exchange("<presence/>", /^<presence [^>]*tablet[^>]*\/>/);
  await tablet.expectNext(/^<presence [^>]*home[^>]*\/>/);
  const sent = send(fixture, "1", "2");
  fixture.route(message("p", HOME, "presence"));
  await peer.expect("id='p'/>");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  fixture.clock.advance(59_999);
  assert.deepEqual(fixture.closed, []);
  fixture.clock.advance(1);
  await tablet.expectNext(/^<presence type='unavailable' from='alice@example.com\/home'[^>]*\/>/);
  await expectMessages(tablet, "1", "2");
  assert.deepEqual(fixture.closed, [HOME]);
  assert.deepEqual(sent.map((each) => each.isSettled), [true, true]);
  assert.equal(metric(fixture, "xmpp_sm_rerouted_total"), 2);
  assert.equal(metric(fixture, "xmpp_sm_dropped_total", { kind: "presence" }), 3);
  assert.equal(metric(fixture, "xmpp_sm_sessions_ended_total", { reason: "timeout" }), 1);
  const late = await comeBack(fixture);
  await late.exchange(resume(id, 0), FAILED("item-not-found", " h='2'"));
});

Deno.test("what an account handled is told for staleHMs only", async () => {
  await using fixture = quiet({ management: { staleHMs: 1000 } });
  const { peer, id } = await manage(fixture);
  peer.send("<message to='carol@example.com'/></stream:stream>");
  await peer.expectClosed();
  const early = await comeBack(fixture);
  fixture.clock.advance(999);
  await early.exchange(resume(id, 0), FAILED("item-not-found", " h='1'"));
  fixture.clock.advance(1);
  await early.exchange(resume(id, 0), FAILED("item-not-found"));
});

Deno.test("an orderly end tells what was handled and sends the rest on", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  const tablet = await fixture.login("alice", "tablet");
  await tablet.exchange("<presence/>", /^<presence [^>]*\/>/);
  send(fixture, "1", "2");
  await expectMessages(peer, "1", "2");
  peer.send(`<message to='alice@example.com/tablet' id='last'/>${A(1)}</stream:stream>`);
  assert.equal(await peer.expectClosed(), `${A(1)}</stream:stream>`);
  await tablet.expectNext(/^<message [^>]*id='last'[^>]*\/>/);
  await expectMessages(tablet, "2");
});

Deno.test("a new login of the same resource gets what the old one had not acknowledged", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  send(fixture, "1", "2");
  await expectMessages(peer, "1", "2");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const again = await fixture.login("alice", "home");
  await expectMessages(again, "1", "2");
  assert.deepEqual([fixture.opened, fixture.closed], [[HOME, HOME], [HOME]]);
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 0);
});

Deno.test("a session takes maxItems, and one more once its client has acknowledged one", async () => {
  await using fixture = quiet({ management: { maxItems: 3 } });
  const { peer } = await manage(fixture);
  send(fixture, "1", "2", "3");
  await expectMessages(peer, "1", "2", "3");
  send(fixture, "4");
  await peer.exchange(R, A(0)); // nothing else has come: whoever sent it is told that there is no room
  assert.equal(
    metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "unacknowledged-stanzas" }),
    1,
  );
  peer.send(A(1));
  await peer.exchange(R, A(0));
  send(fixture, "5");
  await expectMessages(peer, "5");
});

Deno.test("a client that asks and reads no answer is asked to read first", async () => {
  await using fixture = quiet();
  const peer = await fixture.login("alice", "home", { maxPendingBytes: 786_432 });
  await peer.exchange(ENABLE, ENABLED);
  peer.connection.pause();
  for (let chunk = 0; chunk < 20; chunk++) {
    peer.send(R.repeat(1500)); // a twentieth of what it asks for in all, which is too much
    await new Promise((resolve) => setImmediate(resolve));
  }
  const before = fixture.accepted.length;
  peer.send(`<message to='${HOME}'/>`);
  peer.connection.resume();
  await until(() => fixture.accepted.length > before);
});

/** The error by which a node answers a stanza of alice's, as long as `byteLength`. */
function owed(id: string, byteLength = 300): TestDelivery {
  const { stanza } = message(id);
  const padding = " ".repeat(byteLength - stanza.bytes.length - " type='error'".length);
  const text = new TextDecoder().decode(stanza.bytes).replace("/>", ` type='error'${padding}/>`);
  const bytes = new TextEncoder().encode(text);
  return new TestDelivery({ ...stanza, type: "error", bytes }, undefined, 0, true);
}

Deno.test("a session takes what it is owed beyond maxItems, up to maxOwedBytes", async () => {
  await using fixture = quiet({ management: { maxItems: 1, maxOwedBytes: 3 * (1024 + 300) } });
  const { peer } = await manage(fixture);
  const deliver = (delivery: TestDelivery) => fixture.registry.deliver(delivery.stanza, delivery);
  const hits = () => metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "owed-bytes" });
  assert.equal(deliver(message("1")), "delivered");
  assert.equal(deliver(message("2")), "resource-constraint");
  const byClient = new TestDelivery(owed("e0").stanza); // what another client calls an error
  assert.equal(deliver(byClient), "resource-constraint");
  for (const id of ["e1", "e2", "e3"]) assert.equal(deliver(owed(id)), "delivered");
  assert.equal(hits(), 0);
  assert.equal(deliver(owed("e4", 100)), "resource-constraint");
  assert.equal(hits(), 1);
  await peer.expectNext(/^<message [^>]*id='1'\/>(<message [^>]*id='e[123]' type='error' *\/>){3}/);
  peer.send(A(2));
  await peer.exchange(R, A(0));
  assert.equal(deliver(owed("e5")), "delivered");
  assert.equal(deliver(message("3")), "delivered");
});

Deno.test("a session without a connection keeps what it is owed, and ends past maxOwedBytes", async () => {
  await using fixture = quiet({ management: { maxItems: 1, maxOwedBytes: 3 * (1024 + 300) } });
  const { peer } = await manage(fixture);
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  for (const delivery of [message("1"), owed("e1"), owed("e2"), owed("e3")]) {
    assert.equal(fixture.registry.deliver(delivery.stanza, delivery), "delivered");
  }
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 1);
  const last = owed("e4");
  fixture.registry.deliver(last.stanza, last);
  await fixture.management!.settled();
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 0);
  assert.equal(metric(fixture, "xmpp_sm_dropped_total", { kind: "message" }), 4, "counted");
});

Deno.test("a session without a connection ends past maxBytes", async () => {
  await using fixture = quiet({ management: { maxBytes: 16_384 } });
  const { peer } = await manage(fixture);
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const cost = message("00").stanza.bytes.length + 1024;
  const fits = Math.floor(16_384 / cost);
  for (let n = 10; n < 10 + fits; n++) send(fixture, String(n));
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 1);
  send(fixture, "99");
  await fixture.management!.settled();
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 0);
  assert.equal(fixture.rerouted.length, fits + 1);
});

Deno.test("those who sent them need not keep more than maxUnsettled", async () => {
  await using fixture = quiet({ management: { maxUnsettled: 2 } });
  const { peer } = await manage(fixture);
  const sent = send(fixture, "1", "2", "3");
  assert.deepEqual(sent.map((each) => each.isSettled), [true, false, false]);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_deliveries_total"), 1);
  await expectMessages(peer, "1", "2", "3");
  peer.send("</stream:stream>");
  await peer.expectClosed();
  await until(() => fixture.rerouted.length === 3);
});

Deno.test("a session without a connection ends when the table places it elsewhere", async () => {
  let isElsewhere = false;
  await using fixture = quiet({
    management: { movedCheckMs: 1000 },
    hasMoved: () => Promise.resolve(isElsewhere),
  });
  const { peer } = await manage(fixture);
  send(fixture, "1");
  await expectMessages(peer, "1");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  fixture.clock.advance(1000);
  await fixture.management!.settled();
  assert.deepEqual(fixture.closed, []);
  isElsewhere = true;
  fixture.clock.advance(1000);
  await fixture.management!.settled();
  assert.deepEqual(fixture.closed, [HOME]);
  assert.equal(fixture.rerouted.length, 1);
  assert.equal(metric(fixture, "xmpp_sm_sessions_ended_total", { reason: "moved" }), 1);
});

Deno.test("StreamManagement.movedAway() ends the session of that full JID alone", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  const tablet = await manage(fixture, "alice", "tablet");
  const { jid } = fixture.registry.ofAccount("alice@example.com")[0]!;
  fixture.management!.movedAway(jid);
  await expectEnd(peer, "<conflict ");
  await tablet.peer.exchange(R, A(0));
});

Deno.test("without resumption a lost connection ends the session at once", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  await alice.exchange(`<enable xmlns='${SM}'/>`, `<enabled xmlns='${SM}'/>`);
  send(fixture, "1");
  await expectMessages(alice, "1");
  alice.cut();
  await until(() => fixture.rerouted.length === 1);
  assert.deepEqual(fixture.closed, [HOME]);
});

Deno.test("C2sListener.close() ends sessions that have no connection", async () => {
  const fixture = quiet();
  const { peer } = await manage(fixture);
  send(fixture, "1");
  await expectMessages(peer, "1");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  await fixture[Symbol.asyncDispose]();
  assert.deepEqual(fixture.closed, [HOME]);
  assert.equal(fixture.rerouted.length, 1);
});

Deno.test("of a full account the first session that waits to be resumed makes room", async () => {
  await using fixture = quiet({ maxSessionsPerAccount: 2 });
  const first = await manage(fixture, "alice", "first");
  const second = await manage(fixture, "alice", "second");
  second.peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const third = await fixture.login("alice", "third");
  assert.deepEqual(fixture.closed, ["alice@example.com/second"]);
  await first.peer.exchange(R, A(0));
  await third.exchange(
    "<message to='alice@example.com/third' id='x'/>",
    /^<message [^>]*id='x'[^>]*\/>/,
  );
  const fourth = await comeBack(fixture);
  fourth.send("<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>");
  await fourth.expect("<resource-constraint ");
});

Deno.test("StreamManagement.collect() asks those who owe and waits for them, not for ever", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  const silent = await manage(fixture, "alice", "silent");
  const gone = await manage(fixture, "alice", "gone");
  for (const to of [HOME, "alice@example.com/silent", "alice@example.com/gone"]) {
    fixture.route(message("1", to));
  }
  gone.peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  let isOver = false;
  const collected = fixture.management!.collect(100).then(() => isOver = true);
  await expectMessages(peer, "1");
  await peer.expectNext(R);
  await expectMessages(silent.peer, "1");
  await silent.peer.expectNext(R);
  peer.send(A(1) + R);
  await peer.expectNext(A(0));
  await fixture.clock.advanceAsync(99);
  assert.ok(!isOver);
  await fixture.clock.advanceAsync(11);
  await collected;
});

Deno.test("A client that failed to resume is known to send again what it has sent, for a while", async () => {
  await using fixture = quiet();
  const isResending = async (peer: RawPeer, id: string) => {
    peer.send(`<message to='nobody@example.com' id='${id}'/>`);
    await until(() => fixture.accepted.some((stanza) => stanzaId(stanza) === id));
    return fixture.sources.at(-1)?.isResending;
  };
  const fresh = await fixture.login("bob", "home");
  assert.equal(await isResending(fresh, "1"), false);
  const peer = await comeBack(fixture);
  await peer.exchange(resume("0".repeat(32), 0), FAILED("item-not-found"));
  await bind(peer, "desk");
  assert.equal(await isResending(peer, "2"), true);
  await fixture.clock.advanceAsync(60_000);
  assert.equal(await isResending(peer, "3"), false);
});

Deno.test("StreamManagement.collect() reads acknowledgements of a client that is held back", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  fixture.route(message("1", HOME));
  await expectMessages(peer, "1");
  const [session] = fixture.registry.ofAccount("alice@example.com");
  assert.ok(session instanceof C2sSession);
  session.pause();
  const collected = fixture.management!.collect(10_000);
  await peer.expectNext(R);
  fixture.route(message("2", HOME)); // too late for this stream
  const before = fixture.accepted.length;
  peer.send("<message to='bob@example.com' id='3'/>" + A(1) + R);
  await peer.expectNext(A(0));
  await until(() => session.owed === 0);
  await fixture.clock.advanceAsync(100);
  await collected;
  assert.equal(fixture.accepted.length, before, "what is not covered by h is not taken");
});

Deno.test("h waits for the fate of a stanza, and for ackHoldMs at most", async () => {
  const fates: { settle(): void }[] = [];
  await using fixture = quiet({
    management: { ackHoldMs: 800 },
    sink: {
      accept: (_stanza, _source, fate, number) => {
        fates.push({ settle: () => fate!.settle(number!) });
      },
    },
  });
  const { peer } = await manage(fixture);
  peer.send(`<message to='b@x'/><message to='b@x'/><message to='b@x'/>${R}`);
  await peer.expectNext(A(0));
  fates[1]!.settle();
  await peer.exchange(R, A(0));
  fates[0]!.settle();
  await peer.exchange(R, A(2));
  // The last <r/> asked about the third: it is answered again as soon as that is covered.
  fates[2]!.settle();
  await peer.expectNext(A(3));
  peer.send(`<message to='b@x'/>${R}`);
  await peer.expectNext(A(3));
  fixture.clock.advance(799);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 0);
  fixture.clock.advance(1);
  await peer.expectNext(A(4));
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 1);
  fates[3]!.settle();
  await peer.exchange(R, A(4));
});

Deno.test("an orderly end waits for the fate of what was sent, so that nothing is sent again", async () => {
  const fates: { settle(): void }[] = [];
  await using fixture = quiet({
    management: { ackHoldMs: 800, endHoldMs: 300 },
    sink: {
      accept: ({ kind }, _source, fate, number) => {
        if (kind === "message") fates.push({ settle: () => fate!.settle(number!) });
      },
    },
  });
  const { peer } = await manage(fixture);
  peer.send(`<message to='b@x'/><message to='b@x'/></stream:stream>`);
  await until(() => fates.length === 2);
  fates[0]!.settle();
  assert.equal(fixture.closed.length, 0);
  fates[1]!.settle();
  assert.equal(await peer.expectClosed(), `${A(2)}</stream:stream>`);

  // Nothing may come behind it, and what comes is not looked at.
  const rude = await manage(fixture);
  rude.peer.send(`<message to='b@x'/></stream:stream>${R}<<<`);
  await until(() => fates.length === 3);
  rude.peer.send(R);
  fates[2]!.settle();
  assert.equal(await rude.peer.expectClosed(), `${A(1)}</stream:stream>`);

  // Nor for longer than it may: who has gone is told that all of it is seen to.
  const again = await manage(fixture);
  again.peer.send(`<message to='b@x'/></stream:stream>`);
  await until(() => fates.length === 4);
  fixture.clock.advance(299);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 0);
  fixture.clock.advance(1);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 1);
  assert.equal(await again.peer.expectClosed(), `${A(1)}</stream:stream>`);

  // Who does not wait for the answer is gone all the same.
  const hasty = await manage(fixture);
  hasty.peer.send(`<message to='b@x'/></stream:stream>`);
  await until(() => fates.length === 5);
  hasty.peer.cut();
  await until(() => fixture.closed.length === 4);
  assert.equal(metric(fixture, "xmpp_sm_hibernating_sessions"), 0);
});

Deno.test("a client that comes back is told of all that was taken, so that it repeats none", async () => {
  await using fixture = quiet({ sink: { accept: () => {} } });
  const { peer, id } = await manage(fixture);
  peer.send(`<message to='b@x'/><message to='b@x'/>${R}`);
  await peer.expectNext(A(0));
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='2'/>`);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 2);
  await again.exchange(R, A(2));
});

Deno.test("a message to all resources comes back only when no resource has it", async () => {
  await using fixture = quiet();
  const one = await manage(fixture, "alice", "one");
  const two = await manage(fixture, "alice", "two");
  for (const { peer } of [one, two]) peer.send("<presence/>");
  await until(() =>
    fixture.registry.ofAccount("alice@example.com").every((each) => each.priority === 0)
  );
  const both = message("b", "alice@example.com");
  fixture.route(both);
  for (const { peer } of [one, two]) await peer.expect("id='b'/>");
  one.peer.send("</stream:stream>");
  await one.peer.expectClosed();
  assert.equal(fixture.rerouted.filter((each) => each.kind === "message").length, 0);
  assert.ok(!both.isSettled);
  two.peer.send("</stream:stream>");
  await two.peer.expectClosed();
  await until(() => fixture.rerouted.some((each) => each.kind === "message"));
  assert.ok(both.isSettled); // nobody is left: it was answered with an error
});
