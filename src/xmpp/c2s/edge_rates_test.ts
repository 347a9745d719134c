import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { EdgeRatesOptions } from "../stream/edge_rates.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import type { StreamLimitName } from "../stream/stream_metrics.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import { authenticate, bind, C2sFixture, HEADER, plainOf, SASL } from "./testing/c2s_fixture.ts";
import { comeBack, manage, quiet, resume, until } from "./testing/stream_management_fixture.ts";

const FAILED = `<failure xmlns='${SASL}'><not-authorized/></failure>`;
const LATER = `<failure xmlns='${SASL}'><temporary-auth-failure/></failure>`;
const SUCCESS = `<success xmlns='${SASL}'/>`;

/** Returns a listener with these rates and a clock that never moves by itself. */
function fixtureWith(rates: EdgeRatesOptions): { fixture: C2sFixture; clock: ManualClock } {
  const clock = new ManualClock();
  return { fixture: new C2sFixture({ clock, rates: new EdgeRates(rates, clock) }), clock };
}

function limitHits(fixture: C2sFixture, limit: StreamLimitName): number {
  return fixture.metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit });
}

async function opened(peer: RawPeer): Promise<RawPeer> {
  peer.send(HEADER);
  await peer.expect("</stream:features>");
  return peer;
}

Deno.test("C2sListener accepts connectionsPerAddress at once and refuses one more until time has passed", async () => {
  const { fixture, clock } = fixtureWith({ connectionsPerAddress: { perSec: 1, burst: 2 } });
  await using _ = fixture;
  await opened(fixture.connectFrom("192.0.2.1:1"));
  await opened(fixture.connectFrom("192.0.2.1:2"));
  const third = fixture.connectFrom("192.0.2.1:3");
  await third.expect("<policy-violation ");
  await third.expectClosed();
  assert.equal(limitHits(fixture, "connection-rate"), 1);
  await opened(fixture.connectFrom("192.0.2.2:1"));
  clock.advance(1000);
  await opened(fixture.connectFrom("192.0.2.1:4"));
  assert.equal(limitHits(fixture, "connection-rate"), 1);
});

Deno.test("C2sListener sends a refusal to MAX_REFUSALS clients at once, and cuts the others", async () => {
  const { fixture } = fixtureWith({ connectionsPerAddress: { perSec: 1, burst: 1 } });
  await using _ = fixture;
  const peers = Array.from({ length: 103 }, (_, i) => fixture.connectFrom(`192.0.2.1:${i}`));
  const lasts = await Promise.all(peers.slice(1).map((peer) => peer.expectClosed()));
  assert.equal(lasts.filter((last) => last.includes("<policy-violation ")).length, 100);
  assert.equal(lasts.filter((last) => last === "").length, 2);
  await opened(peers[0]!);
});

Deno.test("C2sListener allows loginsPerAddress, right or wrong, and asks one more to retry later", async () => {
  const { fixture, clock } = fixtureWith({ loginsPerAddress: { perSec: 1, burst: 2 } });
  await using _ = fixture;
  const first = await opened(fixture.connectFrom("192.0.2.1:1"));
  await first.exchange(plainOf("alice", "guess"), FAILED);
  await first.exchange(plainOf("alice"), SUCCESS);
  const second = await opened(fixture.connectFrom("192.0.2.1:2"));
  await second.exchange(plainOf("bob"), LATER);
  assert.equal(limitHits(fixture, "login-rate"), 1);
  await (await opened(fixture.connectFrom("192.0.2.9:1"))).exchange(plainOf("bob"), SUCCESS);
  clock.advance(1000);
  await second.exchange(plainOf("bob"), SUCCESS);
});

Deno.test("C2sListener limits wrong passwords by account, from any address, and no right ones", async () => {
  const { fixture, clock } = fixtureWith({ failedLoginsPerAccount: { perSec: 1, burst: 2 } });
  await using _ = fixture;
  for (let i = 0; i < 5; i++) await fixture.login("alice", `r${i}`);
  for (const user of ["alice", "nobody"]) {
    for (const from of ["192.0.2.1:1", "[2001:db8::1]:1"]) {
      await (await opened(fixture.connectFrom(from))).exchange(plainOf(user, "guess"), FAILED);
    }
    const third = await opened(fixture.connectFrom("192.0.2.3:1"));
    await third.exchange(plainOf(user, "guess"), LATER);
  }
  assert.equal(limitHits(fixture, "failed-logins"), 2);
  await fixture.login("bob", "home");
  clock.advance(1000);
  await fixture.login("alice", "later");
});

Deno.test("C2sListener begins no more sessions than the node's rate allows, in the order in which clients bind", async () => {
  const { fixture, clock } = fixtureWith({ sessions: { perSec: 1, burst: 1 } });
  await using _ = fixture;
  const waitingFor = async (resource: string) => {
    const peer = fixture.connect();
    await authenticate(peer, "alice");
    const timers = clock.pendingTimers;
    const bound = bind(peer, resource);
    await until(() => clock.pendingTimers > timers);
    return { peer, bound };
  };
  await fixture.login("alice", "a");
  const b = await waitingFor("b");
  const c = await waitingFor("c");
  const d = await waitingFor("d");
  clock.advance(999);
  assert.equal(fixture.registry.count, 1);
  clock.advance(1);
  assert.equal(await b.bound, "alice@example.com/b");
  assert.equal(fixture.registry.count, 2);

  const { pendingTimers } = clock;
  c.peer.cut();
  await assert.rejects(c.bound);
  await until(() => clock.pendingTimers < pendingTimers - 1);
  const e = await waitingFor("e");
  clock.advance(1999);
  assert.equal(fixture.registry.count, 2);
  clock.advance(1);
  assert.deepEqual(await Promise.all([d.bound, e.bound]), [
    "alice@example.com/d",
    "alice@example.com/e",
  ]);
  assert.equal(limitHits(fixture, "session-rate"), 0);
});

Deno.test("C2sListener refuses a session that would wait too long, and lets the client try again", async () => {
  const { fixture, clock } = fixtureWith({ sessions: { perSec: 0.1, burst: 1 } });
  await using _ = fixture;
  await fixture.login("alice", "a");
  clock.advance(1);
  const [second, third] = [fixture.connect(), fixture.connect()];
  await authenticate(second, "alice");
  const timers = clock.pendingTimers;
  const bound = bind(second, "b");
  await until(() => clock.pendingTimers > timers);
  await authenticate(third, "bob");
  const request = "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
  await third.exchange(request, /<iq type='error' id='b1'>[^]*<resource-constraint [^]*<\/iq>/);
  assert.equal(limitHits(fixture, "session-rate"), 1);
  clock.advance(9999);
  await bound;
  clock.advance(10_000);
  assert.match(await bind(third), /^bob@/);
});

Deno.test("a session that is resumed waits for no rate, and takes no place from others", async () => {
  const clock = new ManualClock();
  const rates = new EdgeRates({ sessions: { perSec: 0.1, burst: 1 } }, clock);
  await using fixture = quiet({ clock, rates });
  const { peer, id } = await manage(fixture);
  peer.cut();
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), "<resumed ");
  assert.equal(rates.sessionDelay(10_000), 10_000);
  assert.equal(limitHits(fixture, "session-rate"), 0);
});

Deno.test("C2sListener does not limit loopback addresses", async () => {
  const one = { perSec: 1, burst: 1 };
  const { fixture } = fixtureWith({
    connectionsPerAddress: one,
    loginsPerAddress: one,
    stanzasPerAddress: one,
  });
  await using _ = fixture;
  const clients = [await fixture.login("alice", "a"), await fixture.login("alice", "b")];
  for (const client of clients) {
    for (let i = 0; i < 5; i++) {
      await client.exchange(
        `<message id='m${i}' to='bob@example.com/x'/>`,
        /<message [^]*<\/message>/,
      );
    }
  }
  assert.equal(limitHits(fixture, "stanza-rate"), 0);
});

/** Sends messages to a nonexistent user, each in a chunk of its own. */
async function send(peer: RawPeer, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    peer.send("<message type='error' to='bob@example.com/x'/>");
    await settle();
  }
}

/** Lets the server read what it is willing to read. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
  await new Promise<void>((resolve) => setImmediate(resolve));
}

Deno.test("C2sSession slows reading past stanzasPerAccount, counted over the account's sessions, and drops nothing", async () => {
  const { fixture, clock } = fixtureWith({ stanzasPerAccount: { perSec: 10, burst: 4 } });
  await using _ = fixture;
  const one = await fixture.login("alice", "one");
  const other = await fixture.login("alice", "other");
  const bob = await fixture.login("bob", "home");
  await send(one, 2);
  await send(other, 2);
  assert.equal(fixture.accepted.length, 4);
  assert.equal(limitHits(fixture, "stanza-rate"), 0);
  await send(one, 3);
  assert.equal(fixture.accepted.length, 5, "one more, and then no more is read");
  assert.equal(limitHits(fixture, "stanza-rate"), 1);
  await send(bob, 4);
  assert.equal(fixture.accepted.length, 9, "another account is not slowed");
  for (let i = 0; i < 10; i++) {
    clock.advance(100);
    await settle();
  }
  assert.equal(fixture.accepted.length, 11, "nothing is lost");
});

Deno.test("C2sSession reads only when neither its rate nor the router holds it back", async () => {
  const { fixture, clock } = fixtureWith({ stanzasPerAccount: { perSec: 10, burst: 1 } });
  await using _ = fixture;
  const alice = await fixture.login("alice", "home");
  await send(alice, 2);
  assert.equal(fixture.accepted.length, 2);
  const source = fixture.sources[0]!;
  source.pause();
  source.resume();
  await send(alice, 1);
  assert.equal(fixture.accepted.length, 2, "resumed by the router, still slowed");
  source.pause();
  clock.advance(1000);
  await settle();
  assert.equal(fixture.accepted.length, 2, "no longer slowed, still paused");
  source.resume();
  await settle();
  assert.equal(fixture.accepted.length, 3);
});

Deno.test("C2sSession limits stanzas by address over its accounts", async () => {
  const { fixture } = fixtureWith({ stanzasPerAddress: { perSec: 10, burst: 2 } });
  await using _ = fixture;
  const peers: RawPeer[] = [];
  for (const user of ["alice", "bob"]) {
    const peer = fixture.connectFrom(`192.0.2.1:${peers.length}`);
    await authenticate(peer, user);
    await bind(peer, "home");
    peers.push(peer);
  }
  await send(peers[0]!, 2);
  await send(peers[1]!, 2);
  assert.equal(fixture.accepted.length, 3);
  assert.equal(limitHits(fixture, "stanza-rate"), 1);
});

Deno.test("C2sSession can end while it is slowed, and leaves no timer", async () => {
  const { fixture } = fixtureWith({ stanzasPerAccount: { perSec: 10, burst: 1 } });
  const alice = await fixture.login("alice", "home");
  await send(alice, 2);
  assert.equal(limitHits(fixture, "stanza-rate"), 1);
  await fixture.listener.close();
  await alice.expect("<system-shutdown ");
  await fixture[Symbol.asyncDispose]();
});
