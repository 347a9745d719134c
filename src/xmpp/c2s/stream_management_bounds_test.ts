import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import {
  A,
  comeBack,
  ENABLE,
  ENABLED,
  expectMessages,
  HOME,
  manage,
  message,
  metric,
  quiet,
  R,
  send,
  until,
} from "./testing/stream_management_fixture.ts";
import { parseJid } from "../jid/jid_parser.ts";
import { TestDelivery } from "./testing/delivery.ts";

Deno.test("a session keeps maxItems, and one more once its client has acknowledged one", async () => {
  await using fixture = quiet({ management: { maxItems: 3 } });
  const { peer } = await manage(fixture);
  send(fixture, "1", "2", "3");
  await expectMessages(peer, "1", "2", "3");
  send(fixture, "4");
  await peer.exchange(R, A(0)); // nothing else has come: the sender gets an error
  assert.equal(
    metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "unacknowledged-stanzas" }),
    1,
  );
  peer.send(A(1));
  await peer.exchange(R, A(0));
  send(fixture, "5");
  await expectMessages(peer, "5");
});

Deno.test("a client that sends <r/> and reads no answer must read first", async () => {
  await using fixture = quiet();
  const peer = await fixture.login("alice", "home", { maxPendingBytes: 786_432 });
  await peer.exchange(ENABLE, ENABLED);
  peer.connection.pause();
  for (let chunk = 0; chunk < 20; chunk++) {
    peer.send(R.repeat(1500)); // a twentieth of all its requests, which is already too much
    await new Promise((resolve) => setImmediate(resolve));
  }
  const before = fixture.accepted.length;
  peer.send(`<message to='${HOME}'/>`);
  peer.connection.resume();
  await until(() => fixture.accepted.length > before);
});

/** Builds the error by which a node answers a stanza of alice's, with a length of `byteLength`. */
function owed(id: string, byteLength = 300): TestDelivery {
  const { stanza } = message(id);
  const padding = " ".repeat(byteLength - stanza.bytes.length - " type='error'".length);
  const text = new TextDecoder().decode(stanza.bytes).replace("/>", ` type='error'${padding}/>`);
  const bytes = new TextEncoder().encode(text);
  return new TestDelivery({ ...stanza, type: "error", bytes }, undefined, 0, true);
}

Deno.test("a session keeps owed errors beyond maxItems, up to maxOwedBytes", async () => {
  await using fixture = quiet({ management: { maxItems: 1, maxOwedBytes: 3 * (1024 + 300) } });
  const { peer } = await manage(fixture);
  const deliver = (delivery: TestDelivery) => fixture.registry.deliver(delivery.stanza, delivery);
  const hits = () => metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit: "owed-bytes" });
  assert.equal(deliver(message("1")), "delivered");
  assert.equal(deliver(message("2")), "resource-constraint");
  const byClient = new TestDelivery(owed("e0").stanza); // an error that another client made up
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

Deno.test("a hibernating session keeps owed errors, and ends past maxOwedBytes", async () => {
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

Deno.test("a hibernating session ends past maxBytes", async () => {
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

Deno.test("senders keep no more than maxUnsettled of a session's unacknowledged stanzas", async () => {
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

Deno.test("in a full account the first hibernating session makes room", async () => {
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

Deno.test("hibernating sessions of one account keep no more than its share, and others find room", async () => {
  const budget = new FairShares({ maxBytes: 10_000_000 });
  await using fixture = quiet({ budget });
  const deliver = (delivery: TestDelivery) => fixture.registry.deliver(delivery.stanza, delivery);
  for (const resource of ["one", "two", "three"]) {
    const { peer } = await manage(fixture, "alice", resource);
    peer.cut();
  }
  const bob = await manage(fixture, "bob", "home");
  bob.peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 4);
  let isTaken = true;
  for (let n = 0; isTaken; n++) {
    isTaken = false;
    for (const resource of ["one", "two", "three"]) {
      const to = `alice@example.com/${resource}`;
      const error = owed(`e${n}`, 2000).stanza;
      const delivery = new TestDelivery({ ...error, to: parseJid(to) }, undefined, 0, true);
      if (deliver(delivery) === "delivered") isTaken = true;
    }
  }
  assert.ok(budget.bytes >= 1_900_000 && budget.bytes < 2_200_000, `${budget.bytes}`);
  const limit = { edge: "c2s", limit: "waiting-bytes" };
  assert.ok(metric(fixture, "xmpp_limit_hits_total", limit) >= 3);
  for (let n = 0; n < 10; n++) {
    assert.equal(deliver(message(`${n}`, "bob@example.com/home")), "delivered");
  }
  assert.equal(metric(fixture, "xmpp_sm_hibernating_sessions"), 4);
  await fixture[Symbol.asyncDispose]();
  assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
});

Deno.test("a sender fills no more than its share in the queues of many hibernating sessions", async () => {
  const budget = new FairShares({ maxBytes: 1_000_000 });
  await using fixture = quiet({ budget });
  for (const user of ["alice", "bob", "carol"]) (await manage(fixture, user)).peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 3);
  const deliver = (from: string, to: string) => {
    const { stanza } = message("1", to);
    const bytes = new Uint8Array(9000).fill(0x20);
    bytes.set(stanza.bytes);
    const delivery = new TestDelivery({ ...stanza, from: parseJid(from), bytes });
    return fixture.registry.deliver(delivery.stanza, delivery);
  };
  let taken = 0;
  for (let n = 0; n < 100; n++) {
    const to = `${["alice", "bob", "carol"][n % 3]}@example.com/home`;
    if (deliver(`eve@example.com/${n}`, to) === "delivered") taken++;
  }
  assert.equal(taken, 20);
  assert.equal(deliver("dave@example.com/x", "bob@example.com/home"), "delivered");
});

Deno.test("StreamManagement.makeRoom() ends only the sessions of the account with most queued bytes", async () => {
  await using fixture = quiet();
  const alice = await manage(fixture, "alice", "one");
  const tablet = await manage(fixture, "alice", "two");
  const bob = await manage(fixture, "bob");
  for (const { peer } of [alice, tablet, bob]) peer.cut();
  await manage(fixture, "alice", "here");
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 3);
  const deliver = (id: string, to: string) => {
    const delivery = message(id, to);
    fixture.registry.deliver(delivery.stanza, delivery);
  };
  for (const id of ["1", "2"]) deliver(id, "bob@example.com/home");
  for (const id of ["3", "4"]) deliver(id, "alice@example.com/one");
  deliver("5", "alice@example.com/two");
  fixture.management!.makeRoom();
  await fixture.management!.settled();
  assert.deepEqual(fixture.closed.toSorted(), ["alice@example.com/one", "alice@example.com/two"]);
  assert.equal(fixture.rerouted.length, 3);
  assert.equal(metric(fixture, "xmpp_sm_sessions_ended_total", { reason: "budget" }), 2);
  fixture.management!.makeRoom();
  await fixture.management!.settled();
  assert.equal(fixture.closed.at(-1), "bob@example.com/home");
  fixture.management!.makeRoom(); // no session is left to end
  assert.equal(metric(fixture, "xmpp_sm_sessions"), 1);
});
