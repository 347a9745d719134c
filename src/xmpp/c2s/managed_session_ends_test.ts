import assert from "node:assert/strict";
import {
  A,
  comeBack,
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
  until,
} from "./testing/stream_management_fixture.ts";

Deno.test("past resumeTimeoutMs a session ends, and its messages go to the user's other sessions", async () => {
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

Deno.test("what was not written to a session as its connection is cut is not lost", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  peer.connection.pause();
  send(fixture, "1", "2");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const back = await comeBack(fixture);
  await back.exchange(resume(id, 0), /^<resumed [^>]*\/>/);
  await expectMessages(back, "1", "2");
  back.connection.pause();
  send(fixture, "3");
  back.send("</stream:stream>");
  await until(() => fixture.closed.length === 1);
  back.cut();
  const ended = { edge: "c2s", condition: "none" };
  await until(() => metric(fixture, "xmpp_streams_closed_total", ended) === 1);
  assert.equal(metric(fixture, "xmpp_stanzas_unwritten_total", { edge: "c2s" }), 0);
});

Deno.test("an orderly end sends the handled count and routes the rest again", async () => {
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

Deno.test("an orderly end waits until sent stanzas are covered, so that nothing is resent", async () => {
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

  // Nothing may come after the end, and what comes is ignored.
  const rude = await manage(fixture);
  rude.peer.send(`<message to='b@x'/></stream:stream>${R}<<<`);
  await until(() => fates.length === 3);
  rude.peer.send(R);
  fates[2]!.settle();
  assert.equal(await rude.peer.expectClosed(), `${A(1)}</stream:stream>`);

  // The wait is bounded: a client that has gone learns that all of it is covered.
  const again = await manage(fixture);
  again.peer.send(`<message to='b@x'/></stream:stream>`);
  await until(() => fates.length === 4);
  fixture.clock.advance(299);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 0);
  fixture.clock.advance(1);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 1);
  assert.equal(await again.peer.expectClosed(), `${A(1)}</stream:stream>`);

  // A client that does not wait for the answer is gone all the same.
  const hasty = await manage(fixture);
  hasty.peer.send(`<message to='b@x'/></stream:stream>`);
  await until(() => fates.length === 5);
  hasty.peer.cut();
  await until(() => fixture.closed.length === 4);
  assert.equal(metric(fixture, "xmpp_sm_hibernating_sessions"), 0);
});

Deno.test("a new login of the same resource gets the stanzas that the old one had not acknowledged", async () => {
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

Deno.test("a message to all resources is returned only when no resource has it", async () => {
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
  assert.ok(both.isSettled); // no session is left: an error answered it
});

Deno.test("a session that moves counts as new while its contacts are told of its presence", async () => {
  let isTelling = false;
  await using fixture = quiet({
    management: {},
    events: {
      opened: () => Promise.resolve(),
      closed: () => Promise.resolve(),
      isTelling: () => isTelling,
    },
  });
  const { peer, id } = await manage(fixture);
  await peer.exchange("<presence/>", /^<presence [^>]*\/>/);
  fixture.clock.advance(20_000);
  const owner = { covered: () => {}, ended: () => {} };
  const request = { previd: id, account: "alice@example.com", h: 0 };
  const freezing = fixture.management!.freeze(request, owner);
  assert.ok(freezing.kind === "frozen");
  assert.equal(freezing.session.state().isNewlyAvailable, false);
  isTelling = true;
  assert.equal(freezing.session.state().isNewlyAvailable, true);
});

Deno.test("a session that has moved gets what comes for it as it leaves", async () => {
  const left: string[] = [];
  await using fixture = quiet({
    management: {},
    events: {
      opened: () => Promise.resolve(),
      leaving: (jid) => {
        left.push(`leaving ${jid.text}`);
        send(fixture, "late");
      },
      closed: (jid) => Promise.resolve(void left.push(`closed ${jid.text}`)),
    },
  });
  const { id } = await manage(fixture);
  const owner = { covered: () => {}, ended: () => {} };
  const request = { previd: id, account: "alice@example.com", h: 0 };
  const freezing = fixture.management!.freeze(request, owner);
  assert.ok(freezing.kind === "frozen");
  const { session } = freezing;
  const relayed: string[] = [];
  const decoder = new TextDecoder();
  session.relay({ write: ({ stanza }) => relayed.push(decoder.decode(stanza.bytes)) > 0 }, 0);
  session.give(2);
  assert.deepEqual([left, relayed], [[], []]);
  await session.leave();
  assert.deepEqual(left, [`leaving ${HOME}`, `closed ${HOME}`]);
  assert.match(relayed.join(), /^<message [^>]*id='late'[^,]*$/);
});
