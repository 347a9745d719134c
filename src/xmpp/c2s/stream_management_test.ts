import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import { bind, C2sFixture, HEADER, plainOf, SASL } from "./testing/c2s_fixture.ts";
import {
  A,
  comeBack,
  ENABLE,
  ENABLED,
  expectEnd,
  expectMessages,
  FAILED,
  HOME,
  manage,
  message,
  metric,
  quiet,
  R,
  resume,
  send,
  SM,
  until,
} from "./testing/stream_management_fixture.ts";
import { C2sSession } from "./c2s_session.ts";

Deno.test("stream management is offered after authentication, where it is on", async () => {
  await using on = quiet();
  const alice = on.connect();
  alice.send(HEADER);
  const before = await alice.expect("</stream:features>");
  // Before it, only as something to ask for together with the login.
  assert.ok(!before.input.replace(/<authentication .*<\/authentication>/, "").includes(SM));
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

Deno.test("<enable/> returns an id and a time to resume, no longer than requested", async () => {
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

Deno.test("stream management before authentication is answered unexpected-request", async () => {
  await using fixture = quiet();
  const early = [ENABLE, resume("x", 0), `<resume xmlns='${SM}'/>`, R, A(0)];
  const peer = fixture.connect();
  peer.send(HEADER);
  await peer.expect("</stream:features>");
  for (const nonza of early) await peer.exchange(nonza, FAILED("unexpected-request"));
  await peer.exchange(
    `<auth xmlns='${SASL}' mechanism='SCRAM-SHA-256'>${btoa("n,,n=alice,r=abc")}</auth>`,
    /<challenge .*<\/challenge>/,
  );
  for (const nonza of early) await peer.exchange(nonza, FAILED("unexpected-request"));
  await peer.exchange(`<abort xmlns='${SASL}'/>`, /<failure .*<aborted\/><\/failure>/);
  await peer.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
  peer.send(HEADER);
  await peer.expect("</stream:features>");
  assert.equal(await bind(peer, "home"), HOME);
  await peer.exchange(ENABLE, ENABLED);
});

Deno.test("stream management before authentication ends the stream where it is off", async () => {
  await using off = new C2sFixture();
  for (const nonza of [ENABLE, resume("x", 0)]) {
    const peer = off.connect();
    peer.send(HEADER);
    await peer.expect("</stream:features>");
    peer.send(nonza);
    await expectEnd(peer, "<not-authorized ");
  }
});

Deno.test("a client that repeats requests before authentication runs out of maxUnauthenticatedBytes", async () => {
  await using fixture = quiet({ limits: { maxUnauthenticatedBytes: 4096 } });
  const peer = fixture.connect();
  peer.send(HEADER);
  await peer.expect("</stream:features>");
  peer.send(ENABLE.repeat(200));
  await expectEnd(peer, "<policy-violation ");
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
  alice.send("<iq type='get' id='2' to='@'/>"); // malformed, and still counted as handled
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

Deno.test("the server sends <r/> after ackFreq stanzas, and after ackDelayMs for the rest", async () => {
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

/** Number of clients cut off because they acknowledged nothing for too long. */
const cutOff = (fixture: C2sFixture) =>
  metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "unacknowledged-time" });

Deno.test("a client is not cut for an <a/> that the server does not read", async () => {
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
  assert.equal(cutOff(fixture), 0, "the <r/> went out 400 ms before the client was held back");
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
  peer.send(`<message to='${HOME}'/>`.repeat(9)); // the last one is due in eight seconds
  await until(() =>
    metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "stanza-rate" }) === 1
  );
  for (let ms = 0; ms < 7000; ms += 100) fixture.clock.advance(100);
  assert.equal(cutOff(fixture), 0);
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
  // The last <r/> asked about the third stanza: it is answered again as soon as that stanza is covered.
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

Deno.test("StreamManagement.collect() asks clients that owe an <a/> and waits, but not for ever", async () => {
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

Deno.test("StreamManagement.collect() reads acknowledgements from a client that is held back", async () => {
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
  assert.equal(fixture.accepted.length, before, "a stanza that h does not cover is not taken");
});

Deno.test("StreamManagement.cover() waits until `h` can count all that clients sent, but not for ever", async () => {
  const fates: { settle(): void }[] = [];
  await using fixture = quiet({
    sink: {
      accept: (_stanza, _source, fate, number) => {
        fates.push({ settle: () => fate!.settle(number!) });
      },
    },
  });
  const { peer } = await manage(fixture);
  const slow = await manage(fixture, "bob");
  peer.send("<message to='b@x'/><message to='b@x'/>");
  slow.peer.send("<message to='b@x'/>");
  await until(() => fates.length === 3);
  await fixture.management!.collect(0);
  let isOver = false;
  const covered = fixture.management!.cover(100).then(() => isOver = true);
  fates[1]!.settle();
  await fixture.clock.advanceAsync(50);
  fates[0]!.settle();
  await fixture.clock.advanceAsync(49);
  assert.ok(!isOver, "one stanza of bob's is still open");
  await fixture.clock.advanceAsync(11);
  await covered;
  await fixture.listener.dismiss("system-shutdown");
  await peer.expect(`${A(2)}<stream:error>`);
  await slow.peer.expect(`${A(0)}<stream:error>`);
});

Deno.test("StreamManagement.cover() ends sessions that keep stanzas for silent clients, and no others", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  const silent = await manage(fixture, "carol", "silent");
  const gone = await manage(fixture, "carol", "gone");
  const deliveries = ["silent", "gone"].map((resource) =>
    message(resource, `carol@example.com/${resource}`)
  );
  for (const delivery of deliveries) fixture.route(delivery);
  await expectMessages(silent.peer, "silent");
  gone.peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  await fixture.management!.collect(0);
  await fixture.management!.cover(1_000);
  await expectEnd(silent.peer, "<system-shutdown");
  await until(() => deliveries.every((each) => each.isSettled));
  assert.equal(metric(fixture, "xmpp_sm_rerouted_total"), 2);
  assert.deepEqual(fixture.closed.toSorted(), [
    "carol@example.com/gone",
    "carol@example.com/silent",
  ]);
  await peer.exchange(R, A(0));
});
